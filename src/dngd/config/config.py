"""The settings of a run: typed, checked, and complete once they meet their problem."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from dngd import check
from dngd.config.method import BASELINES, check_method, keeps_its_points, phases
from dngd.config.optimizer import OptimizerSettings
from dngd.config.setting import at_least, check_all, described, filled, make, one_of, setting

Made = TypeVar("Made", bound="Config")
Precision = Literal["float64", "float32"]
BUDGETS = ("seconds", "steps")
MOST_POINTS = 10**9
SHARE = partial(check.number, low=0.0, high=1.0, hint="it is a share of the budget")


def _check_name(name: str, value: Any) -> None:
    if not isinstance(value, str) or not value:
        raise TypeError(f"{name}={value!r} must be a name")


def _check_seed(name: str, value: Any) -> None:
    check.count(name, value, least=0, most=2**63 - 1, hint="JAX makes keys of at most 63 bits")


def _check_points(name: str, value: Any) -> None:
    if not isinstance(value, Mapping):
        raise TypeError(f"{name}={value!r} must map conditions to numbers, such as interior=400")
    for condition, count in value.items():
        check.count(f"{name}[{condition!r}]", count, most=MOST_POINTS, hint="no step could hold so many")


@described
@dataclass(frozen=True)
class Config:
    """How to train.

    What is None is taken from the preset of the problem, else from the default.

    **Example:** `Config(method="pcg", steps=200, optimizer={"rank": 500})`
    """

    method: str | None = setting("see dngd list; in turn: adam:0.3>lbfgs", check_method, "auto")
    preset: str | None = setting("named settings of the problem", _check_name, "default")
    seconds: float | None = setting("training time, without compilation", check.positive, 60.0, extendable=True)
    steps: int | None = setting("number of steps", check.count, extendable=True)
    target: float | None = setting("relative error at which to stop", check.positive, extendable=True)
    patience: int | None = setting("steps without a lower loss before the end", check.count, extendable=True)
    seed: int | None = setting("seed of weights and points", _check_seed, 0)
    precision: Precision | None = setting("precision of all numbers", one_of(Precision), "float64")
    points: dict[str, int] = field(
        default_factory=dict, metadata={"help": "points per step: interior=400 boundary=100", "check": _check_points}
    )
    doublings: int | None = setting("how often the points may double", at_least(0), 4)
    settle: float | None = setting("share of the budget for ever shorter steps", SHARE, 0.3)
    stages: bool | None = setting("whether to solve easier stages first", check.boolean, True)
    balance: int | None = setting("steps between balancings of the weights", at_least(0), 0)
    checkpoint_seconds: float | None = setting("time between checkpoints", check.positive, 60.0, extendable=True)
    optimizer: OptimizerSettings | Mapping[str, Any] = field(  # a mapping becomes settings
        default=OptimizerSettings(), metadata={"help": "how a step is made, see `OptimizerSettings`"}
    )

    def __post_init__(self):
        object.__setattr__(self, "optimizer", _as_settings(self.optimizer))
        check_all(self)

    def resolved(self, problem: Any) -> "Resolved":
        """Fill in every setting for a problem: the given value, else that of the preset, else the default."""
        presets = {"default": {}} | dict(problem.presets)
        name = self.preset or "default"
        if name not in presets:
            raise ValueError(f"problem {problem.name!r}: " + check.unknown("preset", name, presets))
        preset = presets[name]
        values = filled(self, preset)
        budgets = ({name: getattr(self, name) for name in BUDGETS}, preset)  # a given budget replaces the other one too
        budget = next(
            (one for one in budgets if any(one.get(name) for name in BUDGETS)), {"seconds": values["seconds"]}
        )
        values |= {name: budget.get(name) for name in BUDGETS}
        values["points"] = self._points(problem, preset, values)
        inner = preset.get("optimizer", {})
        settings = _as_settings(self.optimizer)
        values["optimizer"] = settings.resolved(inner if isinstance(inner, Mapping) else vars(inner))
        found = Resolved(**values)
        if self.target is not None and problem.reference is None and not _estimates(found):
            raise ValueError(
                f"target={self.target!r}: problem {problem.name!r} has no reference to measure errors against, and "
                f"with method={found.method!r} they are not estimated; give it one, or a budget of seconds or steps, "
                "or use method='auto' with its momentum and damping"
            )
        return found

    def _points(self, problem: Any, preset: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, int]:
        """Count the points of the first steps. A method that keeps its points starts with those of the conditions
        instead of the few from which a preset grows."""
        for name in self.points:
            if name not in problem.conditions:
                raise ValueError("points: " + check.unknown("condition", name, problem.conditions))
        counts = {name: condition.points for name, condition in problem.conditions.items()}
        grows = filled(Config(), preset)["doublings"] > 0
        start = {} if grows and keeps_its_points(values["method"]) else preset.get("points", {})
        return counts | dict(start) | dict(self.points)

    def as_dict(self) -> dict[str, Any]:
        """Return the settings as `config.yaml` holds them."""
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls: type[Made], values: Mapping[str, Any]) -> Made:
        """Make settings from a mapping, such as a YAML file; an unknown name is refused with the nearest one."""
        inner = [item.name for item in dataclasses.fields(OptimizerSettings)]
        for name in values:
            if name in inner:
                raise ValueError(
                    f"{name} is a setting of the optimizer; write optimizer={{'{name}': …}} in Python, "
                    f"optimizer: {{{name}: …}} in YAML, --optimizer.{name.replace('_', '-')} on the command line"
                )
        return make(cls, values)

    @classmethod
    def extendable(cls) -> list[str]:
        """Return the settings that may change when a run is resumed."""
        return [item.name for item in dataclasses.fields(cls) if item.metadata.get("extendable")]


if TYPE_CHECKING:

    @dataclass(frozen=True)
    class Resolved(Config):
        """Settings that have met their problem: those with a default have a value."""

        method: str = ""
        preset: str = ""
        seed: int = 0
        precision: Precision = "float64"
        doublings: int = 0
        settle: float = 0.0
        stages: bool = True
        balance: int = 0
        checkpoint_seconds: float = 0.0
        optimizer: OptimizerSettings = OptimizerSettings()
else:
    Resolved = Config


def _as_settings(given: OptimizerSettings | Mapping[str, Any]) -> OptimizerSettings:
    return given if isinstance(given, OptimizerSettings) else make(OptimizerSettings, given, "optimizer setting")


def _estimates(config: Resolved) -> bool:
    """Whether errors can be estimated: by a step at a λ that can be set, whose velocity is kept."""
    settings, last = config.optimizer, phases(config.method)[-1].method
    return last not in BASELINES and bool(settings.momentum) and settings.damping in (None, "gain_ratio")
