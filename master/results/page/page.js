"use strict";
// Makes the plots of a page ones to zoom into and to read values from, and keeps the
// page of a run that goes on up to date. Without it the page shows everything as it is.
(() => {
  const whole = 1e6; // side of the square that the lines are drawn in
  const $ = (id) => document.getElementById(id);
  let from = +document.body.dataset.from, to = +document.body.dataset.to; // s
  let left = 0, right = 1; // what is shown, as parts of the time
  let cursor = null; // in whole, null = none
  const plots = [...document.querySelectorAll(".plot")].map(makePlot);

  function makePlot(el) {
    const d = el.dataset, frame = el.querySelector(".frame");
    const p = {
      el, frame, svg: el.querySelector("svg"), line: el.querySelector(".line"), grid: el.querySelector(".grid"),
      out: el.querySelector("output"), low: +d.low, top: +d.top, log: !!d.log, held: !!d.held, thinned: +d.thinned || 0,
      marks: [...el.querySelectorAll(".mark")].map((m) => [m, m.getAttribute("d").match(/M\d+/g)]),
      xs: null, ys: null, T: null, V: null, visible: false, dirty: false,
    };
    p.rule = part(frame, "cursor");
    p.dot = part(frame, "dot");
    p.chosen = part(frame, "chosen");
    return p;
  }

  function part(frame, name) {
    const i = document.createElement("i");
    i.className = name;
    i.hidden = true;
    frame.append(i);
    return i;
  }

  // points reads the points of a line: between two lines there is a NaN.
  function points(p) {
    if (p.xs) return;
    p.xs = [];
    p.ys = [];
    let x = 0, y = 0;
    for (const piece of p.line.getAttribute("d").split("M").slice(1)) {
      const n = piece.match(/-?\d+/g).map(Number);
      if (p.xs.length) {
        p.xs.push(n[0]);
        p.ys.push(NaN);
      }
      x = n[0];
      y = n[1];
      p.xs.push(x);
      p.ys.push(y);
      for (let i = 4; i + 1 < n.length; i += 2) { // after the dot at the beginning
        x += n[i];
        y += n[i + 1];
        p.xs.push(x);
        p.ys.push(y);
      }
    }
  }

  // scale makes points and line anew of the numbers of a run that goes on.
  function scale(p) {
    const s = (v) => (p.log ? Math.log10(v) : v);
    let low = Infinity, top = -Infinity;
    for (const v of p.V) {
      const w = s(v);
      if (Number.isFinite(w)) {
        low = Math.min(low, w);
        top = Math.max(top, w);
      }
    }
    if (low > top) [low, top] = [0, 1];
    // Halves, here and below: the difference of large numbers overflows.
    const room = Math.max(0.12 * (top / 2 - low / 2), 1e-9 * Math.max(Math.abs(low), Math.abs(top))) || 1;
    p.low = low = Math.max(low - room, -Number.MAX_VALUE);
    p.top = top = Math.min(top + room, Number.MAX_VALUE);
    p.xs = [];
    p.ys = [];
    let d = "", pen = false, last = 0;
    for (let i = 0; i < p.T.length; i++) {
      const x = Math.round(((p.T[i] - from) / (to - from)) * whole), w = s(p.V[i]);
      const y = Number.isFinite(w) ? Math.round(((top / 2 - w / 2) / (top / 2 - low / 2)) * whole) : NaN;
      p.xs.push(x);
      p.ys.push(y);
      if (Number.isNaN(y)) {
        pen = false;
        continue;
      }
      if (!pen) d += `M${x} ${y}l0 0`;
      else d += (p.held ? `L${x} ${last}` : "") + `L${x} ${y}`;
      pen = true;
      last = y;
    }
    p.line.setAttribute("d", d);
    const nothing = p.frame.querySelector(".nothing");
    if (nothing && d) nothing.remove();
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

  // reach gives how far down and up the line goes in what is shown, and its points there.
  function reach(p, a, b) {
    const { xs, ys } = p;
    let low = Infinity, top = -Infinity;
    const take = (y) => {
      if (y < low) low = y;
      if (y > top) top = y;
    };
    const first = behind(xs, a);
    let i = first;
    for (; i < xs.length && xs[i] <= b; i++) take(ys[i]);
    for (const [k, x] of [[first, a], [i, b]]) { // where the line enters and leaves
      if (k > 0 && k < xs.length && xs[k] > xs[k - 1]) take(p.held ? ys[k - 1] : ys[k - 1] + ((ys[k] - ys[k - 1]) * (x - xs[k - 1])) / (xs[k] - xs[k - 1]));
    }
    return { low, top, n: i - first };
  }

  const scaled = (p, y) => p.top * (1 - y / whole) + p.low * (y / whole);
  const value = (p, y) => (p.log ? 10 ** scaled(p, y) : scaled(p, y));
  const time = (x) => from + (x / whole) * (to - from);
  const short = (v, n) => String(Number(v.toPrecision(n))).replace("e+", "e");

  // ticks gives round numbers between two.
  function ticks(low, top, most, log) {
    const list = [];
    if (log) {
      for (let k = Math.floor(low); k <= top; k++) {
        for (const m of top - low < 3 ? [1, 2, 5] : [1]) {
          const v = k + Math.log10(m);
          if (v >= low && v <= top) list.push([v, m + "e" + k]);
        }
      }
      if (list.length > 1) {
        const every = Math.ceil(list.length / (2 * most));
        return list.filter((_, i) => i % every === 0);
      }
      list.length = 0;
    }
    let step = top / most - low / most;
    const decade = 10 ** Math.floor(Math.log10(step));
    step = [1, 2, 5, 10].find((m) => m * decade >= step * (1 - 1e-9)) * decade;
    for (let i = Math.ceil(low / step); i * step <= top && list.length <= 2 * most; i++) {
      const v = i * step;
      const digits = Math.max(1, Math.min(17, Math.floor(Math.log10(Math.abs(v) || 1)) - Math.floor(Math.log10(step)) + 1));
      list.push([v, log ? short(10 ** v, 3) : v ? short(v, digits) : "0"]);
    }
    return list;
  }

  // draw shows the window of a plot.
  function draw(p) {
    p.dirty = false;
    if (p.T) scale(p);
    points(p);
    const a = left * whole, b = right * whole;
    let { low, top } = left > 0 || right < 1 ? reach(p, a, b) : { low: 0, top: whole };
    if (!(low <= top)) [low, top] = [0, whole];
    if (left > 0 || right < 1) {
      const room = Math.max(0.06 * (top - low), 1);
      low -= room;
      top += room;
    }
    p.view = { a, b, low, top };
    p.svg.setAttribute("viewBox", `${a} ${low} ${b - a} ${top - low}`);
    for (const s of p.frame.querySelectorAll(".x,.y")) s.remove();
    let d = "";
    const add = (name, text, side, at) => {
      const s = document.createElement("span");
      s.className = name;
      s.textContent = text;
      s.style[side] = 100 * at + "%";
      p.frame.append(s);
    };
    const times = ticks(time(a), time(b), 5, false);
    times.forEach(([v, text], i) => {
      const x = ((v - from) / (to - from)) * whole;
      d += `M${x} ${low}V${top}`;
      add("x", i === times.length - 1 ? text + " s" : text, "left", (x - a) / (b - a));
    });
    for (const [v, text] of ticks(scaled(p, top), scaled(p, low), 4, p.log)) {
      const y = ((p.top / 2 - v / 2) / (p.top / 2 - p.low / 2)) * whole;
      d += `M${a} ${y}H${b}`;
      add("y", text, "bottom", (top - y) / (top - low));
    }
    p.grid.setAttribute("d", d);
    for (const [mark, starts] of p.marks) mark.setAttribute("d", starts.map((m) => `${m} ${low}V${top}`).join(""));
    read(p);
  }

  // read shows the value at the cursor.
  function read(p) {
    const none = cursor === null || !p.view || cursor < p.view.a || cursor > p.view.b;
    p.rule.hidden = p.dot.hidden = none;
    p.out.textContent = "";
    if (none) return;
    points(p);
    const { a, b, low, top } = p.view, { xs, ys } = p;
    p.rule.style.left = (100 * (cursor - a)) / (b - a) + "%";
    let i = behind(xs, cursor);
    if (i === xs.length || (i > 0 && cursor - xs[i - 1] < xs[i] - cursor)) i--;
    if (i < 0 || Number.isNaN(ys[i]) || xs[i] < a || xs[i] > b) {
      p.dot.hidden = true;
      return;
    }
    p.dot.style.left = (100 * (xs[i] - a)) / (b - a) + "%";
    p.dot.style.top = (100 * (ys[i] - low)) / (top - low) + "%";
    // No digits that the picture does not hold.
    const finest = 10 ** Math.ceil(Math.log10(p.top / whole - p.low / whole)), v = value(p, ys[i]);
    p.out.textContent = `${short(p.log || !(finest > 1e-300) ? v : Math.round(v / finest) * finest, 6)} at ${short(time(xs[i]), 6)} s`;
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
      tell();
    });
  }

  function tell() {
    const w = $("window");
    if (!w) return;
    if (left === 0 && right === 1) {
      w.textContent = "drag over a plot to zoom in";
      return;
    }
    let text = `${short(time(left * whole), 5)} to ${short(time(right * whole), 5)} s`;
    if (plots.some((p) => p.visible && p.thinned && p.xs && reach(p, left * whole, right * whole).n < 40)) text += "; the table of results holds more points here";
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

  const at = (p, e) => {
    const r = p.frame.getBoundingClientRect();
    return left + (right - left) * Math.min(1, Math.max(0, (e.clientX - r.left) / r.width));
  };
  for (const p of plots) {
    let begun = null;
    p.frame.addEventListener("pointermove", (e) => {
      const x = at(p, e);
      cursor = x * whole;
      for (const q of plots) if (q.visible) read(q);
      if (begun !== null) {
        p.chosen.hidden = false;
        const a = Math.min(x, begun), b = Math.max(x, begun);
        p.chosen.style.left = (100 * (a - left)) / (right - left) + "%";
        p.chosen.style.width = (100 * (b - a)) / (right - left) + "%";
      }
    });
    p.frame.addEventListener("pointerdown", (e) => {
      if (e.button !== 0) return;
      begun = at(p, e);
      if (e.pointerId !== undefined) p.frame.setPointerCapture(e.pointerId);
    });
    const end = (e) => {
      const x = at(p, e);
      p.chosen.hidden = true;
      if (e.type === "pointerup" && begun !== null && Math.abs(x - begun) > 0.02 * (right - left)) show(Math.min(x, begun), Math.max(x, begun));
      begun = null;
    };
    p.frame.addEventListener("pointerup", end);
    p.frame.addEventListener("pointercancel", end);
    p.frame.addEventListener("pointerleave", (e) => {
      if (e.pointerType === "mouse") {
        cursor = null;
        for (const q of plots) read(q);
      }
    });
    p.frame.addEventListener("dblclick", () => show(0, 1));
    p.frame.addEventListener("wheel", (e) => {
      if (!e.ctrlKey) return; // the page scrolls
      e.preventDefault();
      zoom(e.deltaY < 0 ? 0.8 : 1.25, at(p, e));
    }, { passive: false });
  }

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
      const words = $("filter").value.toLowerCase().split(/\s+/);
      for (const p of plots) p.el.classList.toggle("hidden", !words.every((w) => p.el.dataset.name.toLowerCase().includes(w)));
      for (const g of document.querySelectorAll(".group")) g.classList.toggle("hidden", !g.querySelector(".plot:not(.hidden)"));
    });
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
    if (text) $("told").textContent = text;
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
      const p = plots[i];
      if (!p.T) [p.T, p.V] = [[], []];
      p.T.length = p.V.length = keep;
      for (let k = 0; k < T.length; k++) {
        p.T.push(T[k]);
        p.V.push(V[k] === null ? NaN : V[k]);
      }
    }
    redraw();
  });
  events.addEventListener("alive", (e) => post("alive/" + e.data));
  events.addEventListener("end", () => {
    events.close();
    location.reload(); // the page of the whole run
  });
  events.onerror = () => {
    if (events.readyState === EventSource.CLOSED) close("the run can no longer be reached");
    else $("told").textContent = "no connection to the run; trying again …";
  };
})();
