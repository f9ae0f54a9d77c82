"""The settings of a run: typed, checked, and complete once they meet their problem."""

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import numpy as np

from dngd.check import unknown
from dngd.problem.preset import Preset
from dngd.problem.problem import Problem
from dngd.train.method import check_method, keeps_its_points

Precision = Literal["float64", "float32"]
DampingRule = Literal["gain_ratio", "loss", "constant", "decay"]
LineSearchRule = Literal["backtracking", "grid", "none"]


@dataclass(frozen=True)
class Config:
    """How to train. What is None is taken from the problem's preset."""

    method: str | None = None
    """auto, dense, primal, pcg (+ga: with geodesic acceleration), adam, sgd, lbfgs, soap; adam:0.3>lbfgs in turn"""
    preset: str = "default"
    """named settings of the problem: default, or paper for the paper's own"""
    seconds: float | None = None
    """budget of training time; compilation is timed apart"""
    steps: int | None = None
    """budget of steps; with it and no seconds, time does not matter"""
    target: float | None = None
    """stop once the relative error is below this"""
    seed: int = 0
    """of the network's weights and of the points"""
    precision: Precision = "float64"
    """of all numbers"""
    points: dict[str, int] = field(default_factory=dict)
    """points a step, by condition: interior=400 boundary=100"""
    doublings: int | None = None
    """how often the number of points may double, as progress on fresh points stalls"""
    settle: float | None = None
    """share of the budget, at its end, over which steps become shorter and shorter; 0 for none"""
    damping: DampingRule | None = None
    """rule for λ"""
    damping_level: float | None = None
    """first λ (gain_ratio, decay), cap (loss), or λ itself (constant)"""
    line_search: LineSearchRule | None = None
    """how the step length is chosen"""
    line_search_points: int | None = None
    """lengths that a search tries at most: 1, ½, ¼, …"""
    momentum: float | None = None
    """most of the last velocity that a step keeps, in [0, 1); rises to this while training goes well; 0 for none"""
    rank: int | None = None
    """landmarks of the Nyström preconditioner (pcg)"""
    tolerance: float | None = None
    """relative residual of conjugate gradients (pcg)"""
    iterations: int | None = None
    """most iterations of conjugate gradients (pcg)"""
    learning_rate: float | None = None
    """of adam and soap, and the peak of sgd's"""
    history: int | None = None
    """curvature pairs that lbfgs remembers"""
    stages: bool = True
    """whether to go through the problem's easier stages first"""
    balance: int = 0
    """steps between re-balancings of the terms' weights; 0 keeps them"""
    checkpoint_seconds: float = 60.0
    """between checkpoints"""

    def __post_init__(self):
        for item in dataclasses.fields(self):  # NumPy's numbers are numbers, but not to YAML
            object.__setattr__(self, item.name, _plain(getattr(self, item.name)))
        if self.method is not None:
            check_method(self.method)
        _check_positive("seconds", self.seconds)
        _check_positive("target", self.target)
        _check_positive("damping_level", self.damping_level)
        _check_positive("tolerance", self.tolerance)
        _check_positive("learning_rate", self.learning_rate)
        _check_positive("checkpoint_seconds", self.checkpoint_seconds)
        for name in ("steps", "line_search_points", "rank", "iterations", "history"):
            _check_count(name, getattr(self, name), 1)
        _check_count("doublings", self.doublings, 0)
        _check_count("balance", self.balance, 0)
        _check_count("seed", self.seed, 0)
        _check_choice("precision", self.precision, get_args(Precision))
        _check_choice("damping", self.damping, get_args(DampingRule))
        _check_choice("line_search", self.line_search, get_args(LineSearchRule))
        _check_share("settle", self.settle)
        if self.momentum is not None and not 0 <= self.momentum < 1:
            raise ValueError(f"momentum={self.momentum!r} must lie in [0, 1)")
        if not isinstance(self.points, Mapping):
            raise TypeError(f"points={self.points!r} must map conditions to numbers, such as interior=400")
        for name, count in self.points.items():
            _check_count(f"points[{name!r}]", count, 1)

    def resolved(self, problem: Problem) -> "Config":
        """Every setting filled in: what is given, then the preset, then the preset's own defaults."""
        if self.target is not None and problem.reference is None:
            raise ValueError(
                f"target={self.target!r}: problem {problem.name!r} has no reference to measure errors against; give it "
                "one, or a budget of seconds or steps"
            )
        presets = {"default": Preset()} | dict(problem.presets)
        if self.preset not in presets:
            raise ValueError(f"problem {problem.name!r}: " + unknown("preset", self.preset, presets))
        preset = presets[self.preset]
        filled: dict[str, Any] = {}
        for name in (
            "method",
            "doublings",
            "settle",
            "damping",
            "damping_level",
            "line_search",
            "line_search_points",
            "momentum",
            "rank",
            "tolerance",
            "iterations",
        ):
            value = getattr(self, name)
            filled[name] = getattr(preset, name) if value is None else value
        if filled["damping"] != preset.damping:
            filled["damping_level"] = self.damping_level  # the preset's is that of its own rule
        if self.seconds is None and self.steps is None:
            filled["seconds"] = preset.seconds
        for name in self.points:
            if name not in problem.conditions:
                raise ValueError("points: " + unknown("condition", name, problem.conditions))
        counts = {name: condition.points for name, condition in problem.conditions.items()}
        start = {} if preset.doublings and keeps_its_points(filled["method"]) else preset.points
        filled["points"] = counts | dict(start) | dict(self.points)
        return dataclasses.replace(self, **filled)

    def as_dict(self) -> dict[str, Any]:
        """As written to `config.yaml`."""
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Config":
        """As read from a YAML file; unknown settings are refused with the nearest name."""
        known = [item.name for item in dataclasses.fields(cls)]
        for name in values:
            if name not in known:
                raise ValueError(unknown("setting", str(name), known))
        return cls(**values)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    return value.item() if isinstance(value, np.generic) else value


def _check_positive(name: str, value: float | None) -> None:
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < math.inf:
        raise ValueError(f"{name}={value!r} must be a positive number")


def _check_share(name: str, value: float | None) -> None:
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 1:
        raise ValueError(f"{name}={value!r} must be a share of the budget, between 0 and 1")


def _check_count(name: str, value: int | None, least: int) -> None:
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ValueError(f"{name}={value!r} must be a whole number of at least {least}")


def _check_choice(name: str, value: str | None, choices: tuple[str, ...]) -> None:
    if value is not None and value not in choices:
        raise ValueError(unknown(name, str(value), choices))
