"""Presets: named settings of a problem. A preset is a partial config, that is, a plain mapping of settings."""

from collections.abc import Iterable, Mapping
from typing import Any

from dngd.check import unknown
from dngd.config import Config

PAPER_PCG = {"method": "pcg", "rank": 2500, "tolerance": 1e-10, "iterations": 500}
"""The paper's conjugate gradients, for the cavity and the ten-dimensional Poisson equation."""


def check_preset(name: str, preset: Any, conditions: Iterable[str]) -> None:
    """Refuse a preset with settings, values or conditions that do not exist."""
    try:
        if not isinstance(preset, Mapping):
            raise TypeError(f"{preset!r} must map settings to values, such as {{'seconds': 30.0}}")
        if "preset" in preset:
            raise ValueError("a preset cannot name another one; list its settings instead")
        for condition in Config.from_dict(preset).points:
            if condition not in conditions:
                raise ValueError(unknown("condition", condition, conditions))
    except (TypeError, ValueError) as error:
        raise type(error)(f"preset {name!r}: {error}") from error


def paper_preset(
    points: Mapping[str, int], cap: float, method: str = "dense+ga", seconds: float = 3000.0, **optimizer: Any
) -> dict[str, Any]:
    """The settings of the paper: `λ = min(loss, cap)`, a grid search over 31 lengths, 3000 s (its appendix)."""
    rules = {"damping": "loss", "damping_level": cap, "line_search": "grid", "momentum": 0.0}
    preset = {"points": dict(points), "method": method, "seconds": seconds, "doublings": 0, "settle": 0.0}
    return preset | {"optimizer": rules | optimizer}
