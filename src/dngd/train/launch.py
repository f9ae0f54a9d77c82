"""Where the runs of a comparison are executed: in processes of this machine, or in jobs of a cluster."""

import os
import shutil
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from dngd import check

LAUNCHERS = ("local", "slurm")


class Ended(NamedTuple):
    """How a command ended."""

    code: int
    errors: str


Launch = Callable[[Sequence[str], Mapping[str, str]], Ended]
"""Execute a command with some more environment variables, and wait for it."""


def execute(command: Sequence[str], variables: Mapping[str, str]) -> Ended:
    """In a process of this machine."""
    ended = subprocess.run(list(command), capture_output=True, text=True, env=os.environ | dict(variables))
    return Ended(ended.returncode, ended.stderr)


class Jobs:
    """In a job of its own, through submitit, which keeps scripts and logs in `folder`.

    A job that ends without a word, by its time limit or its node, is a run that has failed; it can be taken up again.
    `cluster` is `"slurm"`, or `"local"` for tests.
    """

    def __init__(self, folder: Path, cluster: str = "slurm", **parameters: Any):
        check.installed("submitit", "a launcher other than local", "cluster")
        if cluster == "slurm" and shutil.which("sbatch") is None:
            raise ValueError("--launcher slurm: there is no sbatch here; start this on a login node of a Slurm cluster")
        import submitit

        self._executor = submitit.AutoExecutor(folder=folder, cluster=cluster)
        self._executor.update_parameters(name="dngd", **parameters)
        self._one_at_a_time, self._submitted = threading.Lock(), []

    def __call__(self, command: Sequence[str], variables: Mapping[str, str]) -> Ended:
        with self._one_at_a_time:
            job = self._executor.submit(execute, list(command), dict(variables))
            self._submitted.append(job)
        try:
            return job.result()
        except Exception as error:  # submitit's own, with the job's log in its message
            return Ended(1, f"job {job.job_id}: {error}")

    def cancel(self) -> None:
        """End what is still waiting or running."""
        for job in self._submitted:
            if not job.done():
                job.cancel()


def launcher(
    name: str, folder: Path, partition: str | None = None, gpus: int | None = None, minutes: int | None = None
) -> Launch:
    """The launcher of this name, with what its jobs ask for."""
    check.choice("launcher", name, LAUNCHERS)
    if name == "local":
        for option, value in (("partition", partition), ("gpus", gpus), ("minutes", minutes)):
            if value is not None:
                raise ValueError(f"--{option} {value} is for jobs; add --launcher slurm")
        return execute
    wanted = {"slurm_partition": partition, "gpus_per_node": gpus, "timeout_min": minutes}
    return Jobs(folder, **{option: value for option, value in wanted.items() if value is not None})
