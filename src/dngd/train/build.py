"""From the settings of a run to an optimizer."""

from typing import Any, Protocol, runtime_checkable

from jaxtyping import PyTree

from dngd.optimize.baseline import LBFGS, SGD, SOAP, Adam
from dngd.optimize.damping import ConstantDamping, Damping, DecayDamping, GainRatioDamping, LossDamping
from dngd.optimize.info import Info
from dngd.optimize.line_search import BacktrackingSearch, FixedStep, GridSearch, LineSearch
from dngd.optimize.momentum import RisingMomentum
from dngd.optimize.optimizer import DualNaturalGradient
from dngd.solver import PCG
from dngd.train.config import Config


@runtime_checkable
class Optimizer(Protocol):
    """What the trainer needs of a method."""

    def init(self, params: PyTree) -> PyTree: ...

    def step(self, params: PyTree, state: PyTree, terms: Any, batch: Any) -> tuple[PyTree, PyTree, Info]: ...


def make_optimizer(method: str, config: Config, expected_steps: int) -> Optimizer:
    """The optimizer of one phase; `expected_steps` shapes schedules that need an end."""
    rate = config.learning_rate
    if method == "adam":
        return Adam(**({} if rate is None else {"learning_rate": rate}))
    if method == "sgd":
        lowest = SGD.initial if rate is None else min(rate, SGD.initial)
        return SGD(steps=max(expected_steps, 2), peak=SGD.peak if rate is None else rate, initial=lowest, final=lowest)
    if method == "soap":
        return SOAP(**({} if rate is None else {"learning_rate": rate}))
    if method == "lbfgs":
        return LBFGS(**({} if config.history is None else {"history": config.history}))
    name, _, geodesic = method.partition("+")
    solver: Any = name
    if name == "pcg":
        given = {"rank": config.rank, "tolerance": config.tolerance, "iterations": config.iterations}
        solver = PCG(**{key: value for key, value in given.items() if value is not None})
    return DualNaturalGradient(
        solver=solver,
        # The default method is the best known one; the others are what their names say.
        geodesic=bool(geodesic) or name == "auto",
        damping=_damping(config),
        momentum=RisingMomentum(config.momentum) if config.momentum else 0.0,
        line_search=_line_search(config),
    )


def check_method_fits(method: str, config: Config, rows: int) -> None:
    """Refuse settings that a method cannot use with so many residuals."""
    solver = getattr(make_optimizer(method, config, expected_steps=0), "solver", None)
    if isinstance(solver, PCG):
        solver.rank_for(rows)


def _damping(config: Config) -> Damping:
    level = config.damping_level
    if config.damping == "constant":
        return ConstantDamping(1e-3 if level is None else level)
    rules = {
        "gain_ratio": (GainRatioDamping, "initial"),
        "loss": (LossDamping, "cap"),
        "decay": (DecayDamping, "initial"),
    }
    rule, argument = rules[config.damping or "gain_ratio"]
    return rule(**({} if level is None else {argument: level}))


def _line_search(config: Config) -> LineSearch:
    points = {} if config.line_search_points is None else {"points": config.line_search_points}
    if config.line_search == "none":
        return FixedStep(1.0)
    return GridSearch(**points) if config.line_search == "grid" else BacktrackingSearch(**points)
