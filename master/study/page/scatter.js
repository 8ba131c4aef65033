"use strict";
// Draws the scatter matrix of a study.
(() => {
  const root = document.getElementById("scatter");
  if (!root) return;
  const data = JSON.parse(document.getElementById("rows").textContent);
  const columns = data.columns, most = 6;
  for (const c of columns) {
    [c.low, c.high] = c.ends;
    const room = c.labels ? 0.5 : (c.high - c.low) * 0.04 || Math.abs(c.low) * 0.04 || 1;
    c.from = c.low - room;
    c.span = c.high - c.low + 2 * room;
  }
  const text = (c, v) => v === null ? "–" : c.labels ? c.labels[v] : String(v);

  // Choices survive the refresh of the page of a running study.
  const key = "macrostep " + location.pathname;
  let kept = {};
  try { kept = JSON.parse(sessionStorage.getItem(key)) || {}; } catch { /* storage may be forbidden */ }
  const known = (list) => Array.isArray(list) && list.every((k) => columns[k]) && list.length > 0;
  const range = (from, to) => Array.from({length: Math.min(to - from, most)}, (_, i) => from + i);
  const chosen = {
    Columns: known(kept.Columns) ? kept.Columns : range(0, data.factors),
    Rows: known(kept.Rows) ? kept.Rows : range(data.factors, columns.length),
  };
  let run = data.runs.indexOf(kept.run);
  const keep = () => {
    try { sessionStorage.setItem(key, JSON.stringify({...chosen, run: data.runs[run], y: scrollY})); } catch { /* as above */ }
  };

  const make = (name, parent, props) => {
    const e = Object.assign(document.createElement(name), props);
    parent.append(e);
    return e;
  };
  // named adds a name that may break after a bracket or a dot.
  const named = (parent, name) => {
    const b = make("b", parent);
    for (const part of name.split(/(?<=[(.])/)) b.append(part, document.createElement("wbr"));
  };
  const choice = make("details", root, {open: data.factors > most || columns.length - data.factors > most});
  make("summary", choice, {textContent: "Choose rows and columns"});
  for (const axis of ["Columns", "Rows"]) {
    const set = make("fieldset", choice);
    make("legend", set, {textContent: axis});
    columns.forEach((c, k) => {
      const label = make("label", set);
      const box = make("input", label, {type: "checkbox", checked: chosen[axis].includes(k)});
      label.append(" " + c.name);
      box.addEventListener("change", () => {
        chosen[axis] = columns.map((_, i) => i).filter((i) => i === k ? box.checked : chosen[axis].includes(i));
        keep();
        build();
      });
    });
  }
  const told = make("div", root, {className: "told"});
  const label = make("label", told, {textContent: "run "});
  const number = make("input", label, {type: "number", min: 0, placeholder: "number"});
  told.append(" ");
  const output = make("output", told);
  const wide = make("div", root, {className: "wide", tabIndex: 0, role: "group", ariaLabel: "scatter matrix"});
  let cells = [];

  const observer = new ResizeObserver((entries) => { for (const e of entries) draw(cells.find((c) => c.el === e.target)); });

  function build() {
    observer.disconnect();
    wide.replaceChildren();
    cells = [];
    const matrix = make("div", wide, {className: "matrix"});
    matrix.style.gridTemplateColumns = `6.5rem repeat(${chosen.Columns.length},minmax(7rem,1fr))`;
    for (const y of chosen.Rows) {
      const c = columns[y], side = make("div", matrix, {className: "row"});
      make("span", side, {textContent: text(c, c.high)});
      named(side, c.name);
      make("span", side, {textContent: text(c, c.low)});
      for (const x of chosen.Columns) {
        const el = make("div", matrix, {className: "cell", role: "img", ariaLabel: `${c.name} over ${columns[x].name}`}), cell = {el, x: columns[x], y: c, canvas: make("canvas", el), dot: make("i", el, {hidden: true})};
        cells.push(cell);
        el.addEventListener("pointermove", (e) => pick(cell, e));
        el.addEventListener("pointerdown", (e) => pick(cell, e));
      }
    }
    make("span", matrix);
    for (const x of chosen.Columns) {
      const c = columns[x], foot = make("div", matrix, {className: "column"});
      for (const v of [c.low, c.high]) make("span", foot, {textContent: text(c, v)});
      named(foot, c.name);
    }
    for (const c of cells) draw(c);
    for (const c of cells) observer.observe(c.el);
    show(run);
  }

  // place returns where a run is in a cell, as parts of its width and height; null if it has no value.
  const place = (c, i) => {
    const x = c.x.values[i], y = c.y.values[i];
    return x === null || y === null ? null : [(x - c.x.from) / c.x.span, 1 - (y - c.y.from) / c.y.span];
  };

  function draw(c) {
    if (!c) return;
    const scale = Math.min(devicePixelRatio || 1, 2), w = Math.round(c.el.clientWidth * scale), h = Math.round(c.el.clientHeight * scale);
    if (!w || !h) return;
    c.canvas.width = w;
    c.canvas.height = h;
    const g = c.canvas.getContext("2d"), n = data.runs.length, size = scale * (n > 3000 ? 1.5 : n > 300 ? 2 : 3.5);
    g.fillStyle = getComputedStyle(document.documentElement).getPropertyValue("--line");
    g.globalAlpha = Math.max(0.25, Math.min(0.8, 200 / Math.sqrt(n) / 10));
    for (let i = 0; i < n; i++) {
      const p = place(c, i);
      if (p) g.fillRect(p[0] * w - size / 2, p[1] * h - size / 2, size, size);
    }
    root.dataset.drawn = String(Math.round(performance.now()));
  }

  function pick(c, e) {
    const r = c.canvas.getBoundingClientRect(), x = e.clientX - r.left, y = e.clientY - r.top;
    let best = -1, least = 15 * 15;
    for (let i = 0; i < data.runs.length; i++) {
      const p = place(c, i);
      if (!p) continue;
      const d = (p[0] * r.width - x) ** 2 + (p[1] * r.height - y) ** 2;
      if (d < least) { least = d; best = i; }
    }
    if (best >= 0 && best !== run) show(best);
  }

  function show(i) {
    run = i;
    for (const c of cells) {
      const p = i < 0 ? null : place(c, i);
      c.dot.hidden = !p;
      if (p) { c.dot.style.left = 100 * p[0] + "%"; c.dot.style.top = 100 * p[1] + "%"; }
    }
    output.replaceChildren();
    if (i < 0) {
      output.textContent = number.value === "" ? matchMedia("(pointer: coarse)").matches ? "Tap a run to see its values." : "Point at a run to see its values." : "This run is not drawn.";
      return;
    }
    if (document.activeElement !== number) number.value = data.runs[i];
    for (const c of columns) {
      make("b", output, {textContent: c.name});
      output.append("\u00a0= " + text(c, c.values[i]) + "  ");
    }
  }

  number.addEventListener("input", () => { show(number.value === "" ? -1 : data.runs.indexOf(+number.value)); });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => cells.forEach(draw));
  addEventListener("pagehide", keep);
  build();
  if (document.querySelector('meta[http-equiv="refresh"]') && kept.y) scrollTo(0, kept.y);
})();
