"""Observers that write curves for TensorBoard, Weights & Biases or MLflow, each if it is installed."""

# Neither wandb nor mlflow is among the packages for development.
# pyright: reportMissingImports=false

import functools
import math
import re
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dngd import check
from dngd.train.observer import Observer
from dngd.train.run import Run
from dngd.train.state import RunState

__all__ = ["MLflow", "TensorBoard", "WandB"]

SCALARS = ("loss", "rel_l2", "estimate", "damping", "step_length", "gain", "gradient_norm", "solver_iterations")

SECONDS, VALUES = 1.0, 900
"""Seconds between requests to a server of MLflow, where one a step would slow down quick ones, and the largest number
of values in one, which may hold a thousand."""


def scalars(row: Mapping[str, Any]) -> dict[str, float]:
    """The numbers of a row of the history that are worth a curve, by the name of that."""
    values = {name: row[name] for name in SCALARS if row.get(name) is not None}
    values |= {f"terms/{accepted(name)}": value for name, value in row["terms"].items()}
    return {name: float(value) for name, value in values.items() if math.isfinite(value)}


def ending(summary: Mapping[str, Any]) -> dict[str, float]:
    """The numbers that a run ends with."""
    found = {name: summary[name] for name in ("rel_l2", "estimate", "loss", "steps", "seconds", "compile_seconds")}
    found |= {f"coefficients/{accepted(name)}": value for name, value in summary["coefficients"].items()}
    return {name: value for name, value in found.items() if isinstance(value, float | int)}


def identity(run: Run, state: RunState) -> str:
    """A name that a run keeps when it is resumed, and shares with no other."""
    name = f"{run.problem.name}-{run.config.method}-seed{run.config.seed}-{state.position.started:.6f}"
    return accepted(name)[-120:]


def accepted(name: str) -> str:
    """A name in letters that every service accepts."""
    return re.sub(r"[^A-Za-z0-9_. -]", "-", name)


def settings_of(run: Run) -> dict[str, Any]:
    """All settings of a run, flat."""
    settings = run.config.as_dict()
    inner = {f"optimizer.{name}": value for name, value in settings.pop("optimizer").items()}
    return {"problem": run.problem.name} | settings | inner


class TensorBoard(Observer):
    """Writes curves for TensorBoard: `pip install 'dngd[tensorboard]'`.

    **Arguments:** `directory` of the curves.

    **Example:** `dngd.solve(problem, observers=[dngd.loggers.TensorBoard("runs/mine/tensorboard")])`
    """

    def __init__(self, directory: str | Path):
        check.installed("tensorboardX", "a log for TensorBoard", "tensorboard")
        from tensorboardX import SummaryWriter

        # Made with the first row: until then the directory is not ours to fill.
        self._writer = functools.cache(lambda: SummaryWriter(str(directory)))

    def step(self, run: Run, state: RunState, row: dict[str, Any]) -> None:
        for name, value in scalars(row).items():
            self._writer().add_scalar(name, value, row["step"])

    def close(self) -> None:
        if self._writer.cache_info().currsize:
            self._writer().close()


class WandB(Observer):
    """Logs a run to Weights & Biases: `pip install 'dngd[wandb]'`. A resumed run goes on with its log.

    **Arguments:** `settings` of `wandb.init`, such as `project`, `name` and `mode`.

    **Example:** `dngd.solve(problem, observers=[dngd.loggers.WandB(project="flows", mode="offline")])`
    """

    def __init__(self, **settings: Any):
        check.installed("wandb", "a log for Weights & Biases", "wandb")
        self._settings = settings
        self._log: Any = None
        self._failed = 1  # until the run has ended

    def start(self, run: Run, state: RunState) -> None:
        import wandb

        ours = {"project": "dngd", "id": identity(run, state), "resume": "allow", "config": settings_of(run)}
        self._log = wandb.init(**(ours | self._settings))

    def step(self, run: Run, state: RunState, row: dict[str, Any]) -> None:
        self._log.log(scalars(row), step=row["step"])

    def end(self, summary: Mapping[str, Any]) -> None:
        self._log.summary.update(ending(summary) | {"outcome": summary["outcome"], "message": summary["message"]})
        self._failed = 0

    def close(self) -> None:
        if self._log is not None:
            self._log.finish(exit_code=self._failed)


class MLflow(Observer):
    """Logs a run to MLflow: `pip install 'dngd[mlflow]'`. A resumed run goes on with its log.

    **Arguments:**

    - `experiment`: name of the experiment; made if there is none.
    - `tracking_uri`: of the server; that of the environment (`MLFLOW_TRACKING_URI`) if not given.

    **Example:** `dngd.solve(problem, observers=[dngd.loggers.MLflow("flows", tracking_uri="http://localhost:5000")])`
    """

    def __init__(self, experiment: str = "dngd", tracking_uri: str | None = None):
        check.installed("mlflow", "a log for MLflow", "mlflow")
        self._experiment, self._uri = experiment, tracking_uri
        self._client: Any = None
        self._run = ""
        self._waiting: list[Any] = []
        self._sent, self._status = time.monotonic(), "FAILED"  # until the run has ended

    def start(self, run: Run, state: RunState) -> None:
        from mlflow import MlflowClient
        from mlflow.entities import Param

        client, name = MlflowClient(self._uri), identity(run, state)
        known = client.get_experiment_by_name(self._experiment)
        experiment = client.create_experiment(self._experiment) if known is None else known.experiment_id
        if found := client.search_runs([experiment], f"tags.`dngd.run` = '{name}'"):
            self._run = found[0].info.run_id
            client.update_run(self._run, status="RUNNING")
        else:
            self._run = client.create_run(experiment, run_name=name, tags={"dngd.run": name}).info.run_id
            settings = [Param(setting, str(value)) for setting, value in settings_of(run).items()]
            client.log_batch(self._run, params=settings)
        self._client = client

    def step(self, run: Run, state: RunState, row: dict[str, Any]) -> None:
        self._add(scalars(row), row["step"])
        if time.monotonic() - self._sent > SECONDS or len(self._waiting) > VALUES // 2:
            self._send()

    def end(self, summary: Mapping[str, Any]) -> None:
        self._add({f"end/{name}": value for name, value in ending(summary).items()}, summary["steps"])
        self._client.set_tag(self._run, "dngd.outcome", summary["outcome"])
        self._status = "FINISHED"

    def close(self) -> None:
        if self._client is not None:
            self._send()
            self._client.set_terminated(self._run, self._status)

    def _add(self, values: Mapping[str, float], step: int) -> None:
        from mlflow.entities import Metric

        now = round(time.time() * 1000)
        self._waiting += [Metric(name, value, now, step) for name, value in values.items()]

    def _send(self) -> None:
        while self._waiting:
            some, self._waiting = self._waiting[:VALUES], self._waiting[VALUES:]
            self._client.log_batch(self._run, metrics=some)
        self._sent = time.monotonic()
