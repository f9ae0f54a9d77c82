"""From the settings of a run to an optimizer."""

from typing import Any

from dngd.config import OptimizerSettings, Resolved
from dngd.optimize.damping import ConstantDamping, Damping, DecayDamping, GainRatioDamping, LossDamping
from dngd.optimize.interface import Optimizer
from dngd.optimize.line_search import BacktrackingSearch, FixedStep, GridSearch, LineSearch
from dngd.optimize.momentum import RisingMomentum
from dngd.optimize.optimizer import DualNaturalGradient
from dngd.solver import PCG


def make_optimizer(method: str, config: Resolved, expected_steps: int) -> Optimizer:
    """Make the optimizer of one phase; `expected_steps` shapes schedules that need an end."""
    settings = config.optimizer
    name, _, geodesic = method.partition("+")
    if name in ("adam", "sgd", "soap", "lbfgs"):
        return _baseline(name, settings, expected_steps)
    return DualNaturalGradient(
        solver=PCG(**_given(settings, "rank", "tolerance", "iterations")) if name == "pcg" else name,
        # The default method is the best known one; the others are what their names say.
        geodesic=bool(geodesic) or name == "auto",
        damping=_damping(settings),
        momentum=RisingMomentum(settings.momentum) if settings.momentum else 0.0,
        line_search=_line_search(settings),
    )


def check_method_fits(method: str, config: Resolved, rows: int) -> None:
    """Refuse settings that a method cannot use with so many residuals."""
    solver = getattr(make_optimizer(method, config, expected_steps=0), "solver", None)
    if isinstance(solver, PCG):
        solver.rank_for(rows)


def _baseline(name: str, settings: OptimizerSettings, expected_steps: int) -> Optimizer:
    from dngd.optimize.baseline import LBFGS, SGD, SOAP, Adam  # loads optax

    if name == "lbfgs":
        return LBFGS(**_given(settings, "history"))
    if name == "sgd":
        peak = SGD.peak if settings.learning_rate is None else settings.learning_rate
        lowest = min(peak, SGD.initial)
        return SGD(steps=max(expected_steps, 2), peak=peak, initial=lowest, final=lowest)
    return {"adam": Adam, "soap": SOAP}[name](**_given(settings, "learning_rate"))


def _damping(settings: OptimizerSettings) -> Damping:
    rule, level = {
        "gain_ratio": (GainRatioDamping, "initial"),
        "loss": (LossDamping, "cap"),
        "decay": (DecayDamping, "initial"),
        "constant": (ConstantDamping, "level"),
    }[settings.damping or "gain_ratio"]
    default = {"level": 1e-3} if rule is ConstantDamping else {}
    return rule(**(default if settings.damping_level is None else {level: settings.damping_level}))


def _line_search(settings: OptimizerSettings) -> LineSearch:
    if settings.line_search == "none":
        return FixedStep(1.0)
    points = {} if settings.line_search_points is None else {"points": settings.line_search_points}
    return GridSearch(**points) if settings.line_search == "grid" else BacktrackingSearch(**points)


def _given(settings: OptimizerSettings, *names: str) -> dict[str, Any]:
    """Return those of the settings that are not left to the method."""
    values = {name: getattr(settings, name) for name in names}
    return {name: value for name, value in values.items() if value is not None}
