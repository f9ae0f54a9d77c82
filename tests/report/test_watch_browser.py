"""The live page in a real browser: it follows the run, keeps what a reader has opened and focused, and asks."""

import json
import re
import shutil
import subprocess
import threading

import numpy as np
import pytest

from dngd.report import watch
from dngd.train import lock, requests
from dngd.train.sealed import seal

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome", "headless_shell")
BROWSER = next((path for name in BROWSERS if (path := shutil.which(name))), None)

# What a reader does: opens everything, presses every button but those that ask, reads a chart off by the keyboard,
# waits until three looks have found something new, and asks for a pause.
READER = """
<script>
const said = document.documentElement.dataset;
setTimeout(() => {
  for (const details of document.querySelectorAll("details.run")) { details.open = true; drawRun(details); }
  for (const button of document.querySelectorAll("button")) if (!button.closest(".controls")) button.click();
  for (const button of document.querySelectorAll(".legend button")) button.click();
  document.querySelector("details.run:not([data-run='0'])").open = false;
  const svg = document.querySelector(".diagnostics svg");
  svg.focus();
  svg.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowRight" }));
}, 200);
const waiting = setInterval(() => {
  if (data.version < 4) return;
  clearInterval(waiting);
  said.focus = document.activeElement.tagName;
  said.reading = document.querySelectorAll(".tip:not([hidden])").length;
  const pause = document.querySelector("#run-0 [data-what=pause]");
  pause.focus();
  pause.click();
  setInterval(() => {
    said.answer = document.querySelector("#run-0 .answer").textContent;
    said.after = document.activeElement.textContent;
  }, 100);
}, 100);
</script>
"""


@pytest.mark.skipif(BROWSER is None, reason=f"none of {', '.join(BROWSERS)} is on PATH")
def test_a_browser_follows_a_run(build, tmp_path, monkeypatch):
    run = build(tmp_path / "runs" / "one", status="running", steps=40, points=31)
    build(tmp_path / "runs" / "two", seed=1, points=21)
    history, descriptor = run / "history.jsonl", lock.acquire(run / ".lock")
    rows = history.read_text().splitlines()[:-1]  # the last one is torn
    looks = []

    def go_on():
        """What the run does meanwhile: a step, new fields, a step; and it waits when it is asked to."""
        looks.append(len(looks))
        if looks[-1] in (0, 2):
            row = json.loads(rows[-1]) | {"step": 41 + len(looks), "seconds": 60.0 + len(looks), "rel_l2": 1.25e-7}
            rows.append(seal(json.dumps(row)).decode())
            history.write_text("\n".join(rows) + "\n")
        if looks[-1] == 1:
            with np.load(run / "fields.npz") as archive:
                arrays = dict(archive)
            residual = {"points": [[0.1, 0.2], [0.3, 1.0]], "sizes": [1e-3, 0.2], "terms": [0, 0], "names": ["inside"]}
            arrays |= {f"residual_{name}": np.array(value) for name, value in residual.items()}
            np.savez(run / "fields.npz", **(arrays | {"step": np.array(42)}))
        if (run / "request.json").exists():
            summary = json.loads((run / "summary.json").read_text()) | {"message": requests.PAUSED}
            (run / "summary.json").write_text(json.dumps(summary))

    before = watch.Watch.news
    monkeypatch.setattr(watch.Watch, "news", lambda self, since: [go_on(), before(self, since)][1])
    monkeypatch.setitem(watch.FRAME, "footer", READER)
    with watch.Server([tmp_path / "runs"]) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        flags = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"]
        flags += ["--disable-background-networking", "--disable-component-update", f"--user-data-dir={tmp_path / 'p'}"]
        flags += ["--enable-logging=stderr", "--log-level=0", "--window-size=390,844", "--virtual-time-budget=12000"]
        command = [BROWSER, *flags, "--dump-dom", server.address]
        result = subprocess.run(command, capture_output=True, text=True, timeout=240)
        server.shutdown()
    assert [line for line in result.stderr.splitlines() if "CONSOLE" in line] == []
    page = result.stdout
    said = dict(re.findall(r'data-(\w+)="([^"]*)"', re.search(r"<html[^>]*>", page)[0]))
    assert said["ready"] == "yes"
    assert said["focus"] == "svg"
    assert said["reading"] == "1"
    assert json.loads((run / "request.json").read_text()) == {"pause": True}
    assert said["after"] == "Go on"  # the focus stays on the button, which now does the contrary
    assert ">paused</span>" in page
    assert "1.25e\N{NON-BREAKING HYPHEN}07" in page
    assert "after step 42" in page
    assert "largest 0.2 at x = 0.3, y = 1" in page
    assert re.search(r"<details[^>]*id=\"run-0\"[^>]* open", page)
    assert not re.search(r"<details[^>]*id=\"run-1\"[^>]* open", page)
    assert re.search(r'id="live"[^>]*>live, as of', page)
    assert "NaN" not in "".join(re.findall(r' d="[^"]*"', page))
    lock.os.close(descriptor)
