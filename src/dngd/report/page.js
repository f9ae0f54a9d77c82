/* Puts charts and pictures where the page left room for them; a folded run is drawn when it is opened. */

const data = JSON.parse(document.getElementById("data").textContent);

function drawConvergence() {
  let log = false, every = false;
  const charts = [...document.querySelectorAll("[data-convergence]")].map((host) => {
    const problem = data.convergence[Number(host.dataset.convergence)];
    const series = () => problem.series.flatMap((group) => (group.band && !every ? [group.band]
      : group.runs.map((run) => ({ ...run, title: group.runs.length > 1 ? run.run : run.name, faint: group.runs.length > 1 }))));
    const drawing = chart(host, { label: `${problem.label}, ${host.dataset.title}`, xLabel: "seconds of training", yLog: true, series: series() });
    const caption = make("p", { class: "legend-text" });
    const explain = () => { caption.textContent = problem.several && !every ? `Best ${problem.label} so far: median over seeds, quartiles shaded.` : `${problem.label[0].toUpperCase()}${problem.label.slice(1)} as measured.`; };
    explain();
    host.append(caption);
    return () => { drawing.update({ xLog: log, series: series() }); explain(); };
  });
  const redraw = () => charts.forEach((update) => update());
  const place = document.getElementById("switches");
  if (data.convergence.some((problem) => problem.several)) place.append(segments("curves", [[false, "median"], [true, "every run"]], every, (value) => { every = value; redraw(); }));
  place.append(segments("time axis", [[false, "linear time"], [true, "log time"]], log, (value) => { log = value; redraw(); }));
}

function drawFields(host, fields) {
  const views = make("div"), names = fields.views.map((view, k) => [k, view.title]);
  const show = (k) => (fields.kind === "plane" ? planeView(views, fields.views[k], fields, data) : lineView(views, fields.views[k], fields));
  const row = make("div", { class: "row" }, make("h3", {}, fields.note ? `Solution (${fields.note})` : "Solution"));
  if (names.length > 1) row.append(segments("field", names, 0, show));
  host.append(row, views);
  show(0);
}

function drawDiagnostics(host, run) {
  if (!run.charts.length) return;
  let log = false, against = "seconds";
  const grid = make("div", { class: "charts" });
  const row = make("div", { class: "row" }, make("h3", {}, "Diagnostics"));
  const switches = make("div");
  row.append(switches);
  host.append(row, grid);
  const updates = run.charts.map((item) => {
    const place = make("div", {}, make("h4", {}, item.title));
    grid.append(place);
    const series = () => item.series.map((s) => ({ ...s, x: run[against], faint: true, dots: item.dots }));
    const drawing = chart(place, { label: item.title, xLabel: "seconds of training", yLog: item.axis === "log", range: item.range, height: 230, series: series() });
    return () => drawing.update({ xLog: log, xLabel: against === "seconds" ? "seconds of training" : "step", series: series() });
  });
  const redraw = () => updates.forEach((update) => update());
  switches.append(
    segments("against", [["seconds", "seconds"], ["step", "steps"]], against, (value) => { against = value; redraw(); }),
    segments("axis", [[false, "linear"], [true, "log"]], log, (value) => { log = value; redraw(); }),
  );
}

function drawRun(details) {
  if (!details.open || details.dataset.drawn) return;
  details.dataset.drawn = "yes";
  const run = data.runs[Number(details.dataset.run)];
  if (run.fields) drawFields(details.querySelector(".fields"), run.fields);
  drawDiagnostics(details.querySelector(".diagnostics"), run);
}

drawConvergence();
for (const details of document.querySelectorAll("details.run")) {
  details.addEventListener("toggle", () => drawRun(details));
  drawRun(details);
}
document.documentElement.dataset.ready = "yes"; /* for tests: the script came to its end */
