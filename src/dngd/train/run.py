"""What does not change during a run: its problem, settings and schedule, and what is made of them once."""

import time
from collections.abc import Callable, Hashable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from dngd.config import Config
from dngd.jacobian.residuals import Residuals
from dngd.optimize.info import Info
from dngd.problem.model import Model
from dngd.problem.problem import Problem
from dngd.solver.plan import plan
from dngd.term import Term
from dngd.train.build import Optimizer, check_method_fits, make_optimizer
from dngd.train.environment import environment
from dngd.train.growth import grown
from dngd.train.position import Position
from dngd.train.sampler import Chosen, Sampler
from dngd.train.schedule import Schedule
from dngd.train.start import CHOICE, POINTS, first_model, key_for
from dngd.train.state import RunState


class Draw(NamedTuple):
    """What a step needs: adaptive points to keep, terms with their weights, and the points of every term."""

    chosen: Chosen
    terms: tuple[Term, ...]
    batch: dict[str, Any]


class Run:
    """The fixed part of a run. Optimizers, samplers and terms are made once and kept: other functions and other
    objects would be compiled anew."""

    def __init__(self, problem: Problem, config: Config):
        self.problem, self.config = problem.with_points(config.points), config
        self.schedule = Schedule.of(self.problem, config)
        self._made: dict[Hashable, Any] = {}

    def start(self, position: Position | None = None) -> RunState:
        """The state before the first step, or one of the shape that the state at a position has."""
        position = Position(started=time.time()) if position is None else position
        model = first_model(self.problem, self.config.seed)
        weights = {name: jnp.asarray(one.weight, float) for name, one in self.problem.conditions.items()}
        measured = {} if self.problem.evaluator is None else dict.fromkeys(self.problem.fields, float("nan"))
        state, points = self.optimizer(position).init(model), self.sampler(position).start()
        return RunState(model, state, points, weights, position, best=model, sound=model, errors=measured)

    def optimizer(self, position: Position) -> Optimizer:
        method, expected = self.schedule.method(position), position.expected_steps
        return self._once(("optimizer", method, expected), lambda: make_optimizer(method, self.config, expected))

    def sampler(self, position: Position) -> Sampler:
        return self._once(
            ("sampler", position.doublings),
            lambda: Sampler(self.problem.with_points(self.points(position)), key_for(POINTS, self.config.seed)),
        )

    def points(self, position: Position) -> dict[str, int]:
        """Number of points per step, by condition."""
        return grown(self.problem, self.config.points, position.doublings)

    def terms(self, constants: dict[str, Any] | None = None) -> tuple[Term, ...]:
        """The terms of the problem, or of a stage with other constants."""
        key = ("terms", *sorted((constants or {}).items()))
        return self._once(key, lambda: self.problem.terms(constants))

    def draw(self, state: RunState) -> Draw:
        """Terms and points of the next step."""
        position, key = state.position, ("weighted", state.position.stage)
        weights, terms = self._made.get(key, (None, ()))
        if weights is not state.weights:  # they seldom change, and a term checks its weight
            own = self.terms(self.schedule.constants(position))
            terms = [Term(term.name, term.residual, state.weights[term.name]) for term in own]
            self._made[key] = state.weights, terms
        step = self.schedule.step_of_the_points(position)
        return Draw(*self.sampler(position).batch(step, state.model, terms, state.points))

    def step(self, state: RunState, draw: Draw) -> tuple[Model, PyTree, Info]:
        """One step of the optimizer: model, optimizer state, information."""
        share = self.schedule.share_of_a_step(state.position)
        return self.optimizer(state.position).step(state.model, state.optimizer, draw.terms, draw.batch, share)

    def validation_losses(self, model: Model) -> dict[str, Float[Array, ""]]:
        """The loss of each term of the problem itself, on points that no step uses."""
        return _losses(self.terms(), model, self.validation_points())

    def validation_points(self) -> dict[str, Any]:
        key = key_for(CHOICE, self.config.seed)
        return self._once("validation", lambda: jax.jit(self.problem.sample)(key))

    def check(self, state: RunState) -> None:
        """Refuse, before anything is compiled, points and settings that no step could use."""
        draw = self.draw(state)
        for name, points in draw.batch.items():
            for leaf in jax.tree.leaves(points):
                if jnp.issubdtype(leaf.dtype, jnp.inexact) and not bool(jnp.isfinite(leaf).all()):
                    raise ValueError(f"condition {name!r}: a sampled point is not finite; check its region or data")
        for phase in self.schedule.phases:
            check_method_fits(phase.method, self.config, self.plan(state).residuals)

    def plan(self, state: RunState) -> Any:
        """Sizes and costs of a step with the present number of points."""
        key = ("plan", state.position.doublings)
        return self._once(key, lambda: plan((draw := self.draw(state)).terms, state.model, draw.batch))

    def size(self, position: Position) -> dict[str, Any]:
        """Parameters, residuals and solver, as far as they are known."""
        planned = self._made.get(("plan", position.doublings))
        known = {} if planned is None else {"parameters": planned.parameters, "residuals": planned.residuals}
        return {"parameters": 0, "residuals": 0, "solver": self._made.get(("solver", position.phase), "")} | known

    def compile(self, state: RunState) -> Info:
        """Take one step whose result is not used."""
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
            f"{machine['device']}, {machine['cores']} cores",
            *str(self.plan(state)).splitlines(),
            f"points per step: {counts}",
        ]

    def _once(self, key: Hashable, make: Callable[[], Any]) -> Any:
        if key not in self._made:
            self._made[key] = make()
        return self._made[key]


@eqx.filter_jit
def _losses(terms, model, batch):
    residuals = Residuals.trace(terms, model, batch)
    return residuals.term_losses(residuals(model))
