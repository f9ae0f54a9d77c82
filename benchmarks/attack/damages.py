"""Damaged run directories: every file of a run, damaged in every way, then loaded, reported and resumed."""

import io
import json
import os
import shutil
import warnings
import zipfile
from pathlib import Path

import numpy as np
from inputs import Begins, problem, solve

import dngd
from dngd.train.sealed import seal

AT = np.linspace(0, 1, 7)[:, None]


def newest(run):
    return sorted((run / "checkpoint").glob("*.npz"))[-1]


FILES = {
    "summary.json": lambda run: run / "summary.json",
    "history.jsonl": lambda run: run / "history.jsonl",
    "config.yaml": lambda run: run / "config.yaml",
    "checkpoint": newest,
    "fields.npz": lambda run: run / "fields.npz",
}


def flipped(where):
    def change(path):
        data = bytearray(path.read_bytes())
        data[int(where * (len(data) - 1))] ^= 0x10
        path.write_bytes(data)

    return change


def directory_instead(path):
    path.unlink()
    path.mkdir()


def endless(path):
    path.unlink()
    path.symlink_to("/dev/zero")


def pipe(path):
    path.unlink()
    os.mkfifo(path)


def vast(path):
    """A file that claims 4 TiB and takes no room."""
    path.write_bytes(b"")
    os.truncate(path, 2**42)


def written(data):
    return lambda path: path.write_bytes(data)


ANY = {
    "empty": written(b""),
    "cut in half": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
    "a byte changed at the start": flipped(0.1),
    "a byte changed in the middle": flipped(0.5),
    "a byte changed at the end": flipped(0.9),
    "random bytes": lambda path: path.write_bytes(np.random.default_rng(0).bytes(5000)),
    "zeros": written(bytes(5000)),
    "missing": lambda path: path.unlink(),
    "a directory": directory_instead,
    "a link without an end": endless,
    "a pipe": pipe,
    "4 TiB of zeros": vast,
}


def replaced(**entries):
    """A summary with other entries and a checksum that fits."""

    def change(run):
        found = json.loads((run / "summary.json").read_text())
        found.pop("checksum", None)
        (run / "summary.json").write_bytes(seal(json.dumps(found | entries, indent=2) + "\n"))

    return change


def row(text):
    """A history whose second row is this."""

    def change(run):
        lines = (run / "history.jsonl").read_bytes().splitlines(keepends=True)
        (run / "history.jsonl").write_bytes(lines[0] + text.encode("utf-8", "surrogatepass") + b"\n" + lines[2])

    return change


def file(name, text):
    return lambda run: (run / name).write_text(text)


def giant(run):
    """An archive of a field that claims 72 TiB."""
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": (10**13,)})
    with zipfile.ZipFile(run / "fields.npz", "w") as archive:
        archive.writestr("values.npy", header.getvalue())
        archive.writestr("step.npy", header.getvalue())


def bomb(run):
    """A small archive of 4 GB of zeros."""
    header = {"descr": "|u1", "fortran_order": False, "shape": (4 * 10**9,)}
    with (
        zipfile.ZipFile(run / "fields.npz", "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("prediction.npy", "w", force_zip64=True) as member,
    ):
        np.lib.format.write_array_header_1_0(member, header)
        for _ in range(40):
            member.write(bytes(10**8))


def lone(run):
    with (run / "fields.npz").open("wb") as file:
        np.save(file, np.zeros(3))


def pickled(run):
    class Evil:
        def __reduce__(self):
            return os.system, ("touch executed",)

    np.savez(run / "fields.npz", values=np.array([Evil()], dtype=object))
    np.savez(newest(run), values=np.array([Evil()], dtype=object))


def old_checkpoints_only(run):
    for path in (run / "checkpoint").glob("*.npz"):
        path.write_bytes(path.read_bytes()[:-5])


def another_problem(run):
    shutil.rmtree(run)
    changed = problem(conditions={"it": dngd.Equation(lambda u: u.xx - 3.0, points=8), "ends": dngd.Dirichlet(0.0)})
    solve(changed, out=run, steps=4)


DEEP = '{"a": ' * 50_000 + "1" + "}" * 50_000
CONTENTS = {
    **{f"summary.json: {text[:30]}": file("summary.json", text) for text in ("null", "[]", "3", '"text"', "{}", DEEP)},
    "summary.json: a number of 5,000 digits": file("summary.json", '{"steps": ' + "9" * 5000 + "}"),
    "summary.json: half a letter": file("summary.json", '{"message": "\\ud800"}'),
    **{
        f"summary.json: {name} is {value!r}": replaced(**{name: value})
        for name, value in {
            "status": 3, "outcome": None, "steps": "many", "seconds": -1e400, "rel_l2": "small", "errors": [1], "message": {},
            "coefficients": 3, "environment": None, "points": [], "largest_at": "here", "problem": None, "started": 3, "method": [],
        }.items()
    },
    "history.jsonl: a row is null": row("null"),
    "history.jsonl: a row is nested deeply": row(DEEP),
    "history.jsonl: a number of 5,000 digits": row('{"step": 2, "loss": ' + "9" * 5000 + "}"),
    "history.jsonl: a number that is too large": row('{"step": 2, "loss": 1e400, "seconds": 1}'),
    "history.jsonl: half a letter": row('{"step": 2, "outcome": "\ud800"}'),
    "history.jsonl: terms are a list": row('{"step": 2, "seconds": 1.0, "loss": 1.0, "terms": [1]}'),
    "config.yaml: null": file("config.yaml", "null\n"),
    "config.yaml: a list": file("config.yaml", "- a\n"),
    "config.yaml: code": file("config.yaml", "problem: !!python/object/apply:os.system ['touch executed']\n"),
    "config.yaml: nested deeply": file("config.yaml", "a: " + "[" * 5000 + "]" * 5000 + "\n"),
    "config.yaml: a bomb": file("config.yaml", "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(f"{chr(98 + i)}: &{chr(98 + i)} [{','.join(['*' + chr(97 + i)] * 9)}]\n" for i in range(9))),
    "config.yaml: unknown setting": file("config.yaml", "problem: null\nsecnods: 3\n"),
    "config.yaml: bad value": file("config.yaml", "problem: null\nsteps: -3\n"),
    "config.yaml: names a file": file("config.yaml", "problem: evil.py:problem\nsteps: 4\n"),
    "fields.npz: 72 TiB": giant,
    "fields.npz: a bomb": bomb,
    "fields.npz: an array alone": lone,
    "fields.npz and checkpoint: pickles": pickled,
    "fields.npz: text": lambda run: np.savez(run / "fields.npz", values=np.array(["a"]), step=np.array(["b"])),
    "fields.npz: empty arrays": lambda run: np.savez(run / "fields.npz", values=np.zeros((0, 0)), step=np.zeros(0)),
    "checkpoint: none is whole": old_checkpoints_only,
    "checkpoint: missing": lambda run: shutil.rmtree(run / "checkpoint"),
    "checkpoint: a file instead of the directory": lambda run: (shutil.rmtree(run / "checkpoint"), (run / "checkpoint").write_text("x")),
    "checkpoint: of another problem": another_problem,
    "request.json: nonsense": file("request.json", DEEP),
    "everything: missing": lambda run: [shutil.rmtree(one) if one.is_dir() else one.unlink() for one in run.iterdir()],
}  # fmt: skip
DAMAGES = {
    f"{name}: {how}": (lambda run, find=find, change=change: change(find(run)))
    for name, find in FILES.items()
    for how, change in ANY.items()
} | CONTENTS


def contents(run):
    """Of all files but the lock, by path; of a vast one its size."""
    files = [
        path for path in sorted(run.rglob("*")) if path.is_file() and path.name != ".lock" and not path.is_symlink()
    ]
    return {path: size if (size := path.stat().st_size) > 2**30 else path.read_bytes() for path in files}


def attacked(verdict, command):
    """Name, and how what was tried went: the first that is not as it should be, else how loading went."""
    Path("evil.py").write_text("open('executed', 'w')\nproblem = 3\n")
    whole = solve(out="whole", steps=4, checkpoint_seconds=1e-3)
    expected = whole.predict(AT), whole.history
    for name, damage in DAMAGES.items():
        run = Path("damaged")
        shutil.rmtree(run, ignore_errors=True)
        shutil.copytree("whole", run)
        damage(run)
        yield name, _tried(run, expected, verdict, command)
        if Path("executed").exists():
            raise SystemExit(f"{name}: something was executed")


def _tried(run, expected, verdict, command):
    before, found = contents(run), {}

    def load():
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            solution = dngd.load(run, problem())
        found["said"] = [str(one.message) for one in said]
        found["same"] = np.array_equal(solution.predict(AT), expected[0]) and solution.history == expected[1]

    how, said = verdict(load)
    if how == "accepted":
        if not found["same"] and not found["said"]:
            return "unclear", "loads something else without a word"
        how, said = "clear", "; ".join(found["said"]) or "loads as it was"
    if how == "unclear":
        return how, f"load: {said}"
    for arguments in (["report", str(run), "--out", "page.html"], ["resume", str(run)]):
        reported, text = command(arguments)
        if reported == "unclear":
            return reported, f"{arguments[0]}: {text}"
    if contents(run) != before:
        return "unclear", "loading, reporting or a refused resume changed the directory"
    resumed, text = verdict(lambda: dngd.resume(run, problem(), steps=5, quiet=True, observers=[Begins()]))
    if resumed == "unclear":
        return resumed, f"resume: {text}"
    return how, said
