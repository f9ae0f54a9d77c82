"""Methods × seeds, each run in a process of its own, so that a run that dies takes nothing with it."""

import contextlib
import json
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import jax

from dngd.check import count
from dngd.config import Config
from dngd.config.method import check_method
from dngd.train.directory import RunDirectory, RunDirectoryError, read_settings, read_summary
from dngd.train.files import atomic_write, writing
from dngd.train.launch import Ended, Launch, execute
from dngd.train.locate import find_problem
from dngd.train.record import run_summary


@dataclass(frozen=True)
class Comparison:
    """A set of runs that differ in method and seed, and their directory."""

    problem: str
    methods: tuple[str, ...]
    seeds: tuple[int, ...]
    settings: Config
    out: Path

    def __post_init__(self):
        if not self.methods:
            raise ValueError("compare needs at least one method, such as --methods dense+ga,adam")
        if not self.seeds:
            raise ValueError("compare needs at least one seed: --seeds 3")
        for method in self.methods:
            check_method("methods", method)
        self.settings.resolved(find_problem(self.problem))

    def runs(self) -> Iterator[tuple[str, Config]]:
        """Yield the name and the settings of every run."""
        for method in self.methods:
            for seed in self.seeds:
                name = f"{method.replace('>', '-').replace(':', '')}-seed{seed}"
                yield name, replace(self.settings, method=method, seed=seed)

    def run(self, jobs: int = 1, launch: Launch = execute) -> dict[str, int]:
        """Run what is not finished, `jobs` at once; returns exit codes by name."""
        return run_all([self], jobs, launch)

    def _describe(self) -> None:
        """Write what is compared; refuse a directory that holds another comparison."""
        import yaml

        described = {
            "problem": self.problem,
            "methods": list(self.methods),
            "seeds": list(self.seeds),
            "settings": {k: value for k, value in self.settings.as_dict().items() if k not in ("method", "seed")},
        }
        path = self.out / "comparison.yaml"
        if stored := read_settings(path):
            # More methods or seeds may join; other settings would not be comparable.
            for name in ("problem", "settings"):
                if stored.get(name) != described[name]:
                    raise RunDirectoryError(
                        f"{self.out} holds a comparison with {name} = {stored.get(name)}, not {described[name]}; "
                        "choose another --out"
                    )
            for name in ("methods", "seeds"):
                before = stored.get(name)
                if not isinstance(before, list):
                    raise RunDirectoryError(f"{path}: {name} = {before!r} is not a list; restore the file")
                described[name] = list(dict.fromkeys([*before, *described[name]]))
        with writing(path, RunDirectoryError):
            self.out.mkdir(parents=True, exist_ok=True)
            atomic_write(path, yaml.safe_dump(described, sort_keys=False).encode())

    def _run_one(self, name: str, config: Config, launch: Launch) -> int:
        directory = self.out / name
        summary = read_summary(directory)
        if summary is not None and summary.get("status") == "finished":
            print(f"{name}: finished before", flush=True)
            return 0
        print(f"{name}: …", flush=True)
        settings = {"problem": self.problem, **config.as_dict()}
        command = [sys.executable, "-m", "dngd.train.one_run", str(directory), json.dumps(settings)]
        ended = launch(command, _variables())
        summary = read_summary(directory)
        if summary is None or (ended.code != 0 and summary.get("status") == "running"):
            summary = self._record_death(directory, config, summary, ended)
        error = summary["rel_l2"]
        shown = summary["message"] if error is None else f"error {error:.2e}"
        print(f"{name}: {summary['outcome']}, {shown}", flush=True)
        return ended.code

    def _record_death(
        self, directory: Path, config: Config, summary: dict[str, Any] | None, ended: Ended
    ) -> dict[str, Any]:
        """Write the summary of a run that was killed before it could, so that it has its row; it can be resumed."""
        message = f"the process ended with {ended.code}"
        problem = find_problem(self.problem)
        config = config.resolved(problem)
        if summary is None:  # it died before it could write anything
            message = (ended.errors.strip().splitlines()[-1:] or [message])[0][-300:]
            summary = run_summary(problem.name, config, None, {"parameters": 0, "residuals": 0, "solver": ""})
        summary |= {"status": "failed", "outcome": "error", "message": message}
        settings = {"problem": self.problem, **config.as_dict()}
        with contextlib.suppress(RunDirectoryError), RunDirectory.create(directory, settings) as run:
            run.write_summary(summary)  # unless another process has taken the run up
        return summary


def run_all(comparisons: Sequence[Comparison], jobs: int = 1, launch: Launch = execute) -> dict[str, int]:
    """Run what is not finished of several comparisons, `jobs` at once; returns exit codes by name."""
    count("jobs", jobs)
    for comparison in comparisons:
        comparison._describe()
    runs = [(comparison, *run) for comparison in comparisons for run in comparison.runs()]
    with ThreadPoolExecutor(jobs) as pool:
        codes = pool.map(lambda run: run[0]._run_one(*run[1:], launch), runs)
        try:
            return {name: code for (_, name, _), code in zip(runs, codes, strict=True)}
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            getattr(launch, "cancel", lambda: None)()
            raise


def _variables() -> dict[str, str]:
    """Variables by which a run shares our cache of compiled programs, so that other seeds need not compile."""
    config: Any = jax.config  # whose attributes are made when JAX is imported
    directory = config.jax_compilation_cache_dir
    if not directory:
        return {}
    least = config.jax_persistent_cache_min_compile_time_secs
    return {"JAX_COMPILATION_CACHE_DIR": directory, "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": str(least)}
