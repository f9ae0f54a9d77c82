"""What does not change during a run: its problem, settings and schedule, and what is made of them once."""

import copy
import functools
import time
from collections.abc import Callable, Hashable
from dataclasses import replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh
from jaxtyping import Array, Float, PyTree

from dngd.config import Resolved
from dngd.config.method import BASELINES
from dngd.jacobian.residuals import Residuals
from dngd.optimize.compiled import ONCE, compiled, hastily
from dngd.optimize.info import Info
from dngd.problem.formulation import Formulation, Window
from dngd.problem.model import Model
from dngd.problem.problem import Problem
from dngd.solver.plan import SOLVERS, default_memory, plan
from dngd.term import Term
from dngd.train.ahead import Ahead
from dngd.train.build import Optimizer, check_method_fits, make_optimizer
from dngd.train.environment import environment
from dngd.train.growth import grown
from dngd.train.position import AS_PLANNED, Position
from dngd.train.precision import working_precision
from dngd.train.processes import agreed
from dngd.train.replan import better_solver
from dngd.train.sampler import Pools, Sampler
from dngd.train.schedule import Schedule
from dngd.train.start import CHOICE, POINTS, first_model, key_for
from dngd.train.state import RunState

HASTY_STEPS, HASTY_FLOPS = 100, 1e11
"""Steps, and operations, to take with a program that was compiled in haste: about as many as are taken while the better
one is compiled in a thread."""


class Draw(NamedTuple):
    """What a step needs: pools of candidates to keep, terms with their weights, and the points of every term."""

    pools: Pools
    terms: tuple[Term, ...]
    batch: dict[str, Any]


class Run:
    """The fixed part of a run. Optimizers, samplers and terms are made once and kept: other functions and other
    objects would be compiled anew."""

    def __init__(self, problem: Problem, config: Resolved, mesh: Mesh | None = None):
        self.given, formulation = problem, Formulation.of(problem)
        left = {name: count for name, count in config.points.items() if name in formulation.problem.conditions}
        self.problem, self.config, self.mesh = formulation.problem.with_points(left), config, mesh
        self.formulation = replace(formulation, problem=self.problem)
        drift = None if self.formulation.time is None else lambda share: self.formulation.drift.over(share)
        self.schedule = Schedule.of(self.problem, config, drift)
        # The memory of hosts differs by some pages, and all processes have to make the same choices by it. They agree
        # here and not where it matters: process 0 comes there alone when it reads a checkpoint.
        self.memory = None if mesh is None else agreed(default_memory())
        self.ahead = Ahead()
        self._made: dict[Hashable, Any] = {}

    def with_budget(self, seconds: float | None = None, steps: int | None = None) -> "Run":
        """The same run with another budget, and everything that was made for it so far."""
        other = copy.copy(self)
        other.config = replace(self.config, seconds=seconds, steps=steps)
        other.schedule = replace(self.schedule, config=other.config)
        return other

    def start(self, position: Position | None = None) -> RunState:
        """The state before the first step, or one of the shape that the state at a position has."""
        position = Position(started=time.time()) if position is None else position
        model = self.first_model()
        weights = {name: jnp.asarray(one.weight, float) for name, one in self.problem.conditions.items()}
        measured = {} if self.problem.evaluator is None else dict.fromkeys(self.problem.fields, float("nan"))
        state, pools = self.optimizer(position).init(model), self.sampler(position).start()
        windows = (model,) * len(position.solved)
        return RunState(model, state, pools, weights, position, model, windows, model, model, measured)

    def first_model(self) -> Model:
        """The parameters before the first step. What of them is not trained stays like this, and is in no
        checkpoint."""
        return self._once("model", lambda: first_model(self.formulation, self.config.seed))

    def solution(self, state: RunState, model: Model) -> Model:
        """The whole solution in units of the problem, with these parameters in the present window of time."""
        window, models, shares = state.position.window, list(state.windows), list(state.position.solved)
        models[window.index : window.index + 1] = [model]
        shares[window.index : window.index + 1] = [(window.start, window.length)]
        return self.formulation.solution(models, shares)

    def window(self, state: RunState) -> Window | None:
        """The present window of time, and what came before it; None where time is not cut."""
        if not self.schedule.marches:
            return None
        now, before = state.position.window, state.position.before
        known = state.windows[now.index - 1] if now.index else self.first_model()
        make = functools.partial(self.formulation.window, now.start, now.length, known, before)
        return self._latest("window", (now.key, known), make)

    def optimizer(self, position: Position) -> Optimizer:
        method, expected, solver = self.schedule.method(position), position.expected_steps, position.solver

        def make():
            made = make_optimizer(method, self.config, expected)
            return self._shared(made if solver == AS_PLANNED else replace(made, solver=list(SOLVERS)[solver]))

        return self._once(("optimizer", method, expected, solver), make)

    def _shared(self, optimizer: Optimizer) -> Optimizer:
        """The optimizer with its points shared out over the devices of the run."""
        if self.mesh is None:
            return optimizer
        settings = {"memory": self.memory} if hasattr(optimizer, "memory") else {}
        return replace(optimizer, devices=self.mesh, **settings)

    def sampler(self, position: Position) -> Sampler:
        return self._once(
            ("sampler", position.doublings),
            lambda: Sampler(self.formulation, self.points(position), key_for(POINTS, self.config.seed)),
        )

    def points(self, position: Position) -> dict[str, int]:
        """Number of points per step, by condition."""
        counts = {name: condition.count for name, condition in self.problem.conditions.items()}
        return grown(self.problem, counts, position.doublings)

    def terms(self, state: RunState, constants: dict[str, Any] | None = None) -> tuple[Term, ...]:
        """The terms of the problem in the present window of time, or of a stage with other constants."""
        window, key = self.window(state), tuple(sorted((constants or {}).items()))
        make = functools.partial(self.formulation.terms, constants, window)
        return self._latest(("terms", key), (window,), make)

    def sampler_of_new_points(self, position: Position) -> Sampler:
        """A sampler whose every draw is new, also of conditions that keep their points."""
        conditions = self.problem.conditions
        if all(one.drawing.every == 1 for one in conditions.values()):
            return self.sampler(position)
        anew = {name: replace(one, sampling=replace(one.drawing, every=1)) for name, one in conditions.items()}
        formulation = replace(self.formulation, problem=self.problem.replaced(conditions=anew))
        return Sampler(formulation, self.points(position), key_for(POINTS, self.config.seed))

    def draw(self, state: RunState, sampler: Sampler | None = None) -> Draw:
        """Terms and points of the next step."""
        position, own = state.position, self.terms(state, self.schedule.constants(state.position))
        of, weights, terms = self._made.get("weighted", (None, None, ()))
        if of is not own or weights is not state.weights:  # they seldom change, and a term checks its weight
            terms = [Term(term.name, term.residual, state.weights[term.name]) for term in own]
            self._made["weighted"] = own, state.weights, terms
        step = self.schedule.step_of_the_points(position)
        sampler = self.sampler(position) if sampler is None else sampler
        return Draw(*sampler.batch(step, state.model, terms, state.pools, self.window(state)))

    def step(self, state: RunState, draw: Draw) -> tuple[Model, PyTree, Info]:
        """One step of the optimizer: model, optimizer state, information."""
        share = self.schedule.share_of_a_step(state.position)
        with hastily(self.is_hasty(state)):
            return self.optimizer(state.position).step(state.model, state.optimizer, draw.terms, draw.batch, share)

    def validation_losses(self, state: RunState) -> dict[str, Float[Array, ""]]:
        """The loss of each term of the problem itself, on points that no step uses."""
        return _losses(self.terms(state), state.model, self.validation_points(state))

    def validation_points(self, state: RunState) -> dict[str, Any]:
        """Points of the present window of time that no step uses."""
        key, window = key_for(CHOICE, self.config.seed), self.window(state)
        points = self._once("validation", lambda: compiled(self.problem.sample, ONCE)(key))
        return {name: self.formulation.placed(one, window) for name, one in points.items()}

    def check(self, state: RunState) -> None:
        """Refuse, before anything is compiled, points and settings that no step could use."""
        draw = self.draw(state)
        for name, points in draw.batch.items():
            for leaf in jax.tree.leaves(points):
                if jnp.issubdtype(leaf.dtype, jnp.inexact) and not np.isfinite(np.asarray(leaf)).all():
                    raise ValueError(f"condition {name!r}: a sampled point is not finite; check its region or data")
        for name, condition in self.problem.conditions.items():
            prescribed = condition.prescribed(self.problem.setting())
            if prescribed is None or not callable(prescribed.value):
                continue
            values = np.asarray(prescribed.at(draw.batch[name]))
            if bad := int(np.sum(~np.isfinite(values).all(axis=1))):
                raise ValueError(
                    f"condition {name!r}: the prescribed value is not finite at {bad} of {len(values)} points; check "
                    "its function where a root, logarithm or quotient has no value"
                )
        for phase in self.schedule.phases:
            check_method_fits(phase.method, self.config, self.plan(state).residuals)

    def plan(self, state: RunState) -> Any:
        """Sizes and costs of a step with the present number of points."""
        key, devices = ("plan", state.position.doublings), 1 if self.mesh is None else self.mesh.size

        def planned():
            draw = self.draw(state)
            return plan(draw.terms, state.model, draw.batch, memory=self.memory, devices=devices)

        return self._once(key, planned)

    def replanned(self, state: RunState) -> Position:
        """The position with the solver that is best by what the steps so far have shown."""
        position = state.position
        if self.schedule.method(position) != "auto":
            return position
        return replace(position, solver=better_solver(self.plan(state), position))

    def size(self, position: Position) -> dict[str, Any]:
        """Parameters, residuals and solver, as far as they are known."""
        planned = self._made.get(("plan", position.doublings))
        known = {} if planned is None else {"parameters": planned.parameters, "residuals": planned.residuals}
        return {"parameters": 0, "residuals": 0, "solver": self._made.get(("solver", position.phase), "")} | known

    def is_hasty(self, state: RunState) -> bool:
        """Whether the next step is taken with the program that is compiled sooner."""
        return state.position.step < self.hasty_until(state)

    def hasty_until(self, state: RunState) -> int:
        """The first step with the better program. A number of steps, and not what is ready by then: a run that was
        interrupted takes the same steps."""
        position = state.position
        if self.schedule.method(position) in BASELINES or position.doublings:  # twice the points are compiled ahead
            return 0
        steps = round(min(HASTY_STEPS, HASTY_FLOPS / self.plan(state).flops))
        return position.phase_began.step + (steps if steps > 1 else 0)  # a single one leaves no time to compile ahead

    def prepare(self, state: RunState, position: Position, hasty: bool) -> None:
        """Start to compile the step of this state at this position, in a thread."""

        def task():
            with working_precision(self.config.precision):
                there = replace(state, position=position, pools=self.sampler(position).start())
                if position.doublings > state.position.doublings:
                    there = replace(there, position=self.replanned(there))
                self.plan(there)
                draw = self.draw(there)
                with hastily(hasty):
                    self.optimizer(there.position).compile(there.model, there.optimizer, draw.terms, draw.batch)

        self.ahead.begin(_program(position, hasty), task)

    def wait(self, state: RunState) -> bool:
        """Wait for the program of the next step if it is being compiled; whether it was."""
        program = _program(state.position, self.is_hasty(state))
        busy = self.ahead.is_busy_with(program)
        self.ahead.wait(program)
        return busy

    def compile(self, state: RunState) -> Info:
        """Take one step whose result is not used."""
        self.wait(state)
        info = jax.block_until_ready(self.step(state, self.draw(state)))[2]
        self._made["solver", state.position.phase] = getattr(info, "solver", "")
        return info

    def describe(self, state: RunState) -> list[str]:
        """What is about to happen, in a few lines."""
        config, machine = self.config, environment()
        counts = ", ".join(f"{name} {count:,}" for name, count in self.points(state.position).items())
        return [
            f"{self.problem.name}: {self.problem.description}".rstrip(": "),
            f"method {config.method}, preset {config.preset}, seed {config.seed}, {config.precision} on "
            f"{self._described_devices()}{machine['device']}, {machine['cores']} cores",
            *str(self.plan(state)).splitlines(),
            f"points per step: {counts}",
        ]

    def _described_devices(self) -> str:
        if self.mesh is None:
            return ""
        processes = f" of {jax.process_count()} processes" if jax.process_count() > 1 else ""
        return f"{self.mesh.size} devices{processes}: "

    def _latest(self, name: Hashable, version: Hashable, make: Callable[[], Any]) -> Any:
        """What was made for this version; an earlier version is forgotten."""
        found, value = self._made.get(name, (None, None))
        if found != version:
            self._made[name] = version, (value := make())
        return value

    def _once(self, key: Hashable, make: Callable[[], Any]) -> Any:
        if key not in self._made:
            self._made[key] = make()
        return self._made[key]


def _program(position: Position, hasty: bool) -> Hashable:
    return position.phase, position.doublings, hasty


@functools.partial(compiled, options=ONCE)  # for the last steps only, but compiled before the first one
def _losses(terms, model, batch):
    residuals = Residuals.trace(terms, model, batch)
    return residuals.term_losses(residuals(model))
