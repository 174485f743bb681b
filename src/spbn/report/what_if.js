// What if? Rows drawn from the network, cut into cells: brushing an interval or choosing levels keeps the rows
// that satisfy it, and all charts count what is left.
"use strict";
(() => {
  const root = document.getElementById("explorer");
  if (!root) return;
  document.documentElement.classList.add("js");
  const CELLS = 5; // per bar
  const FEW = 100; // samples: fewer make rough charts
  const QUIET = 250; // milliseconds until the address and what is read aloud follow
  const KEY = "#what-if?";
  const MINUS = "\u2212";
  const given = JSON.parse(document.getElementById("explorer-data").textContent);
  const rows = given.rows;
  const canAsk = given.lags === 0; // no query takes conditions on several rows of time

  const element = (name, attributes = {}, ...children) => {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...children);
    return made;
  };
  const drawing = (name, attributes, ...children) => {
    const made = document.createElementNS(root.querySelector("svg").namespaceURI, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...children);
    return made;
  };

  // --- numbers -------------------------------------------------------------------------------------------

  const typeset = (text) => (/[1-9]/.test(text) ? text.replaceAll("-", MINUS).replace("+", "") : text.replace("-", ""));
  const formats = [];
  const grouped = (value, decimals) => {
    // Making a format takes a hundred times as long as using it.
    formats[decimals] ||= new Intl.NumberFormat("en-US", { maximumFractionDigits: decimals });
    return typeset(formats[decimals].format(value));
  };
  const count = (value) => grouped(value, 0);
  const percent = (share) =>
    share > 0 && share < 0.001 ? "<0.1\u00a0%" : grouped(100 * share, share < 0.0995 ? 1 : 0) + "\u00a0%";
  const edge = (axis, place) => {
    const number = (axis.first + place) * axis.digit;
    return axis.power >= 0 ? number * 10 ** axis.power : number / 10 ** -axis.power;
  };
  // Edges are written exactly; a mean deserves one digit more.
  const shown = (axis, value, more = 0) => {
    const size = Math.abs(value);
    if (axis.power < -6 || size >= 1e9) return typeset(String(Number(value.toPrecision(6))));
    return grouped(value, Math.max(0, more - axis.power));
  };

  // --- the samples ---------------------------------------------------------------------------------------

  const decoded = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const bytes = decoded(given.samples);
  let begin = 0;
  const variables = given.variables.map((found, number) => {
    const wide = found.bytes === 2;
    const codes = wide ? new Uint16Array(rows) : bytes.subarray(begin, begin + rows);
    if (wide) for (let i = 0; i < rows; i++) codes[i] = bytes[begin + 2 * i] + 256 * bytes[begin + 2 * i + 1];
    begin += wide ? 2 * rows : rows;
    const axis = found.axis || null;
    const low = axis ? axis.low.length : 0;
    const size = axis ? low + axis.cells + axis.high.length : found.levels.length;
    const values = new Float64Array(size);
    if (axis) {
      values.set(axis.low, 0);
      for (let i = 0; i < axis.cells; i++) values[low + i] = (edge(axis, i) + edge(axis, i + 1)) / 2;
      values.set(axis.high, low + axis.cells);
    }
    const prior = new Uint32Array(size);
    for (const code of codes) prior[code]++;
    return {
      number, name: found.name, levels: found.levels || null, axis, codes, values, prior,
      now: prior.slice(), low, condition: null, mask: null, pinned: false,
    };
  });
  const survivors = new Uint32Array(rows);
  let left = rows;

  // Conditions are [a, b], numbers of edges between which values are, or a set of levels.
  const clean = (variable, condition) => {
    if (!condition) return null;
    if (variable.axis) {
      const [a, b] = condition;
      return a <= 0 && b >= variable.axis.cells ? null : [a, b];
    }
    return condition.size && condition.size < variable.levels.length ? condition : null;
  };
  const mask = (variable) => {
    const { axis, codes, condition } = variable;
    if (!condition) return null;
    const kept = new Uint8Array(variable.values.length);
    if (axis) {
      // At an end of the axis there is no limit: its tail is included.
      const from = condition[0] <= 0 ? 0 : variable.low + condition[0];
      const to = condition[1] >= axis.cells ? kept.length : variable.low + condition[1];
      kept.fill(1, from, to);
    } else for (const level of condition) kept[level] = 1;
    const found = new Uint8Array(rows);
    for (let i = 0; i < rows; i++) found[i] = kept[codes[i]];
    return found;
  };
  const recount = () => {
    const masks = variables.map((variable) => variable.mask).filter(Boolean);
    left = 0;
    for (let i = 0; i < rows; i++) {
      let stays = 1;
      for (const found of masks) stays &= found[i];
      survivors[left] = i;
      left += stays;
    }
    for (const { codes, now } of variables) {
      now.fill(0);
      for (let i = 0; i < left; i++) now[codes[survivors[i]]]++;
    }
  };

  const total = (counts) => counts.reduce((sum, value) => sum + value, 0);
  const mean = (variable, counts) => {
    let sum = 0;
    for (let i = 0; i < counts.length; i++) sum += counts[i] * variable.values[i];
    return sum / total(counts);
  };
  const quantile = (variable, counts, share) => {
    const { axis, low, values } = variable;
    let missing = share * total(counts);
    for (let i = 0; i < counts.length; i++) {
      if (counts[i] && missing <= counts[i]) {
        const inside = i >= low && i < low + axis.cells;
        if (!inside) return values[i];
        const start = edge(axis, i - low);
        return start + ((edge(axis, i - low + 1) - start) * missing) / counts[i];
      }
      missing -= counts[i];
    }
    return values[values.length - 1];
  };
  const bars = (variable, counts) => {
    const { axis, low } = variable;
    if (!axis) return Array.from(counts);
    const found = new Array(axis.cells / CELLS).fill(0);
    for (let i = 0; i < axis.cells; i++) found[Math.floor(i / CELLS)] += counts[low + i];
    if (low) found.unshift(total(counts.slice(0, low)));
    if (axis.high.length) found.push(total(counts.slice(low + axis.cells)));
    return found;
  };
  const change = (variable) => {
    if (!left) return 0;
    const before = bars(variable, variable.prior);
    return bars(variable, variable.now).reduce((sum, n, i) => sum + Math.abs(n / left - before[i] / rows), 0) / 2;
  };

  // --- words ---------------------------------------------------------------------------------------------

  const joined = (parts, last) =>
    parts.length < 2 ? parts.join("") : parts.slice(0, -1).join(", ") + ` ${last} ` + parts[parts.length - 1];
  const ends = ({ axis, condition: [a, b] }) => [
    a <= 0 ? null : edge(axis, a), b >= axis.cells ? null : edge(axis, b),
  ];
  const chosen = ({ levels, condition }) => levels.filter((_, place) => condition.has(place));
  const words = (variable) => {
    const { axis, name } = variable;
    if (!axis) return `${name} is ${joined(chosen(variable), "or")}`;
    const [low, high] = ends(variable);
    if (low === null) return `${name} is at most ${shown(axis, high)}`;
    if (high === null) return `${name} is at least ${shown(axis, low)}`;
    return `${name} is between ${shown(axis, low)} and ${shown(axis, high)}`;
  };
  const conditioned = () => variables.filter((variable) => variable.condition);
  const question = () => {
    const known = conditioned();
    if (!known.length) return "Nothing selected yet: pick a value to see what changes.";
    return `If ${joined(known.map(words), "and")}: what is likely then?`;
  };
  const remaining = () =>
    left === rows ? `${count(rows)} samples` : `${count(left)} of ${count(rows)} samples left (${percent(left / rows)})`;
  const python = () => {
    const literal = (variable) => {
      if (!variable.axis) return `{${chosen(variable).map((level) => JSON.stringify(level)).join(", ")}}`;
      return `(${ends(variable).map((end) => (end === null ? "None" : String(end))).join(", ")})`;
    };
    const parts = conditioned().map((variable) => `${JSON.stringify(variable.name)}: ${literal(variable)}`);
    return `network.query({${parts.join(", ")}})`;
  };

  // --- the address ---------------------------------------------------------------------------------------

  const address = () => {
    const parts = conditioned().map((variable) => {
      const value = variable.axis
        ? ends(variable).map((end) => (end === null ? "" : String(end))).join("..")
        : chosen(variable).map(encodeURIComponent).join(",");
      return `${encodeURIComponent(variable.name)}=${value}`;
    });
    const pins = pinned.map((variable) => encodeURIComponent(variable.name));
    if (pins.length) parts.push(`:pins=${pins.join(",")}`); // in a name the colon would be written %3A
    return KEY + parts.join("&");
  };
  const nearest = (axis, text, open) => {
    const value = Number(text);
    if (text === "" || !Number.isFinite(value)) return open;
    const width = edge(axis, 1) - edge(axis, 0);
    return Math.min(axis.cells, Math.max(0, Math.round((value - edge(axis, 0)) / width)));
  };
  const restore = (hash) => {
    for (const variable of variables) variable.condition = null;
    pinned.length = 0;
    const read = (text) => { try { return decodeURIComponent(text); } catch { return text; } };
    for (const part of hash.slice(KEY.length).split("&")) {
      const [key, value = ""] = part.split("=");
      const named = (name) => variables.find((variable) => variable.name === read(name));
      if (key === ":pins") {
        pinned.push(...new Set(value.split(",").map(named).filter(Boolean)));
        continue;
      }
      const variable = named(key);
      if (!variable) continue;
      let condition;
      if (variable.axis) {
        const [low, high = ""] = value.split("..");
        const a = nearest(variable.axis, low, 0);
        const b = nearest(variable.axis, high, variable.axis.cells);
        condition = [Math.min(a, variable.axis.cells - 1), Math.max(b, a + 1)];
      } else {
        const wanted = value.split(",").map(read);
        condition = new Set(variable.levels.flatMap((level, place) => (wanted.includes(level) ? [place] : [])));
      }
      variable.condition = clean(variable, condition);
    }
    for (const variable of variables) variable.mask = mask(variable);
  };

  // --- what is seen --------------------------------------------------------------------------------------

  const part = (name) => root.querySelector(`.${name}`);
  const list = part("variables");
  const pinned = [];
  let order = variables.slice();

  const path = (heights, tallest) =>
    heights.map((height, i) => (height ? `M${i + 0.06} 100V${(100 - (100 * height) / tallest).toFixed(2)}h0.88V100z` : "")).join("");

  const histogram = (variable) => {
    const { axis } = variable;
    const before = bars(variable, variable.prior);
    const slots = before.length;
    const first = variable.low ? 1 : 0;
    const prior = drawing("path", { class: "prior" });
    const now = drawing("path", { class: "now" });
    const box = drawing(
      "svg", { viewBox: `0 0 ${slots} 100`, preserveAspectRatio: "none", "aria-hidden": "true" }, prior, now,
    );
    const inner = element("div", { class: "chosen" });
    const limits = { "aria-valuemin": edge(axis, 0), "aria-valuemax": edge(axis, axis.cells) };
    const handle = (end, label) =>
      element("div", { class: `handle ${end}`, role: "slider", tabindex: "0", "aria-label": label, ...limits });
    const handles = [handle("from", `${variable.name}: at least`), handle("to", `${variable.name}: at most`)];
    const brush = element("div", { class: "brush" }, box, inner, ...handles);
    const middle = Math.round(axis.cells / 2 / CELLS) * CELLS;
    const at = (place) => (100 * (first + place / CELLS)) / slots;
    const ticks = [0, middle, axis.cells].map((place) => {
      const sign = place === 0 && variable.low ? "\u2264\u2009" : place && place === axis.cells && axis.high.length ? "\u2265\u2009" : "";
      const tick = element("span", {}, sign + shown(axis, edge(axis, place)));
      if (place === middle) tick.style.left = `${at(place)}%`;
      return tick;
    });

    const place = (event) => {
      const { left: start, width } = brush.getBoundingClientRect();
      const cell = Math.round((((event.clientX - start) / width) * slots - first) * CELLS);
      return Math.min(axis.cells, Math.max(0, cell));
    };
    const extent = () => variable.condition || [0, axis.cells];
    let drag = null;
    brush.addEventListener("pointerdown", (event) => {
      if (event.button) return;
      const start = place(event);
      const [a, b] = extent();
      const grip = event.target.closest(".handle");
      const inside = variable.condition && start > a && start < b;
      drag = { start, a, b, moved: false, kind: grip ? (grip === handles[0] ? "from" : "to") : inside ? "move" : "new" };
      brush.setPointerCapture(event.pointerId);
      brush.classList.add("pointed");
      // The slider that was taken hold of can then be moved by keys.
      (grip || handles[1]).focus({ preventScroll: true });
      event.preventDefault();
    });
    brush.addEventListener("pointermove", (event) => {
      if (!drag) return;
      const here = place(event);
      if (here === drag.start && !drag.moved) return;
      drag.moved = true;
      const { start, a, b, kind } = drag;
      const last = axis.cells;
      if (kind === "new") set(variable, here < start ? [here, start] : [start, Math.max(here, start + 1)]);
      else if (kind === "from") set(variable, [Math.min(here, b - 1), b]);
      else if (kind === "to") set(variable, [a, Math.max(here, a + 1)]);
      else {
        const shift = Math.min(last - b, Math.max(-a, here - start));
        set(variable, [a + shift, b + shift]);
      }
    });
    const finish = () => {
      if (drag && !drag.moved && (drag.kind === "new" || drag.kind === "move")) set(variable, null);
      drag = null;
    };
    brush.addEventListener("pointerup", finish);
    brush.addEventListener("pointercancel", () => { drag = null; });
    brush.addEventListener("keydown", (event) => {
      const side = handles.indexOf(event.target);
      if (side < 0) return;
      brush.classList.remove("pointed");
      const [a, b] = extent();
      const own = side ? b : a;
      const steps = {
        ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageDown: -CELLS, PageUp: CELLS,
        Home: -axis.cells, End: axis.cells,
      };
      if (event.key === "Escape" || event.key === "Delete" || event.key === "Backspace") set(variable, null);
      else if (event.key in steps) {
        const there = own + steps[event.key] * (event.shiftKey ? CELLS : 1);
        const bounded = side ? Math.min(axis.cells, Math.max(a + 1, there)) : Math.max(0, Math.min(b - 1, there));
        set(variable, side ? [a, bounded] : [bounded, b]);
      } else return;
      event.preventDefault();
    });

    const draw = () => {
      const after = bars(variable, variable.now);
      const shares = before.map((n) => n / rows);
      const found = after.map((n) => (left ? n / left : 0));
      const tallest = Math.max(...shares, ...found);
      prior.setAttribute("d", path(shares, tallest));
      now.setAttribute("d", path(found, tallest));
      const [a, b] = extent();
      const from = a <= 0 ? 0 : at(a);
      const to = b >= axis.cells ? 100 : at(b);
      inner.style.left = `${from}%`;
      inner.style.width = `${to - from}%`;
      handles[0].style.left = `${from}%`;
      handles[1].style.left = `${to}%`;
      [[0, a, a <= 0], [1, b, b >= axis.cells]].forEach(([side, end, open]) => {
        handles[side].setAttribute("aria-valuenow", edge(axis, end));
        handles[side].setAttribute("aria-valuetext", open ? "no limit" : shown(axis, edge(axis, end)));
      });
    };
    return { parts: [brush, element("div", { class: "ticks" }, ...ticks)], draw };
  };

  const levelBars = (variable) => {
    const lines = variable.levels.map((level, number) => {
      const prior = element("i", { class: "prior" });
      const now = element("i", { class: "now" });
      const share = element("span", { class: "share" });
      const button = element(
        "button", { type: "button", class: "level" },
        element("span", { class: "name" }, level), element("span", { class: "bar" }, prior, now), share,
      );
      button.addEventListener("click", () => {
        const wanted = new Set(variable.condition || []);
        if (!wanted.delete(number)) wanted.add(number);
        set(variable, wanted);
      });
      return { button, prior, now, share };
    });
    const draw = () => {
      const tallest = Math.max(...variable.prior.map((n) => (1e6 * n) / rows), ...variable.now.map((n) => (left ? (1e6 * n) / left : 0))) / 1e6;
      lines.forEach(({ button, prior, now, share }, place) => {
        const after = left ? variable.now[place] / left : 0;
        prior.style.width = `${(100 * variable.prior[place]) / rows / tallest}%`;
        now.style.width = `${(100 * after) / tallest}%`;
        share.textContent = left ? percent(after) : "\u2013";
        button.title = `${percent(variable.prior[place] / rows)} before`;
        button.setAttribute("aria-pressed", Boolean(variable.condition && variable.condition.has(place)));
      });
    };
    const group = element(
      "div", { class: "levels", role: "group", "aria-label": `Levels of ${variable.name}` }, ...lines.map((line) => line.button),
    );
    return { parts: [group], draw };
  };

  const numbers = (variable) => {
    if (!left) return "no samples left";
    if (!variable.axis) {
      const place = variable.now.indexOf(Math.max(...variable.now));
      const many = variable.levels.length > 7 ? `; ${variable.levels.length} levels, scroll to see all` : "";
      return `most likely: ${variable.levels[place]}${many}`;
    }
    const { axis, now, prior } = variable;
    const [low, high] = [0.05, 0.95].map((share) => shown(axis, quantile(variable, now, share)));
    const before = left < rows ? ` (${shown(axis, mean(variable, prior), 1)} before)` : "";
    return `mean ${shown(axis, mean(variable, now), 1)}${before}, 90\u00a0% in ${low} to ${high}`;
  };

  const card = (variable) => {
    const pin = element("button", { type: "button", class: "pin", title: "Pin to the top", "aria-label": `Pin ${variable.name}` }, "\u2691");
    const clear = element("button", { type: "button", class: "clear", title: "Forget this", "aria-label": `Forget ${variable.name}` }, "\u00d7");
    const line = element("p", { class: "numbers" });
    const chart = variable.axis ? histogram(variable) : levelBars(variable);
    const box = element(
      "li", { class: "variable card", "data-variable": variable.number },
      element("header", {}, element("h3", {}, variable.name), clear, pin), line, ...chart.parts,
    );
    pin.addEventListener("click", () => {
      const place = pinned.indexOf(variable);
      if (place < 0) pinned.push(variable);
      else pinned.splice(place, 1);
      arrange();
      settle();
    });
    clear.addEventListener("click", () => {
      set(variable, null);
      (box.querySelector(".handle, .level") || pin).focus({ preventScroll: true });
    });
    const draw = () => {
      chart.draw();
      const known = Boolean(variable.condition);
      box.classList.toggle("known", known);
      clear.hidden = !known;
      line.textContent = numbers(variable);
      if (variable.axis) box.dataset.mean = left ? mean(variable, variable.now) : "";
    };
    const mark = () => pin.setAttribute("aria-pressed", pinned.includes(variable));
    return { box, draw, mark };
  };

  const cards = variables.map(card);
  const search = part("search");

  const arrange = () => {
    const focused = document.activeElement;
    const rest = order.filter((variable) => !pinned.includes(variable));
    list.append(...[...pinned, ...rest].map((variable) => cards[variable.number].box));
    if (list.contains(focused) && focused !== document.activeElement) focused.focus({ preventScroll: true });
    filter();
    for (const { mark } of cards) mark();
  };
  const filter = () => {
    const wanted = search.value.trim().toLowerCase();
    let hidden = 0;
    for (const variable of variables) {
      const found = variable.condition || pinned.includes(variable) || variable.name.toLowerCase().includes(wanted);
      cards[variable.number].box.hidden = !found;
      hidden += found ? 0 : 1;
    }
    part("hidden").textContent = hidden ? `${count(hidden)} ${hidden === 1 ? "variable" : "variables"} not shown` : "";
  };
  const draw = () => {
    recount();
    for (const { draw: paint } of cards) paint();
    root.dataset.left = left;
    part("question").textContent = question();
    part("remaining").textContent = remaining();
    part("meter").firstElementChild.style.width = `${(100 * left) / rows}%`;
    const few = left < Math.min(FEW, rows);
    part("few").hidden = !few;
    part("few").textContent = left
      ? `Only ${count(left)} ${left === 1 ? "sample is" : "samples are"} left, so the charts are rough.${canAsk ? " For a precise answer, ask the network itself." : ""}`
      : `No sample is left: this is too unlikely for these samples. Widen an interval${canAsk ? ", or ask the network itself" : ""}.`;
    part("code").textContent = python();
    part("itself").hidden = !canAsk || !conditioned().length;
    part("reset").disabled = !conditioned().length;
    part("link").setAttribute("href", address());
  };

  let frame = 0;
  let timer = 0;
  const settle = () => {
    part("link").setAttribute("href", address());
    clearTimeout(timer);
    timer = setTimeout(() => {
      part("spoken").textContent = `${question()} ${remaining()}.`;
      const idle = !conditioned().length && !pinned.length;
      if (!idle || location.hash.startsWith(KEY)) {
        history.replaceState(null, "", idle ? "#what-if" : address());
      }
    }, QUIET);
  };
  const set = (variable, condition) => {
    variable.condition = clean(variable, condition);
    variable.mask = mask(variable);
    if (!frame) {
      frame = requestAnimationFrame(() => {
        frame = 0;
        draw();
      });
    }
    settle();
  };

  part("reset").addEventListener("click", () => {
    for (const variable of variables) set(variable, null);
  });
  part("changed").addEventListener("click", () => {
    const sizes = variables.map(change);
    order = variables.slice().sort((a, b) => sizes[b.number] - sizes[a.number]);
    arrange();
  });
  part("sorted").addEventListener("click", () => {
    order = variables.slice();
    arrange();
  });
  search.addEventListener("input", filter);
  const open = () => {
    if (!location.hash.startsWith(KEY)) return;
    restore(location.hash);
    draw();
    arrange();
    if (document.querySelectorAll("main > section").length > 1) root.scrollIntoView({ block: "start" });
  };
  window.addEventListener("hashchange", open);

  if (location.hash.startsWith(KEY)) open();
  else {
    draw();
    arrange();
  }
})();
