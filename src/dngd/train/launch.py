"""Where the runs of a comparison are executed: in processes of this machine, or in jobs of a cluster."""

import contextlib
import hashlib
import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from dngd import check
from dngd.train.partition import allowed_minutes

LAUNCHERS, NAME = ("local", "slurm"), "dngd"

SAVED = 128 + signal.SIGTERM
"""Exit code of a run that has saved and ended because it was asked to."""

INTERRUPTED = SAVED, 128 + signal.SIGINT, -signal.SIGTERM, -signal.SIGINT
"""Exit codes of a run that was asked to end: once, or again while it was saving. Slurm asks twice before it kills."""

POLL, SAVING, GRACE = 2, 60, 120
"""Seconds: between looks at a job, for a run to save, and for a job to end whose run was interrupted."""


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


class Execution:
    """A command within a job. Where the job has to end first, by its time limit or for a more urgent one, the command
    gets time to save, and goes on from there when the job has been put back in the queue."""

    def __init__(self):
        self._process: subprocess.Popen | None = None

    def __call__(self, command: Sequence[str], variables: Mapping[str, str]) -> Ended:
        pipes = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True}
        environment = os.environ | dict(variables)
        self._process = subprocess.Popen(list(command), env=environment, preexec_fn=_ignore_the_warning, **pipes)
        _, errors = self._process.communicate()
        if self._process.returncode in INTERRUPTED:
            time.sleep(GRACE)  # this job is about to end as well: a result would say that it need not start again
        return Ended(self._process.returncode, errors)

    def checkpoint(self, command: Sequence[str], variables: Mapping[str, str]) -> Any:
        """Called by submitit before the job ends: save, and say what to do when it starts again."""
        from submitit.helpers import DelayedSubmission

        if self._process is not None:
            self._process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(SAVING)
        return DelayedSubmission(Execution(), command, variables)


def _ignore_the_warning() -> None:
    """Slurm sends the signal that warns submitit to all processes of a job; others would end."""
    signal.signal(signal.SIGUSR2, signal.SIG_IGN)


class Jobs:
    """In a job of its own, through submitit, which keeps scripts and logs in `folder`.

    A job that is still in the queue from an earlier call with the same command is waited for. One that ends without a
    word, by its node or by `scancel`, is a run that has failed; it can be taken up again. `cluster` is `"slurm"`, or
    `"local"` for tests.
    """

    def __init__(self, folder: Path, cluster: str = "slurm", **parameters: Any):
        check.installed("submitit", "a launcher other than local", "cluster")
        if cluster == "slurm" and shutil.which("sbatch") is None:
            raise ValueError("--launcher slurm: there is no sbatch here; start this on a login node of a Slurm cluster")
        import submitit

        self._folder, self._is_slurm = folder, cluster == "slurm"
        self._executor = submitit.AutoExecutor(folder=folder, cluster=cluster)
        self._executor.update_parameters(name=NAME, **parameters)
        self._one_at_a_time, self._submitted = threading.Lock(), []

    def __call__(self, command: Sequence[str], variables: Mapping[str, str]) -> Ended:
        with self._one_at_a_time:
            job = self._in_the_queue(command) or self._submit(command, variables)
            self._submitted.append(job)
        try:
            while not job.done():
                if self._has_left(job.job_id) and not job.done(force_check=True):
                    return Ended(1, f"job {job.job_id} left the queue without a result; its log: {self._folder}")
                time.sleep(POLL)
            return job.result()
        except Exception as error:  # submitit's own, with the job's log in its message
            return Ended(1, f"job {job.job_id}: {error}")

    def cancel(self) -> None:
        """End what is still waiting or running."""
        for job in self._submitted:
            if not job.done():
                job.cancel()

    def _submit(self, command: Sequence[str], variables: Mapping[str, str]) -> Any:
        job = self._executor.submit(Execution(), list(command), dict(variables))
        self._note(command).write_text(job.job_id)
        return job

    def _in_the_queue(self, command: Sequence[str]) -> Any:
        """The job that was submitted for this command before, if it waits or runs."""
        note = self._note(command)
        if not self._is_slurm or not note.exists() or self._has_left(number := note.read_text()):
            return None
        from submitit import SlurmJob

        return SlurmJob(folder=self._folder, job_id=number)

    def _note(self, command: Sequence[str]) -> Path:
        """The file that holds the number of the job for this command."""
        return self._folder / f"{hashlib.sha256(repr(list(command)).encode()).hexdigest()[:16]}.job"

    def _has_left(self, number: str) -> bool:
        """Whether a job neither waits nor runs. Submitit asks `sacct`, which many a small cluster does not have."""
        if not self._is_slurm:
            return False
        command = ["squeue", "--noheader", "--name", NAME, "--jobs", number]
        listed = subprocess.run(command, capture_output=True, text=True)
        return not listed.stdout.strip() if listed.returncode == 0 else "Invalid job id" in listed.stderr


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
    wanted = {"slurm_partition": partition, "gpus_per_node": gpus, "timeout_min": allowed_minutes(partition, minutes)}
    return Jobs(folder, **{option: value for option, value in wanted.items() if value is not None})
