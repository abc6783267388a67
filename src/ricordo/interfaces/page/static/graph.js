// The graph: the server has computed the places; a click opens a person or thing, or goes to a fact.
"use strict";
addEventListener("DOMContentLoaded", async () => {
  const box = document.getElementById("graph");
  if (!box) return;
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue(name).trim();
  const colours = { person: "--s1", place: "--s3", organization: "--s4", project: "--s5", concept: "--s2", tool: "--s6", fact: "--line", you: "--accent" };
  const answer = await fetch(box.dataset.from, { headers: { Accept: "application/json" } });
  if (!answer.ok) return;
  const drawn = await answer.json();
  const graph = new graphology.Graph({ multi: true });
  for (const each of drawn.nodes) {
    graph.addNode(each.id, { x: each.x, y: each.y, label: each.name, kind: each.kind, color: colour(colours[each.kind] || "--s6"), size: each.kind === "fact" ? 4 : 5 + Math.min(9, Math.sqrt(each.weight + each.ties)) });
  }
  for (const each of drawn.edges) graph.addEdge(each.source, each.target, { label: each.name, color: colour("--line"), size: each.name ? 2 : 1 });
  const renderer = new Sigma(graph, box, {
    labelColor: { color: colour("--ink") }, edgeLabelColor: { color: colour("--dim") }, renderEdgeLabels: true,
    labelFont: "system-ui, sans-serif", labelSize: 12, edgeLabelSize: 10, labelRenderedSizeThreshold: 4, labelDensity: 4, labelGridCellSize: 60, stagePadding: 50, allowInvalidContainer: true, zIndex: true,
    defaultDrawNodeHover: (context, data, settings) => {
      context.font = `600 ${settings.labelSize}px ${settings.labelFont}`;
      const width = context.measureText(data.label || "").width;
      context.fillStyle = colour("--card");
      context.fillRect(data.x + data.size, data.y - 11, width + 12, 22);
      context.fillStyle = colour("--ink");
      context.fillText(data.label || "", data.x + data.size + 6, data.y + 4);
    },
  });
  renderer.on("clickNode", ({ node }) => {
    const kind = graph.getNodeAttribute(node, "kind");
    if (kind === "you") return;
    if (kind === "fact") { location.href = `/page/memory?id=${encodeURIComponent(node)}`; return; }
    const query = new URLSearchParams(location.search);
    const open = query.getAll("open");
    query.delete("open");
    (open.includes(node) ? open.filter((id) => id !== node) : [...open, node]).forEach((id) => query.append("open", id));
    location.search = query.toString();
  });
  box.dataset.ready = "true";
});
