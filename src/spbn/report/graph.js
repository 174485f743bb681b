// Large graphs: zoom, fit, find a node, and show one with its parents and children alone.
"use strict";
(() => {
  const tools = document.querySelector(".graph-tools");
  if (!tools) return;
  const box = document.querySelector("#graph .scroll");
  const graph = box.querySelector(".graph");
  const nodes = [...graph.querySelectorAll(".node")];
  const arcs = [...graph.querySelectorAll(".arc")];
  const part = (name) => tools.querySelector(`.${name}`);
  const { width, height } = graph.viewBox.baseVal;
  const SMALLEST = 0.1, LARGEST = 3, LEGIBLE = 0.9, STEP = 1.3, WIDEST = 640, GAP = 18, ROW = 84;
  let scale = 1;
  let chosen = null;
  let near = null; // the drawing of the neighbourhood, while it is shown
  box.classList.add("pane");

  const resize = (wanted, x = box.clientWidth / 2, y = box.clientHeight / 2) => {
    const before = scale;
    scale = Math.min(LARGEST, Math.max(SMALLEST, wanted));
    const left = ((box.scrollLeft + x) * scale) / before - x;
    const top = ((box.scrollTop + y) * scale) / before - y;
    Object.assign(graph.style, { width: `${width * scale}px`, minWidth: "0", maxWidth: "none" });
    box.scrollTo({ left, top, behavior: "instant" });
  };
  const fit = () => {
    const limit = parseFloat(getComputedStyle(box).maxHeight) || innerHeight * 0.75;
    resize(Math.min(box.clientWidth / width, limit / height, 1.5));
  };
  const centre = (node) => {
    if (scale < LEGIBLE) resize(LEGIBLE);
    const place = node.querySelector("ellipse");
    box.scrollTo({
      left: place.cx.baseVal.value * scale - box.clientWidth / 2,
      top: place.cy.baseVal.value * scale - box.clientHeight / 2,
      behavior: "instant",
    });
  };

  // --- find ----------------------------------------------------------------------------------------------

  const search = part("search");
  const matches = () => {
    const wanted = search.value.trim().toLowerCase();
    if (!wanted) return [];
    const rank = (node) => (node.dataset.name.toLowerCase() === wanted ? 0 : node.dataset.name.toLowerCase().startsWith(wanted) ? 1 : 2);
    return nodes.filter((node) => node.dataset.name.toLowerCase().includes(wanted)).sort((a, b) => rank(a) - rank(b));
  };
  const mark = () => {
    const found = new Set(matches());
    for (const node of nodes) node.classList.toggle("lost", Boolean(search.value.trim()) && !found.has(node));
    part("matches").textContent = search.value.trim() ? `${found.size} found` : "";
    return found;
  };
  search.addEventListener("input", () => {
    const [first] = mark();
    if (first && !near) centre(first);
  });
  search.addEventListener("keydown", (event) => {
    if (event.key === "Escape") {
      search.value = "";
      mark();
    }
    const [first] = matches();
    if (event.key !== "Enter" || !first) return;
    event.preventDefault();
    first.dispatchEvent(new MouseEvent("click", { bubbles: true, cancelable: true }));
    if (!near) centre(first);
  });

  // --- neighbourhood -------------------------------------------------------------------------------------

  const made = (name, attributes, ...children) => {
    const found = document.createElementNS(graph.namespaceURI, name);
    for (const [key, value] of Object.entries(attributes)) found.setAttribute(key, value);
    found.append(...children);
    return found;
  };
  const radii = (node) => {
    const { rx, ry } = node.querySelector("ellipse");
    return [rx.baseVal.value, ry.baseVal.value];
  };
  const lines = (members) => {
    const rows = [];
    let used = Infinity;
    for (const node of members) {
      const wide = 2 * radii(node)[0] + GAP;
      if (used + wide > WIDEST) {
        rows.push([]);
        used = 0;
      }
      rows[rows.length - 1].push(node);
      used += wide;
    }
    return rows;
  };
  const arrow = (arc, from, to) => {
    // From the rim of one ellipse to that of the other.
    const step = [to.x - from.x, to.y - from.y];
    const rim = ({ rx, ry }) => 1 / Math.max(1e-9, Math.hypot(step[0] / (rx + 2), step[1] / (ry + 2)));
    const start = [from.x + step[0] * rim(from), from.y + step[1] * rim(from)];
    const tip = [to.x - step[0] * rim(to), to.y - step[1] * rim(to)];
    const length = Math.hypot(...step);
    const [dx, dy] = step.map((value) => value / length);
    const base = [tip[0] - 9 * dx, tip[1] - 9 * dy];
    const line = arc.querySelector("path");
    const attributes = { d: `M${start}L${base}`, "stroke-width": line.getAttribute("stroke-width") };
    if (line.hasAttribute("stroke-dasharray")) attributes["stroke-dasharray"] = line.getAttribute("stroke-dasharray");
    const title = arc.querySelector("title").cloneNode(true);
    const head = [tip, [base[0] - 4 * dy, base[1] + 4 * dx], [base[0] + 4 * dy, base[1] - 4 * dx]];
    return made("g", { class: "arc near" }, title, made("path", attributes), made("polygon", { points: head.join(" ") }));
  };
  const members = [...nodes, ...graph.querySelectorAll(".input")]; // of a network over time
  const place_of = (member) => member.dataset.node ?? member.dataset.input;
  const neighbourhood = (number) => {
    const numbered = (wanted) => members.find((member) => place_of(member) === wanted);
    const into = arcs.filter((arc) => arc.dataset.to === number);
    const out = arcs.filter((arc) => arc.dataset.from === number);
    const rows = [
      ...lines(into.map((arc) => numbered(arc.dataset.from))), [numbered(number)],
      ...lines(out.map((arc) => numbered(arc.dataset.to))),
    ];
    const wide = Math.max(...rows.map((row) => row.reduce((sum, node) => sum + 2 * radii(node)[0] + GAP, 0)));
    const places = new Map();
    const copies = rows.flatMap((row, line) => {
      let x = (wide - row.reduce((sum, node) => sum + 2 * radii(node)[0] + GAP, 0)) / 2;
      return row.map((node) => {
        const [rx, ry] = radii(node);
        const place = { x: x + rx + GAP / 2, y: (line + 0.5) * ROW, rx, ry };
        x += 2 * rx + GAP;
        places.set(place_of(node), place);
        const copy = node.cloneNode(true);
        const { cx, cy } = node.querySelector("ellipse");
        copy.classList.remove("lost", "near", "chosen");
        if (place_of(node) === number) copy.classList.add("chosen");
        return made("g", { transform: `translate(${place.x - cx.baseVal.value} ${place.y - cy.baseVal.value})` }, copy);
      });
    });
    const drawn = [...into, ...out].map((arc) => arrow(arc, places.get(arc.dataset.from), places.get(arc.dataset.to)));
    const name = numbered(number).dataset.name;
    const view = made(
      "svg",
      { class: "graph neighbourhood", viewBox: `0 0 ${wide} ${rows.length * ROW}`, role: "group", "aria-label": `${name} with its parents and children` },
      ...drawn, ...copies,
    );
    view.style.maxWidth = `${1.3 * wide}px`;
    return view;
  };
  const refresh = () => {
    const focused = near && near.contains(document.activeElement);
    if (near) near.remove();
    near = part("near").getAttribute("aria-pressed") === "true" && chosen !== null ? neighbourhood(chosen) : null;
    graph.style.display = near ? "none" : "";
    for (const name of ["in", "out", "fit"]) part(name).disabled = Boolean(near);
    if (near) box.append(near);
    if (near && focused) near.querySelector(".chosen").focus({ preventScroll: true });
  };
  part("near").addEventListener("click", (event) => {
    const button = event.currentTarget;
    button.setAttribute("aria-pressed", button.getAttribute("aria-pressed") !== "true");
    refresh();
    const node = nodes.find((other) => other.dataset.node === chosen);
    if (!near && node) centre(node);
  });
  document.addEventListener("node-shown", (event) => {
    chosen = event.detail;
    if (near) refresh();
  });

  // --- zoom and pan --------------------------------------------------------------------------------------

  part("in").addEventListener("click", () => resize(scale * STEP));
  part("out").addEventListener("click", () => resize(scale / STEP));
  part("fit").addEventListener("click", fit);
  box.addEventListener("wheel", (event) => {
    if (near || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    const { left, top } = box.getBoundingClientRect();
    resize(scale * STEP ** Math.sign(-event.deltaY), event.clientX - left, event.clientY - top);
  }, { passive: false });
  let held = null;
  box.addEventListener("pointerdown", (event) => {
    if (event.pointerType !== "mouse" || event.button || event.target.closest(".node")) return;
    held = { x: event.clientX + box.scrollLeft, y: event.clientY + box.scrollTop };
    box.setPointerCapture(event.pointerId);
  });
  box.addEventListener("pointermove", (event) => {
    if (held) box.scrollTo({ left: held.x - event.clientX, top: held.y - event.clientY, behavior: "instant" });
  });
  for (const name of ["pointerup", "pointercancel"]) box.addEventListener(name, () => { held = null; });
  window.addEventListener("beforeprint", () => graph.removeAttribute("style"));
  queueMicrotask(fit); // once all scripts have run, and panels that are not shown need no room
})();
