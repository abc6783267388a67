// Plots by day.
"use strict";
addEventListener("DOMContentLoaded", () => {
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue(name).trim();
  document.querySelectorAll("[data-plot]").forEach(async (box) => {
    const answer = await fetch(box.dataset.plot, { headers: { Accept: "application/json" } });
    if (!answer.ok) return;
    const drawn = await answer.json();
    if (!drawn.days.length) return;
    const axis = { stroke: colour("--dim"), grid: { stroke: colour("--line"), width: 1 }, ticks: { stroke: colour("--line"), width: 1 } };
    const bars = uPlot.paths.bars({ size: [0.6, 40] });
    const plot = new uPlot({
      width: box.clientWidth, height: 180, axes: [{ ...axis, space: 80, incrs: [1, 2, 7, 14, 30, 90, 365].map((days) => days * 86400), values: (self, at) => at.map((each) => new Date(each * 1000).toISOString().slice(0, 10)) }, { ...axis, size: 60 }],
      legend: { show: drawn.series.length > 1, live: false }, cursor: { drag: { x: false, y: false } },
      series: [{ label: "" }, ...drawn.series.map((each, place) => ({ label: each.name, stroke: colour(`--s${place + 1}`), fill: colour(`--s${place + 1}`), paths: bars, points: { show: false } }))],
      scales: { y: { range: (self, low, high) => [0, Math.max(1, high * 1.1)] } },
    }, [drawn.days.map((day) => Date.parse(day) / 1000), ...drawn.series.map((each) => each.values)], box);
    addEventListener("resize", () => plot.setSize({ width: box.clientWidth, height: 180 }));
    box.dataset.ready = "true";
  });
});
