/* Keeps the page as its runs are, and passes on what a person asks of them. */

const PAUSE = 1000; /* least milliseconds between looks; most of the time is left to the runs */

function status(text, lost) {
  const place = document.getElementById("live");
  if (place.textContent !== text) place.textContent = text;
  place.className = lost ? "lost" : "on";
  if (lost) place.setAttribute("role", "alert"); else place.removeAttribute("role");
}

/* Make an element like another one, and leave alone what is alike, what scripts have drawn and what is open. */
function morph(there, wanted) {
  for (const { name, value } of wanted.attributes) if (name !== "open" && there.getAttribute(name) !== value) there.setAttribute(name, value);
  if (wanted.hasAttribute("data-script")) return;
  wanted.childNodes.forEach((want, k) => {
    const here = there.childNodes[k], same = want.id ? [...there.children].find((one) => one.id === want.id) : here;
    if (!same || same.nodeName !== want.nodeName || (same.id || "") !== (want.id || "")) there.insertBefore(document.importNode(want, true), here || null);
    else {
      if (same !== here) there.insertBefore(same, here);
      if (want.nodeType === Node.ELEMENT_NODE) morph(same, want);
      else if (same.data !== want.data) same.data = want.data;
    }
  });
  while (there.childNodes.length > wanted.childNodes.length) there.lastChild.remove();
}

async function ask(number, request, answer) {
  answer("asked …");
  try {
    const response = await fetch("ask", { method: "POST", body: JSON.stringify({ run: Number(number), ...request }) });
    const { error } = await response.json();
    answer(error ? `not possible: ${error}` : "asked; it is done after the present step");
  } catch { answer("the watcher does not answer"); }
  soon();
}

/* Buttons for what can be asked of a run as it stands. */
function controls(host, number) {
  const { state, name, seconds, steps } = data.runs[number].control, unit = steps === undefined ? "seconds" : "steps";
  const key = [state, seconds, steps].join();
  if (host.dataset.key === key) return;
  const focused = host.contains(document.activeElement) ? document.activeElement.dataset.what : null;
  host.dataset.key = key;
  const answer = make("span", { class: "answer", role: "status" }), say = (text) => { answer.textContent = text; };
  const button = (what, text, title, request) => {
    const made = make("button", { type: "button", title, "data-what": what }, text);
    made.addEventListener("click", () => { const asked = request(); if (asked) ask(number, asked, say); });
    return made;
  };
  const budget = make("input", { type: "number", min: unit === "steps" ? 1 : 0, step: unit === "steps" ? 1 : "any", value: 2 * (steps ?? seconds ?? 60), "aria-label": `budget of ${name} in ${unit}`, "data-what": "budget" });
  const wanted = () => {
    const value = Number(budget.value);
    if (value > 0 && (unit === "seconds" || Number.isInteger(value))) return { [unit]: value };
    say(`give a number of ${unit} above zero`);
    budget.focus();
    return null;
  };
  const ended = state === "ended", parts = [];
  if (!ended) parts.push(state === "paused" ? button("pause", "Go on", "with the next step", () => ({ pause: false })) : button("pause", "Pause", "after the present step; the time is not counted", () => ({ pause: true })));
  if (!ended) parts.push(button("stop", "Stop and keep", "save after the present step, and end; dngd resume goes on", () => ({ stop: true })));
  const change = button("change", ended ? "Go on" : "Change", ended ? "dngd resume with this budget, in a process of its own" : "the run goes on with this budget", wanted);
  budget.addEventListener("keydown", (event) => { if (event.key === "Enter") change.click(); });
  parts.push(make("label", {}, ended ? "Go on, up to " : "Budget ", budget, ` ${unit}${ended ? " in all" : ""}`), change, answer);
  host.replaceChildren(...parts);
  if (focused) host.querySelector(`[data-what="${focused}"]`)?.focus({ preventScroll: true });
}

function fail(number, text) {
  const answer = document.querySelector(`#run-${number} .answer`);
  if (answer && text) answer.textContent = `it could not go on: ${text}`;
}

function take({ page, data: news }) {
  const wanted = new DOMParser().parseFromString(page, "text/html"), titles = () => [...document.querySelectorAll("[data-convergence]")].map((host) => host.dataset.title).join("\n");
  const before = titles();
  document.title = wanted.title;
  for (const part of ["header", "main"]) morph(document.querySelector(part), wanted.querySelector(part));
  Object.assign(data.arrays, news.arrays);
  for (const [number, run] of Object.entries(news.runs)) data.runs[number] = { ...data.runs[number], ...run };
  data.convergence = news.convergence;
  data.version = news.version;
  if (titles() === before) redrawConvergence(); else redrawConvergence = drawConvergence();
  drawRuns();
  for (const number of Object.keys(news.runs)) redrawRun.get(number)?.();
  forget();
  drawControls();
}

/* Pictures that no run shows any more. */
function forget() {
  const panels = Object.values(data.runs).flatMap((run) => run.fields?.views ?? []).flatMap((view) => view.panels ?? []);
  const used = new Set(panels.flatMap((panel) => [panel.array, ...(panel.vector ?? [])]));
  for (const key of Object.keys(data.arrays)) if (!used.has(key)) { delete data.arrays[key]; decoded.delete(key); }
}

function drawControls() {
  for (const details of document.querySelectorAll("details.run")) controls(details.querySelector(".controls"), details.dataset.run);
}

let timer = null;

async function news() {
  try {
    const response = await fetch(`news?since=${data.version}`);
    return response.ok ? await response.json() : null;
  } catch { return null; }
}

async function look() {
  const began = performance.now();
  let pause = PAUSE;
  if (!document.hidden) {
    const found = await news();
    if (found?.data) take(found);
    for (const [number, text] of Object.entries(found?.failures ?? {})) fail(number, text);
    if (found) status(`live, as of ${new Date().toLocaleTimeString()}`, false);
    else status("The watcher does not answer; this is what was last known. Start dngd watch again, and open the address that it prints.", true);
    pause = found ? Math.max(PAUSE, 20 * (performance.now() - began)) : 5000;
  }
  timer = setTimeout(look, pause);
}

function soon() { clearTimeout(timer); timer = setTimeout(look, 300); }

document.addEventListener("visibilitychange", soon);
status("live", false);
drawControls();
timer = setTimeout(look, PAUSE);
