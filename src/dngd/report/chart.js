/* Line charts in SVG: linear and logarithmic axes, bands, a legend that switches curves, a cursor that reads them off. */

function make(tag, attributes = {}, ...children) {
  const svg = ["svg", "g", "path", "line", "rect", "text", "circle", "clipPath", "defs"].includes(tag);
  const node = svg ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) if (value !== null && value !== undefined) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

function format(value) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-2 || size >= 1e5)) return value.toExponential(2).replace("e+", "e");
  return String(Number(value.toPrecision(4)));
}

const superscript = (n) => String(n).replace("-", "⁻").replace(/\d/g, (d) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[d]);

function tickLabel(value, log) {
  const exponent = Math.round(Math.log10(Math.abs(value)));
  if (log && Math.abs(value / 10 ** exponent - 1) < 1e-9) return exponent >= 0 && exponent <= 3 ? String(Math.round(value)) : "10" + superscript(exponent);
  const text = format(value).split("e");
  return text.length === 1 ? text[0] : `${Number(text[0])}·10${superscript(text[1])}`;
}

function linearTicks(low, high, most) {
  const rough = (high - low) / most, power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= rough * 0.999);
  const major = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k++) major.push(Number((k * step).toPrecision(12)));
  return { major, minor: [] };
}

function logTicks(low, high, most) {
  const first = Math.floor(Math.log10(low)), last = Math.ceil(Math.log10(high)), inside = (v) => v >= low * 0.999 && v <= high * 1.001;
  const every = Math.max(1, Math.ceil((last - first) / most)), major = [], minor = [];
  for (let k = first; k <= last; k++) {
    const decade = 10 ** k;
    ((k - first) % every === 0 ? major : minor).push(decade);
    if (every === 1 && last - first <= 6) for (let m = 2; m < 10; m++) minor.push(m * decade);
  }
  const shown = major.filter(inside);
  if (shown.length >= 2) return { major: shown, minor: minor.filter(inside) };
  const fine = []; /* less than two decades: 1, 2, 5 */
  for (let k = first; k <= last; k++) for (const m of [1, 2, 5]) fine.push(m * 10 ** k);
  const few = fine.filter(inside);
  return few.length >= 2 ? { major: few, minor: minor.filter(inside) } : linearTicks(low, high, 4);
}

function scale(low, high, log, from, to) {
  const f = log ? Math.log10 : (v) => v, a = f(low), b = f(high);
  return (value) => from + ((f(value) - a) / (b - a)) * (to - from);
}

function extent(values, log, fixed, pad) {
  const usable = values.filter((v) => v !== null && (!log || v > 0));
  if (!usable.length) return null;
  let low = usable.reduce((a, b) => Math.min(a, b)), high = usable.reduce((a, b) => Math.max(a, b));
  if (fixed) { low = Math.min(Math.max(low, fixed[0]), fixed[1]); high = Math.max(Math.min(high, fixed[1]), fixed[0]); }
  if (log) {
    if (high / low < 1.5) { low /= 1.5; high *= 1.5; }
    const margin = (high / low) ** pad;
    return [low / margin, high * margin];
  }
  if (high - low < 1e-12 * Math.max(1e-300, Math.abs(high))) { const by = Math.abs(high) * 0.5 || 1; low -= by; high += by; }
  const margin = (high - low) * pad;
  return [low >= 0 && low - margin < 0 ? Math.min(low, 0) : low - margin, high + margin];
}

let chartCount = 0;

/* options: {label, xLabel, xLog, yLog, range, height, series: [{name, colour, x, y, low, high, step, faint, wide, dots, title}]} */
function chart(host, options) {
  const hidden = new Set(), id = `clip-${chartCount++}`;
  const legend = make("div", { class: "legend" }), holder = make("div"), tip = make("div", { class: "tip", hidden: "" });
  const box = make("div", { class: "chart" }, legend, holder, tip);
  host.append(box);
  let state = null, at = null, shown = null;

  const usable = (x, y) => x !== null && y !== null && y !== undefined && (!options.xLog || x > 0) && (!options.yLog || y > 0);

  function drawLegend() {
    const names = [...new Map(options.series.map((s) => [s.name, s])).values()], wanted = names.map((s) => `${s.name} ${s.colour}`).join("\n");
    if (wanted === shown) return;
    shown = wanted;
    legend.replaceChildren();
    legend.style.display = names.length < 2 ? "none" : "";
    for (const { name, colour } of names) {
      const button = make("button", { type: "button", "aria-pressed": String(!hidden.has(name)), title: "show or hide" },
        make("span", { class: `swatch c${colour % 8}` }), name);
      button.addEventListener("click", () => {
        if (!hidden.delete(name)) hidden.add(name);
        button.setAttribute("aria-pressed", String(!hidden.has(name)));
        draw();
      });
      legend.append(button);
    }
  }

  function areaPath(series, sx, sy, top) {
    const ends = series.points.map(({ x, y, k }) => {
      const low = series.low[k], high = series.high[k]; /* null: infinite, because runs failed */
      return [sx(x), high === null ? top : sy(high), low === null || (options.yLog && low <= 0) ? sy(y) : sy(low)].map((v) => v.toFixed(1));
    });
    if (ends.length < 2) return "";
    const there = ends.slice(1).map(([x, high]) => `H${x}V${high}`), back = ends.slice(0, -1).map(([x, , low]) => `V${low}H${x}`).reverse();
    return `M${ends[0][0]} ${ends[0][1]}${there.join("")}V${ends.at(-1)[2]}${back.join("")}Z`;
  }

  function draw() {
    const width = Math.max(holder.clientWidth, 200), height = options.height || Math.round(Math.min(Math.max(width * 0.48, 230), 430));
    const left = 54, right = 12, top = 10, bottom = 42;
    const series = options.series.filter((s) => !hidden.has(s.name)).map((s) => ({ ...s, points: s.x.map((x, k) => ({ x, y: s.y[k], k })).filter(({ x, y }) => usable(x, y)) }));
    const times = series.flatMap((s) => s.points.map((p) => p.x));
    const xs = extent(times, options.xLog, null, options.xLog ? 0.02 : 0.015);
    const ys = extent(series.flatMap((s) => s.points.flatMap(({ y, k }) => (s.low ? [y, s.low[k], s.high[k]] : [y]))), options.yLog, options.range, 0.05);
    const svg = make("svg", { viewBox: `0 0 ${width} ${height}`, height, role: "img", tabindex: "0", "aria-label": describe(series) });
    holder.replaceChildren(svg);
    hideTip();
    state = null;
    if (!xs || !ys) {
      const why = options.series.length && !series.length ? "every curve is switched off" : "nothing to show yet";
      svg.append(make("text", { x: width / 2, y: height / 2, "text-anchor": "middle" }, why));
      return;
    }
    const sx = scale(...xs, options.xLog, left, width - right), sy = scale(...ys, options.yLog, height - bottom, top);
    const xTicks = (options.xLog ? logTicks : linearTicks)(...xs, Math.max(4, Math.floor(width / (options.xLog ? 48 : 75))));
    const yTicks = (options.yLog ? logTicks : linearTicks)(...ys, Math.max(3, Math.floor(height / 45)));
    const line = (x1, x2, y1, y2, cls) => make("line", { x1, x2, y1, y2, class: cls });
    for (const v of yTicks.minor) svg.append(line(left, width - right, sy(v), sy(v), "minor"));
    for (const v of xTicks.minor) svg.append(line(sx(v), sx(v), top, height - bottom, "minor"));
    for (const v of yTicks.major) svg.append(line(left, width - right, sy(v), sy(v), "gridline"), make("text", { x: left - 7, y: sy(v) + 4, "text-anchor": "end" }, tickLabel(v, options.yLog)));
    for (const v of xTicks.major) svg.append(line(sx(v), sx(v), top, height - bottom, "gridline"), make("text", { x: sx(v), y: height - bottom + 17, "text-anchor": "middle" }, tickLabel(v, options.xLog)));
    svg.append(make("text", { x: (left + width - right) / 2, y: height - 6, "text-anchor": "middle" }, options.xLabel));
    svg.append(make("defs", {}, make("clipPath", { id }, make("rect", { x: left - 2, y: top - 2, width: width - left - right + 4, height: height - top - bottom + 4 }))));
    const plot = make("g", { "clip-path": `url(#${id})` }), over = make("g");
    for (const s of series) if (s.low) plot.append(make("path", { class: `area c${s.colour % 8}`, d: areaPath(s, sx, sy, top) }));
    for (const s of series) {
      const dash = [null, "7 4", "2 3", "7 3 2 3"][Math.floor(s.colour / 8) % 4], places = s.points.map(({ x, y }) => [sx(x).toFixed(1), sy(y).toFixed(1)]);
      if (s.dots) { /* dots of length nought with round ends: what jumps from step to step is no curve */
        plot.append(make("path", { class: `dots c${s.colour % 8}`, d: places.map(([x, y]) => `M${x} ${y}h0`).join("") }));
        continue;
      }
      const curve = places.map(([x, y], k) => (k === 0 ? `M${x} ${y}` : s.step ? `H${x}V${y}` : `L${x} ${y}`)).join("");
      plot.append(make("path", { class: `curve c${s.colour % 8}${s.wide ? " wide" : s.faint ? " faint" : ""}`, d: curve, "stroke-dasharray": dash }));
      if (!s.step && s.points.length <= (s.faint ? 3 : 40)) for (const { x, y } of s.points) plot.append(make("circle", { class: `mark c${s.colour % 8}`, cx: sx(x), cy: sy(y), r: 2.6 }));
    }
    svg.append(plot, make("rect", { class: "frame", x: left, y: top, width: width - left - right, height: height - top - bottom }), over);
    state = { svg, over, series, sx, sy, width, top, bottom: height - bottom, times: [...new Set(times)].sort((a, b) => a - b) };
    for (const [event, act] of [["pointermove", follow], ["pointerdown", follow], ["pointerleave", hideTip], ["blur", hideTip], ["keydown", walk]]) svg.addEventListener(event, act);
  }

  function describe(series) {
    const ends = series.slice(0, 8).map((s) => `${s.title || s.name} ends at ${format(s.y.filter((y) => y !== null).at(-1))}`);
    return `${options.label} against ${options.xLabel}; ${ends.join(", ")}`;
  }

  function follow(event) {
    const box = state.svg.getBoundingClientRect(), x = ((event.clientX - box.left) / box.width) * state.width;
    const away = state.times.map((time) => Math.abs(state.sx(time) - x));
    at = away.indexOf(away.reduce((a, b) => Math.min(a, b)));
    readOff();
  }

  function walk(event) {
    if (event.key !== "ArrowLeft" && event.key !== "ArrowRight") return;
    event.preventDefault();
    const by = Math.max(1, Math.floor(state.times.length / 60)) * (event.key === "ArrowLeft" ? -1 : 1);
    at = Math.min(Math.max((at ?? 0) + by, 0), state.times.length - 1);
    readOff();
  }

  function pointAt({ points, step }, time) {
    if (step) return points.filter(({ x }) => x <= time).at(-1);
    return points.reduce((a, b) => (Math.abs(b.x - time) <= Math.abs(a.x - time) ? b : a), points[0]);
  }

  function readOff() {
    const time = state.times[at], px = state.sx(time), rows = [];
    state.over.replaceChildren(make("line", { class: "cursor", x1: px, x2: px, y1: state.top, y2: state.bottom }));
    for (const s of state.series) {
      const point = pointAt(s, time);
      if (!point) continue;
      const { x, y, k } = point, py = state.sy(y);
      if (py >= state.top - 1 && py <= state.bottom + 1) state.over.append(make("circle", { class: `focus c${s.colour % 8}`, cx: s.step ? px : state.sx(x), cy: py, r: 4 }));
      const spread = s.low ? ` [${format(s.low[k])}, ${s.high[k] === null ? "∞" : format(s.high[k])}]` : "";
      rows.push(make("div", {}, make("span", { class: `swatch c${s.colour % 8}` }), `${s.title || s.name}: ${format(y)}${spread}`));
    }
    const more = rows.length > 9 ? [make("div", {}, `and ${rows.length - 9} more`)] : [];
    tip.replaceChildren(make("b", {}, `${options.xLabel}: ${format(time)}`), ...rows.slice(0, 9), ...more);
    tip.hidden = false;
    const ratio = holder.clientWidth / state.width, x = px * ratio, room = holder.clientWidth - tip.offsetWidth;
    tip.style.left = `${Math.min(Math.max(x + (x > holder.clientWidth / 2 ? -tip.offsetWidth - 14 : 14), 0), Math.max(room, 0))}px`;
    tip.style.top = `${holder.offsetTop + state.top + 6}px`;
  }

  function hideTip() {
    tip.hidden = true;
    if (state) state.over.replaceChildren();
  }

  drawLegend();
  draw();
  let width = holder.clientWidth;
  new ResizeObserver(() => { if (holder.clientWidth !== width) { width = holder.clientWidth; update({}); } }).observe(holder);
  /* Drawn anew, it keeps the focus and what is being read off. */
  function update(changes) {
    const focused = document.activeElement === holder.firstChild, time = !tip.hidden && state ? state.times[at] : null;
    options = { ...options, ...changes };
    drawLegend();
    draw();
    if (focused) holder.firstChild.focus({ preventScroll: true });
    if (time === null || !state) return;
    at = state.times.reduce((best, x, k) => (Math.abs(x - time) < Math.abs(state.times[best] - time) ? k : best), 0);
    readOff();
  }

  return { update };
}

/* Buttons of which one is pressed. choices: [[value, text], …] */
function segments(label, choices, chosen, change) {
  const group = make("div", { class: "segments", role: "group", "aria-label": label });
  for (const [value, text] of choices) {
    const button = make("button", { type: "button", "aria-pressed": String(value === chosen) }, text);
    button.addEventListener("click", () => {
      for (const other of group.children) other.setAttribute("aria-pressed", String(other === button));
      change(value);
    });
    group.append(button);
  }
  return group;
}
