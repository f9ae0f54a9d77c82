"""The page: one file, nothing from outside, everything escaped, and a real browser runs it without complaint."""

import base64
import json
import re
import shutil
import subprocess
from html.parser import HTMLParser

import numpy as np
import pytest

from dngd.report import find_runs, write_page
from dngd.report.page import embed, render
from dngd.report.page_data import Pictures


class Reader(HTMLParser):
    """Collects tags, attributes and the texts of scripts, tables and paragraphs."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.links, self.texts, self.stack = [], [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.links += [value for name, value in attributes if name in ("src", "href")]
        if tag not in ("meta", "link", "br", "img", "input"):
            self.stack.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.stack[-1][0] == tag, f"</{tag}> closes <{self.stack[-1][0]}>"
        self.stack.pop()

    def handle_data(self, data):
        self.texts.append((self.stack[-1] if self.stack else ("", {}), data))

    def data(self):
        return json.loads("".join(text for (tag, attributes), text in self.texts if attributes.get("id") == "data"))

    def text(self):
        return " ".join(text for (tag, _), text in self.texts if tag not in ("script", "style"))


@pytest.fixture
def everything(comparison, build):
    build(comparison / "more" / "allen", problem="allen_cahn", points=31)
    build(comparison / "more" / "heat", problem="heat_10d", points=21, status="interrupted")
    build(comparison / "more" / "line", problem="oscillator", points=41)
    return comparison


def test_the_page_is_well_formed_and_alone(everything, tmp_path):
    text = write_page([everything], tmp_path / "report.html").read_text()
    reader = Reader(text)
    assert reader.stack == []
    assert reader.links == []
    assert reader.tags.count("script") == 2
    outside = set(re.findall(r"https?://[^\s\"'<)]+|@import|\bfetch\(|XMLHttpRequest", text))
    assert outside <= {"http://www.w3.org/2000/svg"}  # the name of the SVG element type, which nothing loads
    assert "default-src 'none'" in text


def test_every_run_is_there_with_its_state_and_message(everything, tmp_path):
    text = Reader(write_page([everything], tmp_path / "report.html").read_text()).text()
    assert "</script><b>no & disk" in text  # shown, not obeyed
    for badge, count in (("still running", 1), ("failed", 1), ("interrupted", 1)):
        assert len(re.findall(rf"(?:^| ){badge}(?: |$)", text)) >= count
    for name in ("dense-seed0", "adam-seed1", "allen", "slice"):
        assert name in text or name == "slice"
    assert "12 runs: 9 finished" in text
    assert "memory_gib" in text
    assert "line search rejected" in text


def test_coefficients_come_with_error_bars(tmp_path, build):
    directory = build(tmp_path / "run", steps=9)
    found = {"coefficients": {"D": 0.1, "k": 2.0}, "standard_errors": {"D": 0.002, "k": None}}
    found |= {"correlations": [[1.0, -0.375], [-0.375, 1.0]], "noise": {"data": [0.0123]}}
    summary = json.loads((directory / "summary.json").read_text())
    (directory / "summary.json").write_text(json.dumps(summary | found))
    text = Reader(write_page([directory], tmp_path / "report.html").read_text()).text()
    for shown in ("standard error of D 2.00e-03", "D, k -0.375", "0.0123"):
        assert shown in text


def test_text_cannot_break_out(tmp_path, build):
    nasty = "<img src=x onerror=alert(1)>\"'</script><!--&amp;{{data}}"
    directory = build(tmp_path / "run", status="failed", message=nasty, steps=9, **{nasty: nasty})
    summary = json.loads((directory / "summary.json").read_text())
    changed = {"problem": nasty, "method": nasty, "solver": nasty, "coefficients": {nasty: [1]}, "status": nasty}
    (directory / "summary.json").write_text(json.dumps(summary | changed))
    row = json.loads((directory / "history.jsonl").read_text().splitlines()[0])
    (directory / "history.jsonl").write_text(json.dumps(row | {"terms": {nasty: 1.0}, "outcome": nasty}) + "\n")
    reader = Reader(render(find_runs([tmp_path])))
    assert reader.stack == []
    assert "img" not in reader.tags
    assert reader.tags.count("script") == 2
    assert nasty in reader.text()
    names = [series["name"] for chart in reader.data()["runs"][0]["charts"] for series in chart["series"]]
    assert nasty in names


def test_embedded_json_is_the_same_json():
    data = {"a": "</script><!-- & > \u2028 ½", "b": [1.5, None]}
    assert "<" not in embed(data)
    assert json.loads(embed(data)) == data
    with pytest.raises(ValueError, match="JSON"):
        embed({"a": float("nan")})


def test_curves_are_thinned_and_keep_what_was_evaluated(tmp_path, build):
    build(tmp_path / "run", steps=5000)
    (run,) = find_runs([tmp_path])
    data = Reader(render([run])).data()["runs"][0]
    assert len(data["seconds"]) <= 600
    errors = next(chart for chart in data["charts"] if chart["title"].startswith("relative"))["series"][0]["y"]
    evaluated = [row["rel_l2"] for row in run.history if "rel_l2" in row]
    np.testing.assert_allclose([error for error in errors if error is not None], evaluated, rtol=1e-4)
    titles = [chart["title"] for chart in data["charts"]]
    assert not any("solver" in title for title in titles)  # a dense solver has no iterations


def test_an_iterative_solver_shows_its_iterations(tmp_path, build):
    build(tmp_path / "run", method="pcg")
    titles = [chart["title"] for chart in Reader(render(find_runs([tmp_path]))).data()["runs"][0]["charts"]]
    assert {"solver iterations", "damping λ", "step length", "solver residual"} <= set(titles)


def test_pictures_hold_the_fields(tmp_path, build):
    build(tmp_path / "run", points=41)
    (run,) = find_runs([tmp_path])
    fields = run.load_fields()
    pictures = Pictures([fields])
    plane = pictures.add(fields)
    assert [view["title"] for view in plane["views"]] == ["speed", "u", "v", "p − mean"]
    network, reference, error = plane["views"][1]["panels"]
    for panel, values, bits in ((network, fields.prediction, 16), (reference, fields.reference, 16)):
        stored = pictures.arrays[panel["array"]]
        codes = np.frombuffer(base64.b64decode(stored["data"]), "<u2").reshape(stored["shape"])
        decoded = stored["low"] + codes / (2**bits - 2) * (stored["high"] - stored["low"])
        np.testing.assert_allclose(decoded, values[..., 0], atol=1e-4)
    assert pictures.arrays[error["array"]]["bits"] == 8
    count = len(pictures.arrays)
    pictures.add(fields)
    assert len(pictures.arrays) == count  # what is the same is stored once


def test_numbers_that_are_not_finite_have_their_own_code(tmp_path, build):
    directory = build(tmp_path / "run", problem="heat_10d", points=9)
    with np.load(directory / "fields.npz") as archive:
        arrays = dict(archive)
    arrays["prediction"][2, 3] = np.nan
    np.savez(directory / "fields.npz", **arrays)
    (run,) = find_runs([tmp_path])
    pictures = Pictures([])
    panel = pictures.add(run.load_fields())["views"][0]["panels"][0]
    codes = np.frombuffer(base64.b64decode(pictures.arrays[panel["array"]]["data"]), "<u2").reshape(9, 9)
    assert (codes == 65535).sum() == 1
    assert codes[2, 3] == 65535


def test_many_runs_get_coarser_pictures(tmp_path, build):
    build(tmp_path / "run", points=191)
    fields = find_runs([tmp_path])[0].load_fields()
    assert Pictures([fields]).largest == 192
    assert Pictures([fields] * 100).largest < 96


def test_a_run_of_which_little_is_left(tmp_path, build):
    directory = build(tmp_path / "run")
    for name in ("summary.json", "history.jsonl"):
        (directory / name).unlink()
    (directory / "fields.npz").write_bytes(b"PK nonsense")
    text = Reader(render(find_runs([tmp_path]))).text()
    for note in ("summary.json is missing", "history.jsonl is missing", "fields.npz could not be read"):
        assert note in text


def test_into_a_directory(tmp_path, build):
    build(tmp_path / "run", steps=3)
    assert write_page([tmp_path], tmp_path) == tmp_path / "report.html"
    assert write_page([tmp_path], tmp_path / "new" / "page.html").exists()


BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome", "headless_shell")
BROWSER = next((path for name in BROWSERS if (path := shutil.which(name))), None)


@pytest.mark.skipif(BROWSER is None, reason=f"none of {', '.join(BROWSERS)} is on PATH")
def test_a_browser_runs_it_from_a_file_without_complaint(everything, tmp_path):
    page = write_page([everything], tmp_path / "report.html")
    # Open every run and press every switch, as a reader would, before the page is looked at.
    action = """
    <script>
    for (const details of document.querySelectorAll("details.run")) { details.open = true; drawRun(details); }
    for (const button of document.querySelectorAll("button")) button.click();
    document.documentElement.dataset.pressed = "yes";
    </script></body>"""
    page.write_text(page.read_text().replace("</body>", action))
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--log-level=0"]
    flags += ["--window-size=390,844", "--virtual-time-budget=4000", f"--user-data-dir={tmp_path / 'profile'}"]
    result = subprocess.run([BROWSER, *flags, "--dump-dom", page.as_uri()], capture_output=True, text=True, timeout=120)
    complaints = [line for line in result.stderr.splitlines() if "CONSOLE" in line]
    assert complaints == []
    assert 'data-ready="yes"' in result.stdout
    assert 'data-pressed="yes"' in result.stdout
    assert result.stdout.count("<svg") > 40
    assert result.stdout.count("<canvas") > 20
    assert "NaN" not in "".join(re.findall(r' d="[^"]*"', result.stdout))
