/* Pictures of fields on a rectangle: colours, streamlines, and a marker that reads all panels at one place. */

const bytes = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));

const decoded = new Map(); /* by the key, which tells the content */

/* values[i * columns + j] is at (x_i, y_j); NaN where the network returned no number */
function decode(key, arrays) {
  if (decoded.has(key)) return decoded.get(key);
  const { shape, bits, low, high, data } = arrays[key], raw = bytes(data), count = shape[0] * shape[1], top = 2 ** bits - 2;
  const values = new Float64Array(count), span = high > low ? high - low : 1;
  for (let k = 0; k < count; k++) {
    const code = bits === 16 ? raw[2 * k] | (raw[2 * k + 1] << 8) : raw[k];
    values[k] = code > top ? NaN : low + (code / top) * span;
  }
  const array = { rows: shape[0], columns: shape[1], values };
  decoded.set(key, array);
  return array;
}

function paint(canvas, array, [low, high], colours) {
  const { rows, columns, values } = array, small = make("canvas", { width: rows, height: columns });
  const context = small.getContext("2d"), image = context.createImageData(rows, columns), span = high > low ? high - low : 1;
  for (let i = 0; i < rows; i++) for (let j = 0; j < columns; j++) {
    const value = values[i * columns + j], at = 4 * ((columns - 1 - j) * rows + i);
    if (Number.isNaN(value)) { image.data.set([128, 128, 128, 255], at); continue; }
    const shade = Math.round(Math.min(Math.max((value - low) / span, 0), 1) * 255);
    image.data.set([colours[3 * shade], colours[3 * shade + 1], colours[3 * shade + 2], 255], at);
  }
  context.putImageData(image, 0, 0);
  const target = canvas.getContext("2d");
  target.imageSmoothingEnabled = true;
  target.imageSmoothingQuality = "high";
  /* grid points are pixel centres; the outermost lie on the edge of the domain */
  target.drawImage(small, 0.5, 0.5, Math.max(rows - 1, 1), Math.max(columns - 1, 1), 0, 0, canvas.width, canvas.height);
}

/* Lines along a velocity, in units of the picture's width and height, no two closer than about one cell of a mask. */
function streamlines(u, v, [[x0, x1], [y0, y1]], aspect) {
  const cells = 20, tall = Math.max(4, Math.round(cells * aspect)), taken = new Int16Array(cells * tall).fill(-1), lines = [];
  const sample = (field, s, t) => {
    const a = s * (field.rows - 1), b = t * (field.columns - 1), i = Math.min(Math.floor(a), field.rows - 2), j = Math.min(Math.floor(b), field.columns - 2);
    const p = a - i, q = b - j, at = (m, n) => field.values[(i + m) * field.columns + j + n];
    return (1 - p) * ((1 - q) * at(0, 0) + q * at(0, 1)) + p * ((1 - q) * at(1, 0) + q * at(1, 1));
  };
  const inside = (s, t) => s >= 0 && s <= 1 && t >= 0 && t <= 1;
  const cell = (s, t) => Math.min(Math.floor(t * tall), tall - 1) * cells + Math.min(Math.floor(s * cells), cells - 1);
  /* unit speed in the picture */
  const direction = (s, t) => {
    const a = sample(u, s, t) / (x1 - x0), b = (sample(v, s, t) / (y1 - y0)), size = Math.hypot(a, b * aspect);
    return size > 1e-9 ? [a / size, b / size] : null;
  };
  const trace = (s, t, sign, number, visited) => {
    const line = [], step = 0.004 * sign;
    for (let k = 0; k < 900; k++) {
      const first = direction(s, t);
      if (!first) break;
      const ms = s + (step / 2) * first[0], mt = t + (step / 2) * first[1];
      const middle = inside(ms, mt) ? direction(ms, mt) : null;
      if (!middle) break;
      s += step * middle[0]; t += step * middle[1];
      if (!inside(s, t)) break;
      const here = cell(s, t);
      if (taken[here] !== -1 && taken[here] !== number) break;
      if (taken[here] === -1) { taken[here] = number; visited.push(here); }
      line.push([s, t]);
    }
    return line;
  };
  const seeds = [];
  for (let j = 0; j < tall; j++) for (let i = 0; i < cells; i++) seeds.push([(i + 0.5) / cells, (j + 0.5) / tall]);
  /* bit-reversed order spreads the first, longest lines over the picture */
  const order = seeds.map((_, k) => [parseInt(k.toString(2).padStart(12, "0").split("").reverse().join(""), 2), k]).sort((a, b) => a[0] - b[0]);
  order.forEach(([, k], number) => {
    const [s, t] = seeds[k], here = cell(s, t), visited = [here];
    if (taken[here] !== -1) return;
    taken[here] = number;
    const line = [...trace(s, t, -1, number, visited).reverse(), [s, t], ...trace(s, t, 1, number, visited)];
    if (line.length * 0.004 > 0.16) lines.push(line);
    else for (const c of visited) taken[c] = -1;
  });
  return lines;
}

function drawLines(canvas, lines) {
  const context = canvas.getContext("2d"), { width, height } = canvas, unit = width / 300;
  const point = ([s, t]) => [s * width, (1 - t) * height];
  context.strokeStyle = context.fillStyle = "rgba(255, 255, 255, .82)";
  context.lineWidth = 0.9 * unit;
  for (const line of lines) {
    context.beginPath();
    for (const p of line) context.lineTo(...point(p));
    context.stroke();
    const middle = Math.floor(line.length / 2), [x, y] = point(line[middle]), [bx, by] = point(line[Math.max(0, middle - 3)]);
    const angle = Math.atan2(y - by, x - bx), size = 4.2 * unit;
    context.beginPath();
    for (const turn of [0, 2.5, -2.5]) context.lineTo(x + size * Math.cos(angle + turn), y + size * Math.sin(angle + turn));
    context.fill();
  }
}

/* One quantity: network, reference and error side by side. */
function planeView(host, view, plane, data) {
  const grid = make("div", { class: view.panels.length === 1 ? "pictures alone" : "pictures" }), where = make("p", { class: "where", "aria-live": "off" });
  const [[x0, x1], [y0, y1]] = plane.extent, aspect = plane.equal ? (y1 - y0) / (x1 - x0) : 0.8, readers = [];
  where.textContent = `${plane.axes[0]} from ${format(x0)} to ${format(x1)} (right), ${plane.axes[1]} from ${format(y0)} to ${format(y1)} (up)`;
  const rest = where.textContent;
  for (const panel of view.panels) {
    const array = decode(panel.array, data.arrays), colours = bytes(data.colours[panel.log ? "magma" : "viridis"]);
    const shown = (value) => format(panel.log ? 10 ** value : value), [low, high] = panel.limits;
    const title = panel.title === "error" ? (view.title === "speed" ? "error of the velocity" : `error of ${view.title}`) : `${panel.title}: ${view.title}`;
    const label = `${title}, coloured from ${shown(low)} to ${shown(high)}`;
    const width = 640, height = Math.round(width * aspect), canvas = make("canvas", { width, height, role: "img", "aria-label": label });
    paint(canvas, array, panel.limits, colours);
    const plot = make("div", { class: "plot" }, canvas), value = make("span"), marker = make("i", { hidden: "" });
    if (panel.vector) {
      const lines = make("canvas", { width, height, "aria-hidden": "true" });
      drawLines(lines, streamlines(...panel.vector.map((key) => decode(key, data.arrays)), plane.extent, aspect));
      plot.append(lines);
    }
    plot.append(marker);
    const bar = make("canvas", { width: 256, height: 1, "aria-hidden": "true" }), context = bar.getContext("2d"), ramp = context.createImageData(256, 1);
    for (let k = 0; k < 256; k++) ramp.data.set([colours[3 * k], colours[3 * k + 1], colours[3 * k + 2], 255], 4 * k);
    context.putImageData(ramp, 0, 0);
    const ends = make("div", { class: "ends" }, ...[low, (low + high) / 2, high].map((v) => make("span", {}, shown(v))));
    grid.append(make("div", { class: "picture" }, make("div", { class: "title" }, make("b", {}, title), value), plot, make("div", { class: "bar" }, bar, ends)));
    readers.push((s, t) => {
      marker.hidden = s === null;
      value.textContent = "";
      if (s === null) return;
      marker.style.left = `${100 * s}%`; marker.style.top = `${100 * (1 - t)}%`;
      value.textContent = shown(array.values[Math.round(s * (array.rows - 1)) * array.columns + Math.round(t * (array.columns - 1))]);
    });
    const read = (event) => {
      const area = plot.getBoundingClientRect(), clamp = (r) => Math.min(Math.max(r, 0), 1);
      const s = clamp((event.clientX - area.left) / area.width), t = clamp(1 - (event.clientY - area.top) / area.height);
      for (const reader of readers) reader(s, t);
      where.textContent = `${plane.axes[0]} = ${format(x0 + s * (x1 - x0))}, ${plane.axes[1]} = ${format(y0 + t * (y1 - y0))}`;
    };
    for (const event of ["pointermove", "pointerdown"]) plot.addEventListener(event, read);
    plot.addEventListener("pointerleave", () => { for (const reader of readers) reader(null); where.textContent = rest; });
  }
  host.replaceChildren(grid, where);
}

/* The residual of one term at its points: the larger, the brighter. */
function scatterView(host, term, plane, data) {
  const [[x0, x1], [y0, y1]] = plane.extent, aspect = plane.equal ? (y1 - y0) / (x1 - x0) : 0.8, [low, high] = term.limits;
  const colours = bytes(data.colours.magma), width = 640, height = Math.round(width * aspect), radius = Math.min(9, Math.max(4, 110 / Math.sqrt(term.sizes.length)));
  const order = term.sizes.map((size, k) => k).sort((a, b) => (term.sizes[a] ?? Infinity) - (term.sizes[b] ?? Infinity)), largest = order.findLast((k) => term.sizes[k] !== null) ?? 0;
  const place = `largest ${format(term.sizes[largest])} at ${plane.axes[0]} = ${format(term.points[0][largest])}, ${plane.axes[1]} = ${format(term.points[1][largest])}`;
  const canvas = make("canvas", { width, height, role: "img", class: "scatter", "aria-label": `residual of ${term.title} at ${term.sizes.length} points, ${place}` });
  const context = canvas.getContext("2d"), inset = (value) => radius + value * (1 - (2 * radius) / width);
  for (const k of order) {
    const size = term.sizes[k], share = size > 0 ? Math.log(size / low) / Math.log(high / low) : 0, shade = 3 * Math.round(55 + 200 * Math.min(Math.max(share, 0), 1));
    context.fillStyle = size === null ? "#808080" : `rgb(${colours[shade]}, ${colours[shade + 1]}, ${colours[shade + 2]})`;
    context.beginPath();
    context.arc(inset(((term.points[0][k] - x0) / (x1 - x0)) * width), inset((1 - (term.points[1][k] - y0) / (y1 - y0)) * height), radius, 0, 2 * Math.PI);
    context.fill();
  }
  const bar = make("canvas", { width: 201, height: 1, "aria-hidden": "true" }), ramp = bar.getContext("2d");
  for (let k = 0; k <= 200; k++) { ramp.fillStyle = `rgb(${colours.slice(3 * (55 + k), 3 * (56 + k)).join(", ")})`; ramp.fillRect(k, 0, 1, 1); }
  const ends = make("div", { class: "ends" }, ...[low, Math.sqrt(low * high), high].map((v) => make("span", {}, format(v))));
  const picture = make("div", { class: "picture" }, make("div", { class: "title" }, make("b", {}, `size of the residual: ${term.title}`)), canvas, make("div", { class: "bar" }, bar, ends));
  host.replaceChildren(make("div", { class: "pictures alone" }, picture), make("p", { class: "where" }, `${place[0].toUpperCase()}${place.slice(1)}`));
}

/* The same on a line. */
function pointsView(host, term, line) {
  const place = make("div"), grid = make("div", { class: "charts" }, place), top = term.limits[1];
  host.replaceChildren(grid);
  place.append(make("h4", {}, `size of the residual: ${term.title}`));
  chart(place, { label: `residual of ${term.title}`, xLabel: line.axes[0], yLog: true, range: [top * 1e-6, top], height: 230, series: [{ name: "residual", colour: 1, x: term.points[0], y: term.sizes, dots: true }] });
}

function lineView(host, view, line) {
  const grid = make("div", { class: "charts" }), left = make("div"), right = make("div");
  host.replaceChildren(grid);
  grid.append(left);
  const series = [["reference", 4], ["network", 0]].filter(([name]) => view[name]).map(([name, colour]) => ({ name, colour, x: line.x, y: view[name], faint: true, wide: name === "reference" }));
  left.append(make("h4", {}, view.title));
  chart(left, { label: view.title, xLabel: line.axes[0], series });
  if (!view.error) return;
  grid.append(right);
  right.append(make("h4", {}, `error of ${view.title}`));
  const top = view.error.reduce((a, b) => Math.max(a, b ?? 0), 0); /* points where the error happens to vanish must not set the axis */
  chart(right, { label: `error of ${view.title}`, xLabel: line.axes[0], yLog: true, range: [top * 1e-6, top], series: [{ name: "error", colour: 3, x: line.x, y: view.error, faint: true }] });
}
