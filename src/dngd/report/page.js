/* Puts charts and pictures where the page left room for them; a folded run is drawn when it is opened. What is drawn can be
   drawn anew from `data` when that has changed. */

const data = JSON.parse(document.getElementById("data").textContent);
const redrawRun = new Map(); /* by the number of an open run */

function drawConvergence() {
  let log = false, every = false;
  const charts = [...document.querySelectorAll("[data-convergence]")].map((host) => {
    const problem = () => data.convergence[Number(host.dataset.convergence)];
    const series = () => problem().series.flatMap((group) => (group.band && !every ? [group.band]
      : group.runs.map((run) => ({ ...run, title: group.runs.length > 1 ? run.run : run.name, faint: group.runs.length > 1 }))));
    const options = () => ({ label: `${problem().label}, ${host.dataset.title}`, xLog: log, series: series() });
    for (const old of host.querySelectorAll(".chart, .legend-text")) old.remove();
    const drawing = chart(host, { xLabel: "seconds of training", yLog: true, ...options() });
    const caption = make("p", { class: "legend-text" });
    const explain = () => { const { label, several } = problem(); caption.textContent = several && !every ? `Best ${label} so far: median over seeds, quartiles shaded.` : `${label[0].toUpperCase()}${label.slice(1)} as measured.`; };
    explain();
    host.append(caption);
    return () => { drawing.update(options()); explain(); };
  });
  const redraw = () => charts.forEach((update) => update());
  const place = document.getElementById("switches");
  place.replaceChildren();
  if (data.convergence.some((problem) => problem.several)) place.append(segments("curves", [[false, "median"], [true, "every run"]], every, (value) => { every = value; redraw(); }));
  if (charts.length) place.append(segments("time axis", [[false, "linear time"], [true, "log time"]], log, (value) => { log = value; redraw(); }));
  return redraw;
}

/* A heading, buttons that choose one of several views, and that view; returns what shows new views instead. */
function chooser(host, label) {
  let chosen = 0, names = null, views = [], show = null;
  const place = make("div"), heading = make("h3"), row = make("div", { class: "row" }, heading);
  return (title, found, draw) => {
    if (!found.length) return host.replaceChildren();
    if (!host.contains(place)) host.append(row, place);
    [views, show] = [found, draw];
    heading.textContent = title;
    if (String(found.map((view) => view.title)) !== names) {
      names = String(found.map((view) => view.title));
      chosen = Math.min(chosen, found.length - 1);
      row.replaceChildren(heading);
      if (found.length > 1) row.append(segments(label, found.map((view, k) => [k, view.title]), chosen, (k) => { chosen = k; show(place, views[k]); }));
    }
    show(place, views[chosen]);
  };
}

function drawFields(host, run) {
  const parts = [make("div"), make("div")];
  const [solution, residual] = [chooser(parts[0], "field"), chooser(parts[1], "term")];
  let fields = null;
  host.append(...parts);
  const redraw = () => {
    if (!run().fields || run().fields === fields) return;
    fields = run().fields;
    const plane = fields.kind === "plane", details = [fields.note, fields.step === null ? "" : `after step ${fields.step}`].filter(Boolean).join(", ");
    solution(details ? `Solution (${details})` : "Solution", fields.views, (place, view) => (plane ? planeView(place, view, fields, data) : lineView(place, view, fields)));
    residual("Residual, at points that no step uses", fields.residual, (place, term) => (plane ? scatterView(place, term, fields, data) : pointsView(place, term, fields)));
  };
  redraw();
  return redraw;
}

/* How the last steps ended, one mark each. */
function strip(recent) {
  const kind = (outcome) => (outcome === "accepted" ? "good" : ["damping raised", "solver not converged"].includes(outcome) ? "wait" : "bad");
  const counts = new Map();
  for (const [, outcome] of recent) counts.set(outcome, (counts.get(outcome) || 0) + 1);
  const summary = [...counts].sort((a, b) => b[1] - a[1]).map(([outcome, count]) => `${count} ${outcome}`).join(", ");
  const marks = recent.map(([step, outcome]) => make("i", { class: kind(outcome), title: `step ${step ?? "?"}: ${outcome}` }));
  const text = `last ${recent.length === 1 ? "step" : `${recent.length} steps`}: ${summary}`;
  return [make("div", { class: "strip", role: "img", "aria-label": text }, ...marks), make("p", { class: "legend-text" }, `${text[0].toUpperCase()}${text.slice(1)}.`)];
}

function drawDiagnostics(host, run) {
  let log = false, against = "seconds", titles = null, updates = [];
  const grid = make("div", { class: "charts" }), marks = make("div", { class: "outcomes" });
  const update = () => updates.forEach((one) => one());
  const switches = make("div", {},
    segments("against", [["seconds", "seconds"], ["step", "steps"]], against, (value) => { against = value; update(); }),
    segments("axis", [[false, "linear"], [true, "log"]], log, (value) => { log = value; update(); }));
  const row = make("div", { class: "row" }, make("h3", {}, "Diagnostics"), switches);
  const redraw = () => {
    const charts = run().charts, found = charts.map((item) => item.title).join("\n");
    if (!charts.length) return host.replaceChildren();
    if (!host.contains(grid)) host.append(row, marks, grid);
    marks.replaceChildren(...strip(run().recent));
    if (found === titles) return update();
    titles = found;
    grid.replaceChildren();
    updates = charts.map((_, k) => {
      const item = () => run().charts[k], place = make("div", {}, make("h4", {}, item().title));
      grid.append(place);
      const series = () => item().series.map((s) => ({ ...s, x: run()[against], faint: true, dots: item().dots }));
      const options = () => ({ xLog: log, xLabel: against === "seconds" ? "seconds of training" : "step", series: series() });
      const drawing = chart(place, { label: item().title, yLog: item().axis === "log", range: item().range, height: 230, ...options() });
      return () => drawing.update(options());
    });
  };
  redraw();
  return redraw;
}

function drawRun(details) {
  if (!details.open || details.dataset.drawn) return;
  details.dataset.drawn = "yes";
  const number = details.dataset.run, run = () => data.runs[number];
  const parts = [drawFields(details.querySelector(".fields"), run), drawDiagnostics(details.querySelector(".diagnostics"), run)];
  redrawRun.set(number, () => parts.forEach((redraw) => redraw()));
}

function drawRuns() {
  for (const details of document.querySelectorAll("details.run")) {
    details.ontoggle = () => drawRun(details);
    drawRun(details);
  }
}

let redrawConvergence = drawConvergence();
drawRuns();
document.documentElement.dataset.ready = "yes"; /* for tests: the script came to its end */
