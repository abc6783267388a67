// What the pages do beyond links and forms: news of other programs, keys, the slider. Without it, everything still works.
"use strict";
(() => {
  const root = document.documentElement;
  root.classList.add("has-js");
  // A request that a newer one or another page replaced is no error.
  htmx.logger = (element, name, detail) => {
    if (name === "htmx:sendAbort" || (name === "htmx:afterRequest" && detail.xhr && !detail.xhr.status)) detail.error = null;
  };
  const content = () => document.getElementById("content");

  // Another program, or another window, has changed something: show it, unless something is being typed.
  const isBusy = () => [...content().querySelectorAll("input:not([type=hidden], [type=range]), textarea")].some(
    (each) => each.value !== each.defaultValue || each.checked !== each.defaultChecked);
  const refresh = async () => {
    if (isBusy()) { document.getElementById("news").hidden = false; return; }
    const focused = document.activeElement && content().contains(document.activeElement) ? document.activeElement.id : "";
    const open = [...content().querySelectorAll("details")].map((each) => each.open);
    await htmx.ajax("GET", location.href, { target: "#content", select: "#content", swap: "outerHTML" }).catch(() => {});
    const again = [...content().querySelectorAll("details")];
    if (again.length === open.length) again.forEach((each, place) => { each.open = open[place]; });
    if (focused && document.getElementById(focused)) document.getElementById(focused).focus({ preventScroll: true });
  };
  // Browsers open six connections to a server at most, so only the window in front listens.
  let news = null;
  const listen = () => {
    if (news) news.close();
    news = document.hidden || !document.body.dataset.live ? null : new EventSource(`${document.body.dataset.live}?after=${document.body.dataset.seq}`);
    if (news) news.addEventListener("changed", (event) => { document.body.dataset.seq = event.data; refresh(); });
  };
  document.addEventListener("visibilitychange", listen);
  addEventListener("pagehide", () => news && news.close());
  listen();

  // On a phone the navigation is a row: show where we are.
  const here = document.querySelector("nav [aria-current]");
  if (here && here.closest("nav").scrollWidth > here.closest("nav").clientWidth) here.closest("nav").scrollLeft = here.offsetLeft - 60;

  const first = document.querySelector("[data-focus]");
  if (first && matchMedia("(min-width: 46rem)").matches && !location.hash) first.focus();

  // A choice that is its own button.
  document.querySelectorAll("[data-submit]").forEach((each) => each.addEventListener("change", () => each.form.submit()));

  // The slider names a time between the first memory and now.
  document.querySelectorAll("input[type=range][data-sets]").forEach((slider) => {
    const from = Date.parse(slider.dataset.from), to = Date.parse(slider.dataset.to);
    const field = document.getElementById(slider.dataset.sets);
    const chosen = Date.parse(slider.dataset.at);
    if (chosen) slider.value = 1000 * (chosen - from) / (to - from);
    const named = () => new Date(from + (to - from) * slider.value / 1000).toISOString().slice(0, 16);
    const say = () => slider.setAttribute("aria-valuetext", named().replace("T", " "));  // not "1000"
    const set = () => {
      field.value = slider.value === slider.max ? "" : named() + "Z";
      say();
    };
    say();
    slider.addEventListener("input", set);
    slider.addEventListener("change", () => { set(); slider.form.submit(); });
  });

  // Keys: / to search; in the inbox j and k to move, and the letter of each decision.
  const reviews = () => [...document.querySelectorAll("[data-review]")];
  const move = (step) => {
    const all = reviews(), at = all.indexOf(document.activeElement && document.activeElement.closest("[data-review]"));
    const next = all[Math.min(all.length - 1, Math.max(0, at + step))];
    if (next) { next.focus(); next.scrollIntoView({ block: "nearest" }); }
  };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, textarea, select")) return;
    if (event.key === "/") {
      const field = document.getElementById("q");
      event.preventDefault();
      if (field) field.focus(); else location.href = "/";
    } else if (event.key === "j" || event.key === "k") move(event.key === "j" ? 1 : -1);
    else {
      const here = event.target.closest("[data-review]") || (reviews().length ? reviews()[0] : null);
      const chosen = here && [...here.querySelectorAll("[data-key]")].find((each) => each.dataset.key === event.key);
      if (chosen) chosen.click();
    }
  });
})();
