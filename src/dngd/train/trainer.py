r"""The trainer: steps until a budget, a target or a signal ends them, and nothing is lost on the way.

Points are drawn from `(seed, step)` alone, so a run that goes on from a checkpoint takes exactly the steps that it
would have taken without the interruption.
"""

import contextlib
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from jax.sharding import Mesh

from dngd.config import Config
from dngd.optimize.mesh import at_home
from dngd.problem.fingerprint import fingerprint
from dngd.problem.model import Model
from dngd.problem.problem import Problem
from dngd.train.advance import advance
from dngd.train.afterwards import look_back, or_a_note
from dngd.train.directory import RunDirectory
from dngd.train.environment import environment
from dngd.train.evaluation import Evaluation
from dngd.train.kept import Kept
from dngd.train.look import Looks
from dngd.train.observer import as_observers, ask, tell
from dngd.train.precision import working_precision
from dngd.train.processes import agreed, any_of, check_same, leads, led, several
from dngd.train.requests import PAUSED, Requests
from dngd.train.run import Run
from dngd.train.schedule import PATIENCE
from dngd.train.selection import Selection
from dngd.train.signals import Stopped, StopRequest
from dngd.train.state import RunState
from dngd.train.transition import TRANSITIONS, compiled, look_ahead

OURS = (Selection(), Evaluation())
"""Observers of every run, before those that are given."""


@dataclass(frozen=True)
class Trained:
    """What a run leaves: the parameters it ends with (`dngd.train.selection`), the last ones, and the summary."""

    model: Model
    last: Model
    summary: dict[str, Any]
    rows: list[dict[str, Any]]


def train(
    problem: Problem,
    config: Config,
    directory: RunDirectory | None = None,
    observers: Sequence[Any] = (),
    mesh: Mesh | None = None,
) -> Trained:
    """Train, from the last checkpoint of the directory if it has one.

    `observers` watch the run (`dngd.train.observer`): objects with some of the hooks of `Observer`, or functions
    `f(row, model)` that are called after every step and may return True to end the run.

    `mesh` shares out the points of every step over its devices. Where these belong to several processes, all of them
    call this function; directory and observers are those of process 0.
    """
    settings, watching = config.resolved(problem), as_observers(observers) if leads() else []
    with working_precision(settings.precision), StopRequest() as stop:
        if several():
            check_same(settings.as_dict() | _versions() | _parts(problem))
        requests = Requests(None if directory is None else directory.path)
        loop = _Loop(Run(problem, settings, mesh), Kept(directory), watching, stop, requests)
        try:
            return loop.train()
        except BaseException as error:
            loop.failed(error)
            raise
        finally:
            loop.close()


def _versions() -> dict[str, Any]:
    return {name: value for name, value in environment().items() if name in ("dngd", "jax", "equinox", "python")}


def _parts(problem: Problem) -> dict[str, str]:
    return {"the problem": problem.name} | {f"{name} of the problem": one for name, one in fingerprint(problem).items()}


def _followed(run: Run, state: RunState) -> RunState:
    """The state that process 0 starts from, which alone has read the checkpoint."""
    position = agreed(state.position)
    return at_home(run.mesh, agreed(state if leads() else run.start(position)))


class _Loop:
    """Start, steps, end. All that evolves is `state`."""

    def __init__(self, run: Run, kept: Kept, watching: list[Any], stop: StopRequest, requests: Requests):
        self.run, self.kept, self.watching, self.stop, self.requests = run, kept, watching, stop, requests
        self.ours = [*OURS, Looks(kept.path, requests, self._note)]
        self._state: RunState | None = None

    @property
    def state(self) -> RunState:
        if self._state is None:
            raise RuntimeError("the run has not started")
        return self._state

    @state.setter
    def state(self, state: RunState) -> None:
        self._state = state

    def train(self) -> Trained:
        self._start()
        outcome, message = self._steps()
        return self._end(outcome, message)

    def _start(self) -> None:
        run, found = self.run, led(lambda: self.kept.load(self.run))
        self.state, notes = (run.start(), []) if found is None else found
        self.state = _followed(run, self.state)
        position = self.state.position
        if position.idle >= PATIENCE:  # a run that had stopped moving is given another try
            self.state = self.state.at(idle=0)
        if (run.schedule.ending(position) or ("",))[0] == "plateau":  # and so is one that had stopped falling
            self.state = replace(self.state, position=self.state.position.patient_again())
        self.kept.summarize(run, self.state)
        run.check(self.state)
        run.prepare(self.state, self.state.position, run.is_hasty(self.state))
        self.state = led(lambda: self._ask_watching("start")[0]) or self.state
        self.state, _ = ask(OURS, "start", run, self.state)
        if found is not None:
            notes.append(f"going on from step {position.step} ({position.seconds:.1f} s)")
        for note in notes:
            self._note(note)
        self.state = self._agreed(compiled(run, self.state))
        self.kept.start(run, self.state)

    def _steps(self) -> tuple[str, str]:
        """Advance until there is a reason to end; returns outcome and message."""
        while True:
            self._obey()
            if any_of(bool(self.stop)):
                return self._interrupted()
            if ending := self.run.schedule.ending(self.state.position):
                return ending
            look_ahead(self.run, self.state)
            self._change()
            self.state, row = advance(self.run, self.state)
            self.state = self._agreed(self.state)
            began = time.perf_counter()
            asked_to_stop = self._observe(row)
            self.state = self.state.at(seconds=self.state.position.seconds + time.perf_counter() - began)
            self.state = self._agreed(self.state)
            if agreed(asked_to_stop):
                return "observer", "an observer asked to stop"

    def _obey(self) -> None:
        """Do what a person asks through files of the directory. A pause is no training time. Where several processes
        share a run they can be stopped together, and no more."""
        paused = False
        while request := self.requests.next(paused, self.stop):
            if "stop" in request:
                self.stop.name = "dngd watch"
            elif several():
                self._note(f"{request} is not possible where several processes share a run: stop it, then dngd resume")
            elif "pause" in request:
                paused = request["pause"]
                self.kept.save(self.run, self.state)
                self._note(PAUSED if paused else "going on after the pause")
            else:
                self._change_budget(request)
            if paused:
                self.kept.summarize(self.run, self.state, "running", "running", PAUSED)

    def _change_budget(self, budget: dict[str, Any]) -> None:
        """Go on with another budget, as a run does that was interrupted here and resumed with it."""
        longer = self.run.with_budget(**budget)
        self.kept.change_budget(self.run, self.state, longer.config)
        self.run = longer
        self._note("new budget: " + ", ".join(f"{value:g} {name}" for name, value in budget.items()))

    def _agreed(self, state: RunState) -> RunState:
        """With the clocks of process 0."""
        return replace(state, position=agreed(state.position))

    def _change(self) -> None:
        """Go through the transitions that are due."""
        for transition in TRANSITIONS:
            if found := transition(self.run, self.state):
                self.state, note = found
                if note:
                    self._note(note)
                    self.kept.save(self.run, self.state)

    def _observe(self, row: dict[str, Any]) -> bool:
        """Show a step to everyone; whether an observer asked to stop. One that fails costs no step."""
        self.state, _ = ask(self.ours, "step", self.run, self.state, row)
        try:
            self.state, stop = self._ask_watching("step", row)
        except Exception:
            self.kept.step(self.run, self.state, row)
            self.kept.save(self.run, self.state)
            raise
        self.kept.step(self.run, self.state, row)
        return stop

    def _ask_watching(self, hook: str, *arguments: Any) -> tuple[RunState, bool]:
        """The state that the given observers leave, which are those of process 0, and whether any asked to stop."""
        state, stop = ask(self.watching, hook, self.run, self.state, *arguments)
        if several() and state is not self.state:
            raise ValueError("an observer may not change the state of a run that several processes share")
        return state, stop

    def _interrupted(self) -> tuple[str, str]:
        return "interrupted", f"by {self.stop.name or 'a signal'}; go on with: dngd resume, or dngd.resume in Python"

    def _end(self, outcome: str, message: str) -> Trained:
        run, state = self.run, self.state
        if outcome not in ("seconds", "steps", "plateau", "interrupted"):
            best = state.sound if outcome == "diverged" else state.model
            state = replace(state.at(best_score=float("nan")), best=best)
        self.kept.save(run, state)
        self.state = state
        try:
            with contextlib.nullcontext() if outcome == "interrupted" or several() else self.stop.at_once():
                found = look_back(run, state, outcome, message, self._note)
        except Stopped:
            found = look_back(run, state, *self._interrupted(), self._note)
        self.state, outcome, message = found.state, found.outcome, found.message
        state = self.state
        self.kept.estimate, self.kept.after = found.estimate, found.summary
        status = "interrupted" if outcome == "interrupted" else "finished"
        self.kept.summarize(run, state, status, outcome, message)
        # From here on nothing is worth a run that has ended.
        with or_a_note(self._note, "an observer failed when the run had ended"):
            tell(self.watching, "end", self.kept.summary)
        if stage := run.schedule.stage_name(state.position):
            self._note(f"ended in stage {stage!r}, before the problem itself: give it more time or steps")
        with or_a_note(self._note, "no figure"):
            self.kept.fields(run, state, interrupted=outcome == "interrupted")
        for sentence in found.concentrated:
            self._note(sentence)
        best, last = (run.solution(state, model) for model in (state.best, state.model))
        return Trained(best, last, self.kept.summary, self.kept.rows)

    def failed(self, error: BaseException) -> None:
        """Say in the summary what happened; the last good checkpoint stays."""
        with contextlib.suppress(Exception):
            if not self.kept.describes_another_run:
                # Only the first line: JAX adds hints about its own traceback.
                message = f"{type(error).__name__}: {error}".splitlines()[0]
                self.kept.summarize(self.run, self._state, "failed", "error", message)

    def close(self) -> None:
        self.run.ahead.close()
        self.requests.take()  # it came too late
        tell([self.kept, *self.watching], "close")

    def _note(self, text: str) -> None:
        tell(self.watching, "note", text)
