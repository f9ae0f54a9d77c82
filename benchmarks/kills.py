"""Kill runs at random, again and again, and compare what they end with with a run that nobody disturbed.

    python benchmarks/kills.py [300]

A run solves a small problem by the default method and saves several times a second. It is a process of its own, forked
from one that has imported everything, which is what most of a start costs. It is sent KILL, TERM or INT at random
moments (while it compiles, steps, saves or ends; measured in its own processor time, so that a busy machine changes
nothing) and resumed until it has ended. Losses and parameters have to be equal to the last bit. Counts go to
`results/kills.json` after every run; a call that was broken off is taken up. Linux only.
"""

import json
import os
import random
import signal
import sys
import tempfile
import time
import warnings
from collections import Counter
from functools import partial
from pathlib import Path

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # whoever forks has no threads

import equinox as eqx
import jax
import numpy as np
from measure import RESULTS, save

import dngd
from dngd.cli.cache import use_cache
from dngd.train import trainer  # noqa: F401 - imported here once, instead of by every run

SMALL = f"{Path(__file__).parents[1] / 'tests' / 'train' / 'small.py'}:problem"
SETTINGS = {"steps": 100, "doublings": 0, "checkpoint_seconds": 0.1}
SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
KILLS_OF_A_RUN = 10
warnings.filterwarnings("ignore", message="os.fork")  # JAX is imported here, and nothing more
TICK = 1 / os.sysconf("SC_CLK_TCK")


class Process:
    """One that starts the run, or goes on with it."""

    def __init__(self, run):
        self.run, self.said, self.ended = run, run.with_suffix(".txt"), False
        sys.stdout.flush()
        signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)  # until the child is where it can be interrupted
        self.number = os.fork()
        if not self.number:
            self._work()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)

    def _work(self):
        descriptor = os.open(self.said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(descriptor, 1)
        os.dup2(descriptor, 2)
        try:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
            use_cache()
            begun = (self.run / "config.yaml").exists()
            if begun:
                dngd.resume(self.run, trust=True, quiet=True)
            else:
                dngd.solve(SMALL, out=self.run, quiet=True, **SETTINGS)
        except KeyboardInterrupt:  # it came before the run listened to signals
            pass
        except BaseException:
            sys.excepthook(*sys.exc_info())
        finally:
            os._exit(0)

    def wait(self, seconds=float("inf")):
        """Whether it has ended before it used so many seconds of a processor; a traceback ends everything."""
        while not self.ended and self.used() < seconds:
            self.ended = os.waitpid(self.number, os.WNOHANG)[0] == self.number
            time.sleep(0.005)
        # SIGINT may come before the run listens, and Python's own answer to it in a callback, which prints it.
        if self.ended and "Traceback" in (said := self.said.read_text()) and "KeyboardInterrupt" not in said:
            raise SystemExit(said)
        return self.ended

    def used(self):
        fields = Path(f"/proc/{self.number}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) * TICK


def summary(run):
    path = run / "summary.json"
    return json.loads(path.read_text()) if path.exists() else {}


def disturb(run, chance, longest, kills):
    """Run to the end through so many kills at most; how often each signal came, and how far the run was."""
    counts = Counter()
    while summary(run).get("status") != "finished":
        process = Process(run)
        if counts["kills"] == kills:
            process.wait()
        elif not process.wait(chance.uniform(0.0, longest)):
            sent = chance.choice(SIGNALS)
            os.kill(process.number, sent)
            process.wait()
            counts += Counter(["kills", sent.name, "later" if summary(run).get("steps") else "before the first step"])
    return counts


def ended_with(run):
    """Losses and parameters, as bits."""
    found = dngd.load(run, SMALL)
    leaves = jax.tree.leaves(eqx.filter((found.model, found.last), eqx.is_array))
    return [row["loss"] for row in found.history], [np.asarray(leaf).tobytes() for leaf in leaves]


def differ(run):
    return ended_with(run) != ended_with(run.parent / "whole")


def apart(work):
    """What a function returns, a small number, in a process of its own: whoever forks must have started no threads."""
    number = os.fork()
    if not number:
        try:
            os._exit(int(work() or 0))
        finally:
            os._exit(70)
    code = os.waitstatus_to_exitcode(os.waitpid(number, 0)[1])
    if code not in (0, 1):
        raise SystemExit(f"a comparison ended with exit code {code}")
    return code


def stored(wanted):
    """What an earlier call has counted, if it was broken off."""
    path = RESULTS / "kills.json"
    counts = json.loads(path.read_text())["rows"][0] if path.exists() else {}
    return Counter(counts if counts.get("kills", wanted) < wanted else {"runs": 0, "differ": 0, "kills": 0})


def main(wanted):
    counts, began = stored(wanted), time.perf_counter()
    before, chance = counts.pop("seconds", 0), random.Random(counts["runs"])
    with tempfile.TemporaryDirectory() as folder:
        os.environ["DNGD_CACHE"] = str(Path(folder) / "cache")
        for name in ("compiles", "whole"):
            process = Process(Path(folder) / name)
            while not process.wait(longest := process.used() + 0.05):
                pass
        print(f"a whole run takes {longest:.1f} s of a processor", flush=True)
        while counts["kills"] < wanted:
            run = Path(folder) / f"run{counts['runs']}"
            counts += disturb(run, chance, longest, min(KILLS_OF_A_RUN, wanted - counts["kills"]))
            counts += Counter(runs=1, differ=apart(partial(differ, run)))
            took = before + time.perf_counter() - began
            print(dict(counts), f"{took:.0f} s", flush=True)
            rows = [dict(counts) | {"differ": counts["differ"], "seconds": round(took)}]
            apart(partial(save, "kills", rows))
    return counts["differ"]


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 300))
