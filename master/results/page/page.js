"use strict";
// Makes the plots of a page ones to zoom into, to read values from and to combine, and keeps the
// page of a run that goes on up to date. Without it the page shows everything as it is.
(() => {
  const whole = 1e6; // side of the square that the lines are drawn in
  const mostDots = 20; // points of a line that are marked
  const touch = matchMedia("(pointer: coarse)").matches;
  const $ = (id) => document.getElementById(id);
  let from = +document.body.dataset.from, to = +document.body.dataset.to; // s
  let left = 0, right = 1; // what is shown, as parts of the time
  let cursor = null; // in whole, null = none
  const names = [...document.querySelectorAll("nav .legend > span")].map((s) => s.textContent); // of compared results
  const plots = [...document.querySelectorAll(".plot")].map(makePlot);

  function makePlot(el) {
    const d = el.dataset, frame = el.querySelector(".frame");
    const p = {
      el, frame, svg: el.querySelector(".frame svg"), grid: el.querySelector(".grid"), out: el.querySelector("output"), unit: d.unit,
      low: +d.low, top: +d.top, log: !!d.log, held: !!d.held, integral: !!d.integral, thinned: +d.thinned || 0, visible: false, dirty: false,
      lines: [...el.querySelectorAll("path.line")].map((path) => ({ path, of: +path.classList[1].slice(1), dot: part(frame, "dot") })),
      marks: [...el.querySelectorAll(".mark")].map((m) => [m, m.getAttribute("d").match(/M\d+/g)]),
    };
    p.rule = part(frame, "cursor");
    p.chosen = part(frame, "chosen");
    return p;
  }

  function make(name, parent, props) {
    const e = Object.assign(document.createElement(name), props);
    parent.append(e);
    return e;
  }
  function part(frame, className) {
    return make("i", frame, { className, hidden: true });
  }
  const drawing = (name, parent, attributes) => {
    const e = document.createElementNS(plots[0].svg.namespaceURI, name);
    for (const [k, v] of Object.entries(attributes)) e.setAttribute(k, v);
    parent.append(e);
    return e;
  };

  // points reads the points of a line: between two pieces there is a NaN.
  function points(l) {
    if (l.xs) return;
    l.xs = [];
    l.ys = [];
    let x = 0, y = 0;
    for (const piece of l.path.getAttribute("d").split("M").slice(1)) {
      const n = piece.match(/-?\d+/g).map(Number);
      if (l.xs.length) {
        l.xs.push(n[0]);
        l.ys.push(NaN);
      }
      x = n[0];
      y = n[1];
      l.xs.push(x);
      l.ys.push(y);
      for (let i = 4; i + 1 < n.length; i += 2) { // after the dot at the beginning
        x += n[i];
        y += n[i + 1];
        l.xs.push(x);
        l.ys.push(y);
      }
    }
  }

  // apart gives the ends of an axis that shows values. Halves: the difference of large numbers overflows.
  function apart(low, top) {
    const most = Number.MAX_VALUE, rounding = 1e-9 * Math.max(Math.abs(low), Math.abs(top));
    if (top / 2 - low / 2 > rounding / 2) return [low, top];
    const room = (low === top ? 0.1 * Math.abs(low) : rounding) || 1;
    return [Math.max(low - room, -most), Math.min(top + room, most)];
  }
  const part01 = (v, low, top) => (top / 2 > low / 2 ? (v / 2 - low / 2) / (top / 2 - low / 2) : (v - low) / (top - low));

  // range gives the least and the greatest of some numbers, 0 and 1 if there is none.
  function range(values) {
    let low = Infinity, top = -Infinity;
    for (const v of values) {
      if (Number.isFinite(v)) {
        low = Math.min(low, v);
        top = Math.max(top, v);
      }
    }
    return low > top ? [0, 1] : [low, top];
  }

  // scale makes points and lines anew of the numbers of a run that goes on.
  function scale(p) {
    const l = p.lines[0], s = (v) => (p.log ? Math.log10(v) : v);
    p.integral = p.held && l.V.every((v) => Number.isNaN(v) || Number.isInteger(v));
    ({ low: p.low, top: p.top } = round(...range(l.V.map(s)), 4, p.log, p.integral));
    l.xs = l.T.map((t) => Math.round(((t - from) / (to - from)) * whole));
    l.ys = l.V.map((v) => Math.round((1 - part01(s(v), p.low, p.top)) * whole)).map((y) => (Number.isFinite(y) ? y : NaN));
    const d = pathOf(l.xs, l.ys, p.held);
    l.path.setAttribute("d", d);
    p.svg.querySelector(".dots")?.remove(); // of the points when the page was made
    const nothing = p.frame.querySelector(".nothing");
    if (nothing && d) nothing.remove();
  }

  function pathOf(xs, ys, held) {
    let d = "", pen = false, last = 0;
    for (let i = 0; i < xs.length; i++) {
      if (Number.isNaN(xs[i] + ys[i])) {
        pen = false;
        continue;
      }
      if (!pen) d += `M${xs[i]} ${ys[i]}l0 0`;
      else d += (held ? `L${xs[i]} ${last}` : "") + `L${xs[i]} ${ys[i]}`;
      pen = true;
      last = ys[i];
    }
    return d;
  }

  // behind gives the index of the first point at or behind x.
  function behind(xs, x) {
    let a = 0, b = xs.length;
    while (a < b) {
      const m = (a + b) >> 1;
      if (xs[m] < x) a = m + 1;
      else b = m;
    }
    return a;
  }

  // reach gives how far down and up the lines go in what is shown, and their points there.
  function reach(p, a, b) {
    let low = Infinity, top = -Infinity, n = 0;
    const take = (y) => {
      if (y < low) low = y;
      if (y > top) top = y;
    };
    for (const { xs, ys } of p.lines) {
      const first = behind(xs, a);
      let i = first;
      for (; i < xs.length && xs[i] <= b; i++) take(ys[i]);
      for (const [k, x] of [[first, a], [i, b]]) { // where the line enters and leaves
        if (k > 0 && k < xs.length && xs[k] > xs[k - 1]) take(p.held ? ys[k - 1] : ys[k - 1] + ((ys[k] - ys[k - 1]) * (x - xs[k - 1])) / (xs[k] - xs[k - 1]));
      }
      n += i - first;
    }
    return { low, top, n };
  }

  const scaled = (p, y) => p.top * (1 - y / whole) + p.low * (y / whole);
  const value = (p, y) => (p.log ? 10 ** scaled(p, y) : scaled(p, y));
  const time = (x) => (x === whole ? to : from + (x / whole) * (to - from));
  const short = (v, n) => String(Number(v.toPrecision(n))).replace("e+", "e");

  // The labels of an axis, by the rules of package axis: [position, text] of each, and what they have in common.
  function labels(low, top, most, log, integral) {
    if (!log) return linear(low, top, most, integral ? 1 : 0);
    for (const [factors, least] of [[[1], 3], [[1, 2, 5], 2]]) {
      const list = powers(low, top, most, factors);
      if (list.length >= least) return { list, common: "" };
    }
    const { list, common } = linear(10 ** low, Math.min(10 ** top, Number.MAX_VALUE), most, 0);
    return { list: list.map(([v, text]) => [Math.log10(v), text]), common };
  }

  function powers(low, top, most, factors) {
    const list = [], every = Math.max(1, Math.ceil((top - low) / (2 * most))), plain = low >= -3 && top < 4;
    for (let k = Math.floor(low / every) * every; k <= top; k += every) {
      for (const m of factors) {
        const v = k + Math.log10(m);
        if (v >= low && v <= top) list.push([v, plain ? number(shifted(m, k)) : m + "e" + k]);
      }
    }
    return list;
  }

  const shifted = (v, power) => (power < 0 ? v / +("1e" + -power) : v * +("1e" + power));
  const number = (v) => (v === 0 || (Math.abs(v) >= 1e-4 && Math.abs(v) < 1e6) ? String(v) : v.toExponential().replace("e+", "e"));

  const factors = [1, 2, 5, 10];
  function linear(low, top, most, smallest) {
    const raw = top / most - low / most;
    let place = Math.floor(Math.log10(raw)), i = 0;
    const size = () => shifted(factors[i], place), count = () => Math.floor(top / size()) - Math.ceil(low / size()) + 1;
    while (i < 3 && size() < raw * (1 - 1e-9)) i++;
    if (i > 0 && count() < 3) i--;
    if (size() < smallest) [i, place] = [0, 0];
    const n = count();
    if (!(n >= 2 || (n === 1 && smallest > 0)) || !(Math.abs(Math.ceil(low / size())) < 1e15)) return { list: [[low, number(low)], [top, number(top)]], common: "" };
    return labelled(low, top, factors[i], place);
  }

  function labelled(low, top, factor, place) {
    const step = shifted(factor, place), first = Math.ceil(low / step - 1e-9), n = Math.floor(top / step + 1e-9) - first + 1;
    let greatest = Math.max(Math.abs(first), Math.abs(first + n - 1)) * step, offset = 0, common = "", exponent = 0;
    if (greatest / step > 1e4) {
      offset = commonOf(low, top);
      greatest = Math.round(Math.max(Math.abs(first * step - offset), Math.abs((first + n - 1) * step - offset)) / step) * step;
      common = number(offset) + " + …";
    }
    if (greatest >= 1e5 || greatest < 1e-2) {
      exponent = 3 * Math.floor(Math.log10(greatest * (1 + 1e-6)) / 3);
      common += (offset ? "·" : "×") + "1e" + exponent;
    }
    const decimals = Math.max(0, exponent - place - (factor === 10 ? 1 : 0)), list = [];
    for (let k = 0; k < n; k++) {
      const v = shifted((first + k) * factor, place), text = shifted(v - offset, -exponent).toFixed(decimals);
      list.push([v, /[1-9]/.test(text) ? text : "0"]);
    }
    return { list, common };
  }

  // round gives an axis for values whose ends are labels: {low, top, list, common}.
  function round(low, top, most, log, integral) {
    [low, top] = apart(low, top);
    if (log) {
      [low, top] = decades(low, top, most);
      return { low, top, ...labels(low, top, most, true) };
    }
    const fewest = integral ? 1 : 2, middle = Math.floor(Math.log10(top / most - low / most));
    let best = null;
    for (let place = middle - 1; place <= middle + 2; place++) {
      for (const factor of [1, 2, 5]) {
        const size = shifted(factor, place);
        if (size < (integral ? 1 : 0) || !size || !Number.isFinite(size)) continue;
        const first = Math.floor(low / size + 1e-9), last = Math.ceil(top / size - 1e-9), n = last - first;
        if (n < fewest || n > most + 2 || Math.max(-first, last) > 1e15) continue;
        const waste = n / (top / size - low / size);
        if (best && !(waste < best.waste - 1e-6 || (waste < best.waste + 1e-6 && Math.abs(n - most) < Math.abs(best.n - most)))) continue;
        best = { n, waste, factor, place, first, last };
      }
    }
    if (!best) return { low, top, ...linear(low, top, most, integral ? 1 : 0) };
    low = Math.max(shifted(best.first * best.factor, best.place), -Number.MAX_VALUE);
    top = Math.min(shifted(best.last * best.factor, best.place), Number.MAX_VALUE);
    return { low, top, ...labelled(low, top, best.factor, best.place) };
  }

  function decades(low, top, most) {
    const down = Math.floor(low + 1e-9), up = Math.floor(top - 1e-9);
    let from = down, to = up + 1;
    for (const m of [2, 5]) if (down + Math.log10(m) <= low + 1e-9) from = down + Math.log10(m);
    for (const m of [5, 2, 1]) if (up + Math.log10(m) >= top - 1e-9) to = up + Math.log10(m);
    if (to - from >= 1.5) {
      const every = Math.max(1, Math.ceil((up + 1 - down) / (2 * most)));
      from = every * Math.floor(low / every + 1e-9);
      to = every * Math.ceil(top / every - 1e-9);
    }
    return top - low < 0.3 * (to - from) || 10 ** to === Infinity || 10 ** from === 0 ? [low, top] : [from, to];
  }

  function commonOf(low, top) {
    const middle = low / 2 + top / 2, end = top < 0 ? top : low;
    for (let k = Math.floor(Math.log10(Math.abs(middle))); ; k--) {
      let v = shifted(Math.round(shifted(middle, -k)), k);
      if (low <= v && v <= top) return v;
      v = shifted(Math.trunc(shifted(end, -k)), k);
      if (Math.abs(end - v) < 10 * (top - low)) return v;
    }
  }

  const titled = (a, unit) => (a.common + (unit ? ` [${unit}]` : "")).trim();
  function thin(list) { // labels below an axis
    while (list.length > 2 && list.reduce((n, [, text]) => n + text.length + 1, 0) > 31) list = list.filter((_, i) => i % 2 === 0);
    return list;
  }

  // axes draws the labels and the grid of a frame: x has {low, top, list}, each of ys the same.
  function axes(p, x, ys) {
    const { a, b, low, top } = p.view;
    for (const s of p.frame.querySelectorAll(".x,.y")) s.remove();
    let d = "";
    const add = (className, text, side, at) => { make("span", p.frame, { className, textContent: text }).style[side] = 100 * at + "%"; };
    for (const [v, text] of thin(x.list)) {
      const at = part01(v, x.low, x.top);
      d += `M${a + at * (b - a)} ${low}V${top}`;
      add("x", text, "left", at);
    }
    ys.forEach((y, i) => {
      for (const [v, text] of y.list) {
        const at = part01(v, y.low, y.top);
        if (i === 0) d += `M${a} ${top - at * (top - low)}H${b}`;
        add(i ? "y right" : "y", text, "bottom", at);
      }
    });
    p.grid.setAttribute("d", d);
    p.svg.setAttribute("viewBox", `${a} ${low} ${b - a} ${top - low}`);
  }
  const axis = (low, top, most, log, integral) => ({ low, top, ...labels(low, top, most, log, integral) });
  const timeAxis = () => axis(time(left * whole), time(right * whole), 5, false);

  // draw shows the window of a plot.
  function draw(p) {
    p.dirty = false;
    if (p.lines[0] && p.lines[0].T) scale(p);
    p.lines.forEach(points);
    const a = left * whole, b = right * whole;
    let { low, top } = left > 0 || right < 1 ? reach(p, a, b) : { low: 0, top: whole };
    if (!(low <= top)) [low, top] = [0, whole];
    const x = timeAxis(), y = round(...(left > 0 || right < 1 ? [scaled(p, top), scaled(p, low)] : [p.low, p.top]), 4, p.log, p.integral);
    [low, top] = [y.top, y.low].map((v) => (1 - part01(v, p.low, p.top)) * whole);
    p.view = { a, b, low, top };
    axes(p, x, [y]);
    p.el.querySelector(".unit").textContent = titled(y, p.unit);
    p.el.querySelector(".axis").textContent = "time " + titled(x, "s");
    for (const [mark, starts] of p.marks) mark.setAttribute("d", starts.map((m) => `${m} ${low}V${top}`).join(""));
    read(p);
  }

  // nearest gives the index of the point of a line next to x, -1 if there is none.
  function nearest(xs, x) {
    let i = behind(xs, x);
    if (i === xs.length || (i > 0 && x - xs[i - 1] < xs[i] - x)) i--;
    return i;
  }

  // read shows the values at the cursor.
  function read(p) {
    const none = cursor === null || !p.view || cursor < p.view.a || cursor > p.view.b;
    p.rule.hidden = none;
    p.out.replaceChildren();
    for (const l of p.lines) l.dot.hidden = true;
    if (none) return;
    const { a, b, low, top } = p.view;
    p.rule.style.left = (100 * (cursor - a)) / (b - a) + "%";
    let at = null;
    for (const l of p.lines) {
      points(l);
      const i = nearest(l.xs, cursor);
      if (i < 0 || Number.isNaN(l.ys[i]) || l.xs[i] < a || l.xs[i] > b) continue;
      l.dot.hidden = false;
      l.dot.style.left = (100 * (l.xs[i] - a)) / (b - a) + "%";
      l.dot.style.top = (100 * (l.ys[i] - low)) / (top - low) + "%";
      const text = exact(p, l.ys[i]);
      if (p.lines.length > 1) make("b", p.out, { className: "l" + l.of, textContent: text });
      else p.out.append(text + " ");
      at = l.xs[i];
    }
    if (at !== null) p.out.append(`at ${short(time(at), 6)} s`);
  }

  // rounded gives a value without digits that the picture does not hold, exact gives it as text.
  const finest = (p) => 10 ** Math.ceil(Math.log10(p.top / whole - p.low / whole));
  const rounded = (p, y) => (p.log || !(finest(p) > 1e-300) ? value(p, y) : Math.round(value(p, y) / finest(p)) * finest(p));
  function exact(p, y) {
    const v = rounded(p, y), digits = Math.ceil(Math.log10(Math.abs(v) / finest(p)));
    return short(v, p.log || !Number.isFinite(digits) ? 6 : Math.max(6, Math.min(15, digits)));
  }

  let asked = false;
  function redraw() { // what can be seen, at the next picture
    for (const p of plots) p.dirty = true;
    refresh();
  }
  function refresh() {
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => {
      asked = false;
      for (const p of plots) if (p.dirty && p.visible) draw(p);
      drawOwn();
      tell();
    });
  }

  function tell() {
    const w = $("window");
    if (!w) return;
    if (left === 0 && right === 1) {
      w.textContent = touch ? "swipe across a plot to zoom in, tap it to read values" : "drag over a plot to zoom in";
      return;
    }
    let text = `${short(time(left * whole), 5)} to ${short(time(right * whole), 5)} s`;
    if (plots.some((p) => p.visible && p.thinned && p.lines.every((l) => l.xs) && reach(p, left * whole, right * whole).n < 40)) text += "; the table of results holds more points here";
    w.textContent = text;
  }

  function show(a, b) {
    const least = 1e-4; // of the time: numbers are whole
    if (b - a < least) [a, b] = [(a + b - least) / 2, (a + b + least) / 2];
    if (b - a >= 1) [a, b] = [0, 1];
    if (a < 0) [a, b] = [0, b - a];
    if (b > 1) [a, b] = [a - b + 1, 1];
    left = a;
    right = b;
    redraw();
  }
  const zoom = (factor, at) => {
    const w = (right - left) * factor;
    show(at - (at - left) * factor, at - (at - left) * factor + w);
  };
  const middle = () => (left + right) / 2;
  const act = (id, f) => $(id) && $(id).addEventListener("click", f);
  act("closer", () => zoom(0.5, middle()));
  act("wider", () => zoom(2, middle()));
  act("earlier", () => show(left - (right - left) / 2, right - (right - left) / 2));
  act("later", () => show(left + (right - left) / 2, right + (right - left) / 2));
  act("all", () => show(0, 1));
  if ($("tools")) $("tools").hidden = false;

  const readAll = () => {
    for (const q of plots) if (q.visible) read(q);
    readOwn();
  };
  // guide lets the pointer read and zoom in a frame of time.
  function guide(p) {
    let begun = null;
    const at = (e) => {
      const r = p.frame.getBoundingClientRect();
      return left + (right - left) * Math.min(1, Math.max(0, (e.clientX - r.left) / r.width));
    };
    p.frame.addEventListener("pointermove", (e) => {
      if (p.phase) return;
      const x = at(e);
      cursor = x * whole;
      readAll();
      if (begun !== null) {
        p.chosen.hidden = false;
        const a = Math.min(x, begun), b = Math.max(x, begun);
        p.chosen.style.left = (100 * (a - left)) / (right - left) + "%";
        p.chosen.style.width = (100 * (b - a)) / (right - left) + "%";
      }
    });
    p.frame.addEventListener("pointerdown", (e) => {
      if (e.button !== 0 || p.phase) return;
      begun = at(e);
      if (e.pointerType !== "mouse") { // without moving
        cursor = begun * whole;
        readAll();
      }
      if (e.pointerId !== undefined) p.frame.setPointerCapture(e.pointerId);
    });
    const end = (e) => {
      const x = at(e);
      p.chosen.hidden = true;
      if (e.type === "pointerup" && begun !== null && Math.abs(x - begun) > 0.02 * (right - left)) show(Math.min(x, begun), Math.max(x, begun));
      begun = null;
    };
    p.frame.addEventListener("pointerup", end);
    p.frame.addEventListener("pointercancel", end);
    p.frame.addEventListener("pointerleave", (e) => {
      if (e.pointerType !== "mouse") return;
      cursor = null;
      readAll();
    });
    p.frame.addEventListener("dblclick", () => show(0, 1));
    p.frame.addEventListener("wheel", (e) => {
      if (!e.ctrlKey || p.phase) return; // the page scrolls
      e.preventDefault();
      zoom(e.deltaY < 0 ? 0.8 : 1.25, at(e));
    }, { passive: false });
  }
  plots.forEach(guide);

  const watch = new IntersectionObserver((entries) => {
    for (const e of entries) {
      const p = plots[+e.target.id.slice(1)];
      p.visible = e.isIntersecting;
      if (p.visible && !p.view) p.dirty = true;
    }
    refresh();
  }, { rootMargin: "100px" });
  for (const p of plots) watch.observe(p.el);

  if ($("filter")) {
    $("filter").addEventListener("input", () => {
      const words = $("filter").value.toLowerCase().split(/\s+/), fits = (name) => words.every((w) => name.toLowerCase().includes(w));
      for (const p of plots) p.el.classList.toggle("hidden", !fits(p.el.dataset.name));
      for (const t of document.querySelectorAll("table")) {
        if (t.rows[0].cells[0].textContent === "variable") for (const r of t.tBodies[0].rows) r.hidden = !fits(r.cells[0].textContent);
      }
      for (const g of document.querySelectorAll(".group")) g.classList.toggle("hidden", !g.querySelector(".plot:not(.hidden)"));
    });
  }

  // Any variables in one plot, over time or over one of them.
  const all = plots.flatMap((p) => p.lines.map((l) => ({ p, l, name: p.el.dataset.name + (names.length ? " · " + names[l.of] : "") })));
  const own = $("own") && all.length > 1 ? makeOwn() : null;

  function makeOwn() {
    const box = $("own").querySelector("details"), head = make("p", box, {});
    $("own").hidden = false;
    const add = make("input", head, { id: "add", type: "search", placeholder: "add a variable by its name" });
    add.setAttribute("list", "variables");
    const list = make("datalist", head, { id: "variables" });
    for (const c of all) make("option", list, { value: c.name });
    const over = make("select", make("label", head, { textContent: "over " }), { id: "over" });
    make("option", over, { textContent: "time", value: "" });
    const label = make("label", head, {}), apart = make("input", label, { type: "checkbox" });
    label.append(" each on a scale of its own");
    const parts = make("div", box, { className: "chosen-ones" });
    const el = make("figure", box, { className: "plot-own", hidden: true }), titles = make("div", el, { className: "titles" });
    const frame = make("div", el, { className: "frame" });
    const svg = drawing("svg", frame, { viewBox: "0 0 1000000 1000000", preserveAspectRatio: "none" });
    const o = {
      box, el, frame, svg, over, apart, parts, grid: drawing("path", svg, { class: "grid" }), below: make("p", el, { className: "axis" }),
      left: make("span", titles, {}), right: make("span", titles, {}), rule: part(frame, "cursor"), chosen: part(frame, "chosen"),
      curves: [], lines: [], phase: false, view: { a: 0, b: whole, low: 0, top: whole },
    };
    add.addEventListener("change", () => {
      const text = add.value.toLowerCase();
      const c = all.find((c) => c.name.toLowerCase() === text) || all.find((c) => text && !o.curves.includes(c) && c.name.toLowerCase().includes(text));
      if (!c) return;
      add.value = "";
      combine([c]);
    });
    for (const e of [over, apart]) e.addEventListener("change", refresh);
    box.addEventListener("toggle", refresh);
    for (const p of plots) {
      const b = make("button", p.el.querySelector("figcaption"), { type: "button", textContent: "+", title: "combine with other variables in one plot" });
      p.el.querySelector("output").before(b);
      b.addEventListener("click", () => combine(all.filter((c) => c.p === p)));
    }
    guide(o);
    return o;
  }

  // combine adds lines to the plot of several variables.
  function combine(curves) {
    own.curves.push(...curves.filter((c) => !own.curves.includes(c)));
    own.box.open = true;
    chosen();
  }

  // chosen shows which lines the plot of several variables has.
  function chosen() {
    const o = own, x = o.over.value;
    o.el.hidden = !o.curves.length;
    o.over.replaceChildren();
    o.parts.replaceChildren();
    for (const l of o.lines) {
      l.path.remove();
      l.dots.remove();
      l.dot.remove();
    }
    make("option", o.over, { textContent: "time", value: "" });
    for (const p of new Set(o.curves.map((c) => c.p))) make("option", o.over, { textContent: p.el.dataset.name, value: p.el.id });
    o.over.value = [...o.over.options].some((q) => q.value === x) ? x : "";
    o.lines = o.curves.map((c, i) => {
      const chip = make("span", o.parts, {}), style = "line l" + (i % 12);
      drawing("path", drawing("svg", chip, { class: "swatch", viewBox: "0 0 28 8" }), { class: style, d: "M0 4H28" });
      chip.append(c.name);
      const told = make("span", chip, {}), out = make("output", chip, {});
      make("button", chip, { type: "button", textContent: "×", title: "remove" }).addEventListener("click", () => {
        o.curves = o.curves.filter((k) => k !== c);
        chosen();
      });
      return { c, told, out, chip, path: drawing("path", o.svg, { class: style, d: "" }), dots: drawing("path", o.svg, { class: "dots l" + (i % 12), d: "" }), dot: part(o.frame, "dot") };
    });
    refresh();
  }

  // numbers gives the times and values of a line.
  function numbers(c) {
    if (c.l.T) return { T: c.l.T, V: c.l.V, held: c.p.held, steps: c.p.held };
    points(c.l);
    return { T: c.l.xs.map(time), V: c.l.ys.map((y) => rounded(c.p, y)), held: false, steps: c.p.held }; // steps have points at both ends
  }

  // sample gives the value of a line at a time.
  function sample({ T, V, held }, t) {
    const i = behind(T, t);
    if (i === T.length || (i === 0 && T[0] > t)) return NaN;
    if (T[i] === t) return V[i];
    return held ? V[i - 1] : V[i - 1] + ((V[i] - V[i - 1]) * (t - T[i - 1])) / (T[i] - T[i - 1]);
  }

  function drawOwn() {
    const o = own;
    if (!o || !o.curves.length || !o.box.open) return;
    const a = time(left * whole), b = time(right * whole), within = (t) => t >= a && t <= b;
    const base = plots.find((p) => p.el.id === o.over.value); // undefined = time
    o.phase = !!base;
    const units = [...new Set(o.curves.filter((c) => c.p !== base).map((c) => c.p.unit))], apart = o.apart.checked || units.length > 2;
    for (const l of o.lines) {
      l.n = numbers(l.c);
      l.hidden = l.c.p === base;
      if (base) { // of the same result
        const of = all.find((c) => c.p === base && c.l.of === l.c.l.of), baseNumbers = of ? numbers(of) : { T: [], V: [] };
        l.T = [...new Set([...baseNumbers.T, ...l.n.T])].filter(within).sort((s, t) => s - t);
        l.X = l.T.map((t) => sample(baseNumbers, t));
        l.Y = l.T.map((t) => sample(l.n, t));
      } else {
        l.T = l.X = l.n.T;
        l.Y = l.n.V;
      }
      l.range = range(l.Y.filter((_, i) => within(l.T[i])));
    }
    const shown = o.lines.filter((l) => !l.hidden);
    const x = base ? round(...range(shown.flatMap((l) => l.X)), 5, false) : timeAxis();
    const ys = apart ? [] : units.map((u) => round(...range(shown.filter((l) => l.c.p.unit === u).flatMap((l) => l.range)), 8, false, shown.every((l) => l.c.p.unit !== u || l.c.p.integral)));
    for (const l of o.lines) {
      l.y = apart ? round(...l.range, 8, false) : ys[units.indexOf(l.c.p.unit)];
      l.told.textContent = l.hidden ? " (axis)" : apart ? ` ${short(l.range[0], 4)} … ${short(l.range[1], 4)}${l.c.p.unit && " " + l.c.p.unit}` : "";
      l.place = (i) => [Math.round(part01(l.X[i], x.low, x.top) * whole), Math.round((1 - part01(l.Y[i], l.y.low, l.y.top)) * whole)];
      const at = l.hidden ? [] : l.T.map((_, i) => l.place(i));
      const seen = at.filter((q, i) => within(l.T[i]) && !Number.isNaN(q[0] + q[1]));
      l.dots.setAttribute("d", seen.length > mostDots || l.n.steps ? "" : seen.map((q) => `M${q[0]} ${q[1]}h0`).join(""));
      l.path.setAttribute("d", pathOf(at.map((q) => q[0]), at.map((q) => q[1]), !base && l.n.held));
    }
    axes(o, x, ys);
    o.el.classList.toggle("two", ys.length === 2);
    o.left.textContent = apart ? "each on a scale of its own" : ys.length ? titled(ys[0], units[0]) : "";
    o.right.textContent = ys.length > 1 ? titled(ys[1], units[1]) : "";
    o.below.textContent = base ? `${base.el.dataset.name} ${titled(x, base.unit)}` : "time " + titled(x, "s");
    readOwn();
  }

  // readOwn shows the values at the cursor in the plot of several variables.
  function readOwn() {
    const o = own, t = cursor === null ? NaN : time(cursor);
    if (!o || !o.lines.length || !o.lines[0].T) return;
    const at = (t - time(left * whole)) / (time(right * whole) - time(left * whole));
    o.rule.hidden = o.phase || !(at >= 0 && at <= 1);
    o.rule.style.left = 100 * at + "%";
    for (const l of o.lines) {
      const i = nearest(l.T, t), [px, py] = i >= 0 && at >= 0 && at <= 1 ? l.place(i) : [NaN, NaN];
      l.dot.hidden = l.hidden || !(px >= 0 && px <= whole && py >= 0 && py <= whole);
      l.out.textContent = Number.isFinite(py) ? ` ${short(l.Y[i], 6)}${l.c.p.unit && " " + l.c.p.unit}` : "";
      if (l.dot.hidden) continue;
      l.dot.style.left = px / 1e4 + "%";
      l.dot.style.top = py / 1e4 + "%";
    }
  }

  // The picture of the system fits, and zooms by buttons, two fingers, or the wheel with Ctrl.
  for (const box of document.querySelectorAll(".picture")) {
    const svg = box.shadowRoot && box.shadowRoot.querySelector("svg"), wide = svg && svg.viewBox.baseVal.width;
    if (!wide) continue;
    const bar = document.createElement("p");
    bar.className = "buttons small";
    box.before(bar);
    let size = 0;
    const fit = () => Math.min(1, box.clientWidth / wide);
    const set = (next, x = box.clientWidth / 2, y = box.clientHeight / 2) => { // what is at x, y stays there
      next = Math.min(4, Math.max(fit(), next));
      const sx = (box.scrollLeft + x) / (size || next), sy = (box.scrollTop + y) / (size || next);
      size = next;
      svg.style.width = size * wide + "px";
      svg.style.height = size * svg.viewBox.baseVal.height + "px";
      box.scrollTo(sx * size - x, sy * size - y);
    };
    for (const [text, f] of [["+", () => set(size * 1.4)], ["−", () => set(size / 1.4)], ["All", () => set(fit())]]) {
      make("button", bar, { type: "button", textContent: text }).addEventListener("click", f);
    }
    set(1); // its texts can be read
    const fingers = new Map();
    const spread = () => {
      const [p, q] = [...fingers.values()];
      return [Math.hypot(p.x - q.x, p.y - q.y), (p.x + q.x) / 2, (p.y + q.y) / 2];
    };
    box.addEventListener("pointerdown", (e) => { fingers.set(e.pointerId, e); });
    box.addEventListener("pointermove", (e) => {
      const old = fingers.get(e.pointerId);
      if (!old) return;
      if (fingers.size === 2) {
        const [before] = spread(), r = box.getBoundingClientRect();
        fingers.set(e.pointerId, e);
        const [now, x, y] = spread();
        set((size * now) / before, x - r.left, y - r.top);
        return;
      }
      if (e.pointerType === "mouse" && e.buttons) box.scrollBy(old.x - e.x, old.y - e.y);
      fingers.set(e.pointerId, e);
    });
    for (const name of ["pointerup", "pointercancel", "pointerleave"]) box.addEventListener(name, (e) => fingers.delete(e.pointerId));
    box.addEventListener("wheel", (e) => {
      if (!e.ctrlKey) return;
      e.preventDefault();
      const r = box.getBoundingClientRect();
      set(size * (e.deltaY < 0 ? 1.2 : 1 / 1.2), e.clientX - r.left, e.clientY - r.top);
    }, { passive: false });
  }

  const live = document.querySelector(".live");
  if (!live) return;
  const query = live.dataset.token ? "?token=" + encodeURIComponent(live.dataset.token) : "";
  let paused = false;
  const post = (path) => fetch(path + query, { method: "POST", headers: { "X-Macrostep": "1" } }).catch(() => {});
  const command = (what) => post("command/" + what);
  act("pause", () => command(paused ? "resume" : "pause"));
  act("step", () => command("step"));
  act("stop", () => command("stop"));
  const close = (text) => {
    for (const id of ["pause", "step", "stop"]) $(id).disabled = true;
    $("told").textContent = text;
  };
  const events = new EventSource("events" + query);
  events.addEventListener("state", (e) => {
    const s = JSON.parse(e.data);
    paused = s.state === "paused";
    $("state").textContent = s.state;
    $("state").className = "state " + (paused ? "doubtful" : "active");
    $("pause").textContent = paused ? "Resume" : "Pause";
    $("step").disabled = !paused;
    $("told").textContent = s.text;
    $("progress").value = s.done;
  });
  events.addEventListener("points", (e) => {
    const m = JSON.parse(e.data);
    const end = m.to > from ? m.to : from + 1; // at the start there is no time yet
    if (end !== to) { // what is shown stays, unless it is everything
      const all = left === 0 && right === 1, old = [from, to];
      to = end;
      if (!all) [left, right] = [left, right].map((x) => Math.min(1, Math.max(0, (old[0] + x * (old[1] - old[0]) - from) / (to - from))));
    }
    for (const [i, keep, T, V] of m.plots) {
      const l = plots[i].lines[0];
      if (!l.T) [l.T, l.V] = [[], []];
      l.T.length = l.V.length = keep;
      for (let k = 0; k < T.length; k++) {
        l.T.push(T[k]);
        l.V.push(V[k] === null ? NaN : V[k]);
      }
    }
    redraw();
  });
  events.addEventListener("alive", (e) => post("alive/" + e.data));
  events.addEventListener("end", () => {
    events.close();
    close("the run is over; loading its page …");
    location.reload(); // the page of the whole run
  });
  events.onerror = () => {
    if (events.readyState === EventSource.CLOSED) {
      close("the run is over, or can no longer be reached");
      $("state").textContent = "no connection";
      $("state").className = "state doubtful";
    } else $("told").textContent = "no connection to the run; trying again …";
  };
})();
