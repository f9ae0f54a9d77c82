"""The live page: what has changed and nothing else, for whoever has the address, about the given directories only."""

import http.client
import json
import os
import re
import subprocess
import threading
from urllib.parse import urlsplit

import numpy as np
import pytest

from dngd.report import watch
from dngd.report.history import History
from dngd.report.live import LOST, Live
from dngd.train import lock, requests
from dngd.train.sealed import seal


class Browser:
    """Sends requests to a server, as a browser does."""

    def __init__(self, server):
        self.server, self.token = server, server.token
        self.host = urlsplit(server.address).netloc

    def send(self, method, path, body=None, **headers):
        connection = http.client.HTTPConnection(self.host, timeout=30)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, path, body, named)
        response = connection.getresponse()
        text = response.read().decode()
        connection.close()
        return response, text

    def get(self, place="", **headers):
        return self.send("GET", f"/{self.token}/{place}", **headers)

    def news(self, since):
        return json.loads(self.get(f"news?since={since}")[1])

    def ask(self, run, **request):
        response, text = self.send("POST", f"/{self.token}/ask", json.dumps({"run": run} | request))
        return response.status, json.loads(text).get("error")


@pytest.fixture
def serve(monkeypatch):
    """Starts a server for directories; returns what talks to it."""
    monkeypatch.setattr("dngd.report.live.SCAN", 0.0)
    servers = []

    def start(*paths, **options):
        server = watch.Server(paths, **options)
        servers.append(server)
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        return Browser(server)

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.fixture
def held():
    """Takes the locks of run directories, as a run does that goes on."""
    taken = []
    yield lambda directory: taken.append(lock.acquire(directory / ".lock"))
    for descriptor in taken:
        os.close(descriptor)


def data_of(page):
    return json.loads(re.search(r'id="data">(.*?)</script>', page)[1])


def append(directory, **changes):
    """Add a row to a history, behind a line that was torn."""
    path = directory / "history.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    whole = lines if lines[-1].endswith("\n") else lines[:-1]
    row = json.loads(whole[-1]) | changes
    path.write_bytes("".join(whole).encode() + seal(json.dumps(row)) + b"\n")


def test_the_page_and_its_news(serve, build, tmp_path, held):
    run = build(tmp_path / "runs" / "one", status="running", steps=20, points=31)
    build(tmp_path / "runs" / "two", method="pcg", seed=1, points=21)
    held(run)
    browser = serve(tmp_path / "runs")
    response, page = browser.get()
    assert response.status == 200
    assert response.headers["Cache-Control"] == "no-store"
    data = data_of(page)
    assert "connect-src 'self'" in page
    assert not re.search(r'(?:src|href)="(?!data:,)', page)
    assert {number: run["control"]["state"] for number, run in data["runs"].items()} == {"0": "running", "1": "ended"}
    assert browser.news(data["version"]) == {"failures": {}}  # nothing has changed

    append(run, step=21, seconds=61.0, rel_l2=1e-7, errors={"u": 1e-7})
    news = browser.news(data["version"])
    assert list(news["data"]["runs"]) == ["0"]
    assert news["data"]["runs"]["0"]["step"][-1] == 21
    assert "fields" not in news["data"]["runs"]["0"]
    assert news["data"]["arrays"] == {}
    assert "1.00e\N{NON-BREAKING HYPHEN}07" in news["page"]
    assert '<script>\n"use strict";\n\n</script>' in news["page"]
    assert (run / ".watched").exists()

    with np.load(run / "fields.npz") as archive:
        arrays = dict(archive)
    np.savez(run / "fields.npz", **(arrays | {"step": np.array(21)}))
    again = browser.news(news["data"]["version"])["data"]
    assert again["runs"]["0"]["fields"]["step"] == 21
    assert again["arrays"]

    build(tmp_path / "runs" / "three", problem="oscillator", points=21)
    later = browser.news(again["version"])["data"]
    assert list(later["runs"]) == ["2"]
    assert len(later["convergence"]) == 2


def test_only_who_has_the_address_may_look_and_ask(serve, build, tmp_path, held):
    run = build(tmp_path / "run", status="running", steps=5, points=9)
    held(run)
    browser = serve(run)
    assert browser.server.server_address[0] == "127.0.0.1"
    port = browser.server.server_address[1]
    wrong = browser.token[:-1] + ("a" if browser.token[-1] != "a" else "b")
    for path in ("/", "/news", f"/{wrong}/", f"/?{browser.token}", "//", "/%C3%A9", f"/news/{browser.token}/"):
        assert browser.send("GET", path)[0].status == 403
    for host in ("evil.example", f"evil.example:{port}", f"127.0.0.1.evil.example:{port}", "", "localhost@evil"):
        assert browser.get(Host=host)[0].status == 403
    for host in (f"localhost:{port}", "127.0.0.1:8080", "[::1]:9"):
        assert browser.get(Host=host)[0].status == 200
    ask = f"/{browser.token}/ask"
    body = json.dumps({"run": 0, "stop": True})
    assert browser.send("POST", f"/{wrong}/ask", body)[0].status == 403
    assert browser.send("POST", ask, body, Origin="http://evil.example")[0].status == 403
    assert browser.send("POST", ask, body, Origin="null")[0].status == 403
    assert browser.get("ask")[0].status == 404
    assert browser.send("PUT", ask, body)[0].status == 501
    assert not (run / "request.json").exists()
    for place in ("../summary.json", "summary.json", "%2e%2e/%2e%2e/etc/passwd", "page.css", "news/../../config.yaml"):
        assert browser.get(place)[0].status == 404
    assert "request.json" not in os.listdir(run)
    assert browser.send("POST", ask, body, Origin=f"http://{browser.host}")[0].status == 200
    assert json.loads((run / "request.json").read_text()) == {"stop": True}


def test_what_is_asked_of_a_run_that_goes_on(serve, build, tmp_path, held):
    run = build(tmp_path / "run", status="running", steps=5, points=9)
    held(run)
    browser = serve(run)
    for request in ({"pause": True}, {"pause": False}, {"seconds": 90.5}, {"steps": 900}, {"stop": True}):
        assert browser.ask(0, **request) == (200, None)
        assert json.loads((run / "request.json").read_text()) == request
    (run / "request.json").unlink()
    for request, said in (
        ({"halt": True}, "unknown request"),
        ({}, "one thing at a time"),
        ({"seconds": -1}, "seconds=-1"),
        ({"seconds": "60"}, "seconds="),
        ({"steps": 1.5}, "steps=1.5"),
        ({"stop": 1}, "stop=1"),
    ):
        status, error = browser.ask(0, **request)
        assert (status, said in error) == (409, True)
    for number in (7, -1, "0", None, "../run", [0]):
        assert browser.ask(number, stop=True) == (409, "there is no such run any more")
    for body in ("", "{}", "[]", "null", "[" * 2000, '{"run": 0', "\xff"):
        assert browser.send("POST", f"/{browser.token}/ask", body.encode("latin-1"))[0].status == 400
    assert browser.send("POST", f"/{browser.token}/ask", b" " * 5000)[0].status == 413
    assert not (run / "request.json").exists()


def test_a_run_that_has_ended_goes_on_in_a_process_of_its_own(serve, build, tmp_path, monkeypatch):
    run, mine, other = (build(tmp_path / name, steps=5, points=9) for name in ("a", "b", "c"))
    (mine / "config.yaml").write_text("problem: /home/someone/my_pde.py:problem\nseconds: 60.0\n")
    (other / "config.yaml").write_text("problem: flow (given in Python)\nsteps: 60\n")
    started = []

    class Process(subprocess.Popen):
        _child_created = False  # so that nothing is waited for

        def __init__(self, command, **options):
            started.append(command)
            options["stderr"].write(b"Traceback\ndngd: the disk is full\n")

        def poll(self):
            return code[0]

    code = [None]
    monkeypatch.setattr(watch.subprocess, "Popen", Process)
    browser = serve(tmp_path)
    assert data_of(browser.get()[1])["runs"]["2"]["control"] == {"state": "ended", "name": "c", "steps": 60}
    assert browser.ask(0, stop=True) == (409, "the run has ended")
    assert browser.ask(0, seconds=120) == (200, None)
    assert started[0][1:] == ["-m", "dngd", "resume", str(run), "--quiet", "--seconds", "120"]
    assert "already" in browser.ask(0, seconds=120)[1]
    code[0] = 1
    assert browser.news(0)["failures"] == {"0": "dngd: the disk is full"}
    assert "start dngd watch with --trust" in browser.ask(1, seconds=120)[1]
    assert "dngd.resume(path, problem" in browser.ask(2, steps=120)[1]
    assert len(started) == 1
    trusting = serve(tmp_path, trust=True)
    trusting.get()
    assert trusting.ask(1, steps=9) == (200, None)
    assert started[1][-3:] == ["--steps", "9", "--trust"]


def test_a_broken_run_is_a_row_and_a_lost_one_says_so(serve, build, tmp_path, monkeypatch):
    build(tmp_path / "runs" / "good", steps=5, points=9)
    lost = build(tmp_path / "runs" / "lost", status="running", steps=5, points=9)
    nasty = build(tmp_path / "runs" / "nasty", steps=5, points=9)
    summary = json.loads((nasty / "summary.json").read_text())
    changes = {"seed": {"a": [1]}, "errors": 3, "error_range": [None], "standard_errors": [1], "method": "<img src=x>"}
    (nasty / "summary.json").write_text(json.dumps(summary | changes))
    (nasty / "fields.npz").write_bytes(b"PK nonsense")
    secret = tmp_path / "secret.yaml"
    secret.write_text("password: hunter2\n")
    linked = build(tmp_path / "runs" / "outside", steps=5, points=9)
    (linked / "config.yaml").unlink()
    (linked / "config.yaml").symlink_to(secret)
    (tmp_path / "runs" / "void").mkdir()
    (tmp_path / "runs" / "void" / "summary.json").write_text("[" * 10**5)
    browser = serve(tmp_path / "runs")
    response, page = browser.get()
    assert response.status == 200
    assert "config.yaml is a link that leads out of the directory" in page
    assert "hunter2" not in page
    assert "<img" not in page
    assert "a run that cannot be shown" in page
    assert LOST in page
    assert data_of(page)["runs"]["1"]["control"]["state"] == "ended"
    assert len(data_of(page)["runs"]) == 5
    assert not (lost / ".watched").exists()


def test_a_folder_without_runs_waits_for_the_first(serve, build, tmp_path):
    browser = serve(tmp_path)
    page = browser.get()[1]
    assert "No run yet" in page
    build(tmp_path / "run", steps=3, points=9)
    assert list(browser.news(data_of(page)["version"])["data"]["runs"]) == ["0"]
    with pytest.raises(ValueError, match="is not a directory"):
        Live([tmp_path / "nowhere"])


def test_a_history_is_read_on_and_read_anew_when_it_was_cut_back(tmp_path):
    path = tmp_path / "history.jsonl"
    rows = [seal(json.dumps({"step": step, "loss": 1 / step})) + b"\n" for step in range(1, 9)]
    history = History(path).update()
    assert history.notes == ("history.jsonl is missing: no step was recorded",)
    path.write_bytes(b"".join(rows[:4]) + rows[4][:9])
    assert [row["step"] for row in history.update().rows] == [1, 2, 3, 4]
    path.write_bytes(b"".join(rows[:6]))
    assert [row["step"] for row in history.update().rows] == [1, 2, 3, 4, 5, 6]
    other = [seal(json.dumps({"step": step, "loss": 2 / step})) + b"\n" for step in range(3, 12)]
    path.write_bytes(b"".join(rows[:2] + other))  # cut back to two rows, and longer than before when seen again
    assert [row["loss"] for row in history.update().rows][2:4] == [2 / 3, 2 / 4]
    path.write_bytes(b"".join(rows[:2]) + b"damaged\n" + rows[3])
    assert [row["step"] for row in history.update().rows] == [1, 2, 4]
    assert "the first is line 3" in history.notes[0]


def test_asking_for_a_lock_does_not_take_it(tmp_path):
    path = tmp_path / ".lock"
    assert not lock.is_held(path)
    assert not path.exists()
    descriptor = lock.acquire(path)
    assert lock.is_held(path)
    assert path.read_text() == str(os.getpid())
    os.close(descriptor)
    assert not lock.is_held(path)
    assert requests.RECENT > 10  # a page that looks every few seconds counts as someone who watches
