r"""The trainer: steps until a budget, a target or a signal ends them, and nothing is lost on the way.

Points are drawn from `(seed, step)` alone, so a run that goes on from a checkpoint takes exactly the steps that it
would have taken without the interruption.
"""

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from dngd.jacobian.residuals import Residuals
from dngd.optimize.outcome import Outcome
from dngd.problem.model import Model
from dngd.problem.problem import Problem
from dngd.solver.plan import plan
from dngd.term import Term
from dngd.train.balance import balanced
from dngd.train.build import Optimizer, check_method_fits, make_optimizer
from dngd.train.concentration import where_it_is_wrong
from dngd.train.config import Config
from dngd.train.directory import RunDirectory
from dngd.train.environment import environment
from dngd.train.evaluation import Evaluation
from dngd.train.growth import grown
from dngd.train.kept import Kept
from dngd.train.position import Clock, Position
from dngd.train.progress import Progress, Quiet
from dngd.train.record import history_row, now, run_summary
from dngd.train.sampler import Sampler
from dngd.train.schedule import PATIENCE, Schedule
from dngd.train.selection import score
from dngd.train.signals import StopRequest
from dngd.train.start import CHOICE, POINTS, first_model, key_for

Callback = Callable[[Mapping[str, Any], Model], bool | None]


@dataclass(frozen=True)
class Trained:
    """What a run leaves: the parameters it ends with (`dngd.train.selection`), the last ones, and the summary."""

    model: Model
    last: Model
    summary: dict[str, Any]
    rows: list[dict[str, Any]]


@contextlib.contextmanager
def working_precision(precision: str) -> Iterator[None]:
    """Numbers of this precision by default, here only, and products of matrices in full; global flags stay."""
    with jax.enable_x64(precision == "float64"), jax.default_matmul_precision("highest"):
        yield


def train(
    problem: Problem,
    config: Config,
    directory: RunDirectory | None = None,
    progress: Progress | None = None,
    callbacks: Sequence[Callback] = (),
) -> Trained:
    """Train, from the directory's last checkpoint if it has one.

    `callbacks` are called after every step with the row of the history and the model; one that returns True
    ends the run.
    """
    config = config.resolved(problem)
    with working_precision(config.precision), StopRequest() as stop:
        run = _Run(problem.with_points(config.points), config, directory, progress or Quiet(), callbacks, stop)
        try:
            return run.train()
        except BaseException as error:
            run.failed(error)
            raise
        finally:
            run.close()


class _Run:
    def __init__(self, problem, config, directory, progress, callbacks, stop):
        self.problem: Problem = problem
        self.config: Config = config
        self.kept = Kept(directory)
        self.progress: Progress = progress
        self.callbacks: Sequence[Callback] = callbacks
        self.stop: StopRequest = stop
        self.schedule = Schedule.of(problem, config)
        self.evaluation = Evaluation(problem)
        self.position = Position(started=now())
        self.sampler = self._sampler()
        self.rows: list[dict[str, Any]] = []
        self.solver, self.residuals, self.parameters = "", 0, 0
        self.model: Model | None = None
        self.best: Model | None = None
        self.sound: Model | None = None  # the last whose loss was finite
        self.settling = False
        self.stage_constants: dict[str, Any] = {}
        self.stage_terms: tuple[Term, ...] = ()
        self.summary: dict[str, Any] = {}

    # --- the run -----------------------------------------------------------------------------------------------

    def train(self) -> Trained:
        self._prepare()
        outcome, message = self._loop()
        return self._finish(outcome, message)

    def _prepare(self) -> None:
        """Network, state and points: new, or from the last checkpoint."""
        self.model = first_model(self.problem, self.config.seed)
        self.best = self.sound = self.model
        self.validation = jax.jit(self.problem.sample)(key_for(CHOICE, self.config.seed))
        self.weights = {
            name: jnp.asarray(condition.weight, float) for name, condition in self.problem.conditions.items()
        }
        self._resume()
        self._write_summary("running", "running", "")
        self.own_terms = self.problem.terms()  # made once: other functions would be compiled anew
        self._set_terms()
        terms, batch = self._batch()
        _check_finite(batch)
        self._announce(batch)
        self._compile(terms, batch)

    def _resume(self) -> None:
        saved = self.kept.position()
        if saved is not None:
            self.position = saved
            self.sampler = self._sampler()
        self.optimizer = self._optimizer()
        self.state = self.optimizer.init(self.model)
        if saved is None:
            return
        tree, self.position, notes = self.kept.load(self._tree())
        best = self.kept.load_best(self.model)
        self.model, self.state, self.weights = tree["model"], tree["state"], tree["weights"]
        self.best = self.sound = self.model
        if best is not None:
            self.best = best
        else:
            self.position.best_score = None
            notes.append("the best parameters so far could not be read; those of the last checkpoint take their place")
        if self.position.idle >= PATIENCE:  # a run that had stalled is given another try
            self.position.idle = 0
        self.sampler.restore(tree["adaptive"])
        for note in notes:
            self.progress.note(note)
        self.progress.note(f"going on from step {self.position.step} ({self.position.seconds:.1f} s)")

    def _points(self) -> dict[str, int]:
        return grown(self.problem, self.config.points, self.position.doublings)

    def _sampler(self) -> Sampler:
        return Sampler(self.problem.with_points(self._points()), key_for(POINTS, self.config.seed))

    def _batch(self) -> tuple[tuple[Term, ...], dict[str, Any]]:
        """Terms and points of the next step."""
        return self.sampler.batch(self.schedule.step_of_the_points(self.position), self.model, self.terms)

    def _optimizer(self) -> Optimizer:
        return make_optimizer(self.schedule.method(self.position), self.config, self.position.expected_steps)

    def _compile(self, terms, batch) -> None:
        """One step whose result is not used; schedules that need their length learn it from a second one."""
        began = time.perf_counter()
        self.evaluation.compile(self.model, self.position)
        _ready(_losses(self.own_terms, self.model, self.validation))
        info = _ready(self._step(terms, batch))[2]
        self.solver = getattr(info, "solver", "")
        if self.schedule.method(self.position) == "sgd" and not self.position.expected_steps:
            again = time.perf_counter()
            _ready(self._step(terms, batch))
            self.position.expected_steps = self.schedule.expected_steps(self.position, time.perf_counter() - again)
            self.optimizer = self._optimizer()
            _ready(self._step(terms, batch))
        self.position.compile_seconds += time.perf_counter() - began

    def _loop(self) -> tuple[str, str]:
        position = self.position
        last_saved = position.seconds
        clock = Clock(position)
        if position.step == 0:
            self._save()
        while (ending := self._ending()) is None:
            if self._advance():
                clock.restart()  # compiling a phase is not training
            terms, batch = self._batch()
            before = self.model
            self.model, self.state, info = self._step(terms, batch)
            info = jax.device_get(info)
            clock.tick()
            if np.isfinite(info.loss):
                self.sound = before
            row = self._row(info)
            self._judge()
            if self.evaluation.is_due(position):
                row |= self.evaluation.during(self.model, position)
            self._append(row)
            if self.config.balance and position.step % self.config.balance == 0:
                self.weights = balanced(self.terms, self.model, batch, self.weights)
                self._set_terms()
            if self._asked_to_stop(row):
                return "callback", "a callback asked to stop"
            if position.seconds - last_saved >= self.config.checkpoint_seconds:
                self._save()
                last_saved = position.seconds
        return ending

    def _asked_to_stop(self, row: dict[str, Any]) -> bool:
        try:
            answers = [callback(row, self.model) for callback in self.callbacks]  # every one is called
        except Exception:
            self._save()
            raise
        return any(answers)

    def _step(self, terms, batch):
        share = self.schedule.share_of_a_step(self.position)
        return self.optimizer.step(self.model, self.state, terms, batch, share)

    def _ending(self) -> tuple[str, str] | None:
        position, config = self.position, self.config
        if self.stop:
            return "interrupted", f"by {self.stop.name}; go on with: dngd resume, or dngd.resume in Python"
        if config.target is not None and position.rel_l2 is not None and position.rel_l2 <= config.target:
            return "target", f"relative error {position.rel_l2:.2e} reached {config.target:g}"
        if config.steps is not None and position.step >= config.steps:
            return "steps", ""
        if config.seconds is not None and position.seconds >= config.seconds:
            return "seconds", ""
        if position.idle >= PATIENCE and self.schedule.is_in_its_last_part(position):
            outcome = Outcome[self.rows[-1]["outcome"]]
            name = {
                Outcome.ZERO_GRADIENT: "converged",
                Outcome.LINE_SEARCH_REJECTED: "stalled",
            }.get(outcome, "diverged")
            return name, f"{PATIENCE} steps in a row did not move: {outcome.remedy}"
        return None

    def _advance(self) -> bool:
        """Go to the next stage, phase or batch size if it is time; whether something was compiled."""
        position = self.position
        if self.schedule.stage_is_over(position):
            position.next_stage()
            self._set_terms()
            self.progress.note(f"stage: {self.schedule.stage_name(position) or 'the problem itself'}")
        if not self.settling and self.schedule.share_of_a_step(position) < 1:
            self.settling = True
            self.progress.note("settling: shorter and shorter steps until the end")
        if self.schedule.phase_is_over(position):
            self._next_phase()
            return True
        if self.schedule.batch_is_too_small(position):
            self._grow()
            return True
        return False

    def _next_phase(self) -> None:
        self.position.next_phase()
        self.optimizer = self._optimizer()
        self.state = self.optimizer.init(self.model)
        self.progress.note(f"method: {self.schedule.method(self.position)}")
        self._compile(*self._batch())
        self._save()

    def _grow(self) -> None:
        self.position.double()
        self.sampler = self._sampler()
        terms, batch = self._batch()
        self.residuals = plan(terms, self.model, batch).residuals
        self.progress.note(f"twice the points: {self.residuals:,} residuals")
        self._compile(terms, batch)
        self._save()

    # --- what is seen ------------------------------------------------------------------------------------------

    def _set_terms(self) -> None:
        """Those of the present stage, with the present weights."""
        constants = self.schedule.constants(self.position)
        if constants != self.stage_constants:
            self.stage_constants, self.stage_terms = constants, self.problem.terms(constants)
        terms = self.stage_terms if constants else self.own_terms
        self.terms = tuple(Term(term.name, term.residual, self.weights[term.name]) for term in terms)

    def _announce(self, batch) -> None:
        planned = plan(self.terms, self.model, batch)
        self.residuals, self.parameters = planned.residuals, planned.parameters
        for phase in self.schedule.phases:  # what a later one would refuse is refused now
            check_method_fits(phase.method, self.config, self.residuals)
        described = environment()
        lines = [
            f"{self.problem.name}: {self.problem.description}".rstrip(": "),
            f"method {self.config.method}, preset {self.config.preset}, seed {self.config.seed}, "
            f"{self.config.precision} on {described['device']}, {described['cores']} cores",
            *str(planned).splitlines(),
            "points a step: " + ", ".join(f"{name} {count:,}" for name, count in self._points().items()),
        ]
        self.progress.start(lines, self.config.seconds, self.config.steps)

    def _row(self, info) -> dict[str, Any]:
        position = self.position
        position.idle = 0 if Outcome(int(info.outcome)).moved else position.idle + 1
        position.loss = float(info.loss)
        position.observe(position.loss, position.loss - float(info.actual_reduction))
        return history_row(position, info, self.schedule.stage_name(position), self.schedule.method(position))

    def _append(self, row: dict[str, Any]) -> None:
        if self.kept.on_disk:  # where the others are
            self.rows.clear()
        self.rows.append(row)
        self.kept.append(row)
        self.progress.step(row)

    def _judge(self) -> None:
        """Towards the end of the budget keep the best parameters, before it the last ones."""
        position = self.position
        if not self.schedule.chooses(position):
            self.best, position.best_score = self.model, None
            return
        found = score(_losses(self.own_terms, self.model, self.validation))
        if position.best_score is None or found < position.best_score:
            self.best, position.best_score = self.model, found

    # --- what is kept ------------------------------------------------------------------------------------------

    def _tree(self) -> dict[str, PyTree]:
        return {
            "model": self.model,
            "state": self.state,
            "weights": self.weights,
            "adaptive": self.sampler.adaptive(),
        }

    def _save(self) -> None:
        self.kept.save(self._tree(), self.best, self.position)
        self._write_summary("running", "running", "")

    def _finish(self, outcome: str, message: str) -> Trained:
        if outcome not in ("seconds", "steps", "interrupted"):
            self.best, self.position.best_score = self.sound if outcome == "diverged" else self.model, None
        self._save()
        # Whoever interrupts is waiting: all test points can take minutes in 10⁵ dimensions.
        self.evaluation.look(self.best, self.position, quick=outcome == "interrupted")
        status = "interrupted" if outcome == "interrupted" else "finished"
        self._write_summary(status, outcome, message)
        self.progress.end(self.summary)
        if stage := self.schedule.stage_name(self.position):
            self.progress.note(f"ended in stage {stage!r}, before the problem itself: give it more time or steps")
        # Neither is worth a run.
        with self._or_a_note("no figure"):
            self.kept.fields(self.problem, self.best)
        with self._or_a_note("no look at where the residual is"):
            if outcome in ("seconds", "steps", "stalled"):
                axes = self.problem.domain.coordinates.axes
                for sentence in where_it_is_wrong(self.own_terms, self.best, self.validation, axes):
                    self.progress.note(sentence)
        return Trained(self.best, self.model, self.summary, self.rows)

    @contextlib.contextmanager
    def _or_a_note(self, what: str) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            self.progress.note(f"{what}: {type(error).__name__}: {error}")

    def failed(self, error: BaseException) -> None:
        """The last good checkpoint stays; the summary says what happened, unless it is of a run not taken up at all."""
        if not self.summary and self.kept.has_summary:
            return
        with contextlib.suppress(Exception):
            # Only the first line: JAX adds hints about its own traceback.
            self._write_summary("failed", "error", f"{type(error).__name__}: {error}".splitlines()[0])

    def close(self) -> None:
        self.progress.close()
        self.kept.close()

    def _write_summary(self, status: str, outcome: str, message: str) -> None:
        size = {"parameters": self.parameters, "residuals": self.residuals, "solver": self.solver}
        ending = {"status": status, "outcome": outcome, "message": message}
        errors = self.evaluation.errors
        self.summary = run_summary(self.problem.name, self.config, self.position, self.best, errors, size, ending)
        self.kept.summary(self.summary)


@eqx.filter_jit
def _losses(terms, model, batch):
    residuals = Residuals.trace(terms, model, batch)
    return residuals.term_losses(residuals(model))


def _ready(tree: PyTree) -> PyTree:
    return jax.block_until_ready(tree)


def _check_finite(batch: Mapping[str, Any]) -> None:
    for name, points in batch.items():
        for leaf in jax.tree.leaves(points):
            if jnp.issubdtype(leaf.dtype, jnp.inexact) and not bool(jnp.isfinite(leaf).all()):
                raise ValueError(f"condition {name!r}: a sampled point is not finite; check its region or data")
