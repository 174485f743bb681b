// Shows the panel of one node at a time. Without this script all panels are there, one below the other.
"use strict";
(() => {
  const root = document.documentElement;
  const panels = document.querySelectorAll(".panel");
  const nodes = document.querySelectorAll(".graph .node");
  const arcs = document.querySelectorAll(".graph .arc");
  if (!panels.length) return;
  root.classList.add("js");

  const show = (number) => {
    const near = new Set();
    for (const arc of arcs) {
      const touches = arc.dataset.from === number || arc.dataset.to === number;
      arc.classList.toggle("near", touches);
      arc.classList.toggle("far", !touches);
      if (touches) near.add(arc.dataset.from).add(arc.dataset.to);
    }
    for (const node of nodes) {
      const chosen = node.dataset.node === number;
      node.classList.toggle("chosen", chosen);
      node.classList.toggle("near", !chosen && near.has(node.dataset.node));
      if (chosen) node.setAttribute("aria-current", "true");
      else node.removeAttribute("aria-current");
    }
    for (const panel of panels) panel.classList.toggle("open", panel.id === "node-" + number);
    document.dispatchEvent(new CustomEvent("node-shown", { detail: number }));
  };

  const choose = (link) => {
    const number = link.dataset.node;
    const panel = document.getElementById("node-" + number);
    show(number);
    history.replaceState(null, "", "#node-" + number);
    // From far away, go to the panel; beside the graph it is in view already.
    const box = panel.getBoundingClientRect();
    const visible = box.top >= 0 && box.top < window.innerHeight * 0.75;
    if (!visible) panel.scrollIntoView({ block: "start" });
    if (!link.closest(".graph")) panel.focus({ preventScroll: true });
  };

  document.addEventListener("click", (event) => {
    const link = event.target.closest("[data-node]");
    if (!link || event.metaKey || event.ctrlKey || event.shiftKey) return;
    event.preventDefault();
    choose(link);
  });
  document.addEventListener("keydown", (event) => {
    const link = event.target.closest("[data-node]");
    if (link && (event.key === " " || event.key === "Enter")) {
      event.preventDefault();
      choose(link);
    }
  });
  window.addEventListener("beforeprint", () => {
    for (const part of document.querySelectorAll("details")) part.open = true;
  });

  const asked = /^#node-\d+$/.test(location.hash) && document.querySelector(location.hash);
  show((asked || document.querySelector(".panel.first") || panels[0]).id.slice(5));
})();
