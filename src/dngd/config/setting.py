"""Settings as fields of a frozen dataclass: the field is the only place that lists a setting, its check and default."""

import dataclasses
import inspect
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeVar, get_args

import numpy as np

from dngd import check

Settings = TypeVar("Settings")
Check = Callable[[str, Any], None]


def setting(help: str, check: Check, default: Any = None, *, extendable: bool = False) -> Any:
    """Declare a setting that is None until someone gives it.

    **Arguments:**

    - `help`: a phrase for the command line.
    - `check`: `check(name, value)` refuses a bad value.
    - `default`: the value where neither the user nor the preset gives one.
    - `extendable`: whether the setting may change when a run is resumed.
    """
    facts = {"help": help, "check": check, "default": default, "extendable": extendable}
    return dataclasses.field(default=None, metadata=facts)


def described(kind: type[Settings]) -> type[Settings]:
    """List a class's settings in its docstring, from the phrases for the command line."""
    known = [item for item in _fields(kind) if "help" in item.metadata]
    lines = [f"- `{item.name}`: {item.metadata['help']}{_default(item.metadata.get('default'))}." for item in known]
    before, example, after = inspect.cleandoc(kind.__doc__ or "").partition("**Example:**")
    kind.__doc__ = "\n".join((f"{before}**Arguments:**", "", *lines, "", f"{example}{after}"))
    return kind


def _fields(kind: Any) -> tuple[dataclasses.Field, ...]:
    return dataclasses.fields(kind)


def _default(value: Any) -> str:
    return "" if value is None else f"; {value} by default"


def one_of(kind: Any) -> Check:
    """Check that a value is one of those of a `Literal`."""
    return partial(check.choice, choices=get_args(kind))


def at_least(least: int) -> Check:
    """Check that a value is a whole number of at least `least`."""
    return partial(check.count, least=least)


def check_all(settings: Any) -> None:
    """Check every setting that was given; numbers of NumPy become Python's, which YAML can hold."""
    for item in _fields(settings):
        value = _plain(getattr(settings, item.name))
        object.__setattr__(settings, item.name, value)
        if value is not None and "check" in item.metadata:
            item.metadata["check"](item.name, value)


def make(kind: type[Settings], values: Mapping[str, Any], what: str = "setting") -> Settings:
    """Make settings from a mapping; refuse unknown names and suggest the nearest one."""
    if not isinstance(values, Mapping):
        raise TypeError(f"{what}s={values!r} must map names to values")
    known = [item.name for item in _fields(kind)]
    for name in values:
        if name not in known:
            raise ValueError(check.unknown(what, str(name), known))
    return kind(**values)


def filled(settings: Any, preset: Mapping[str, Any]) -> dict[str, Any]:
    """Return the value of every setting: the given one, else the preset's, else the default."""
    values = {}
    for item in _fields(settings):
        choices = (getattr(settings, item.name), preset.get(item.name), item.metadata.get("default"))
        values[item.name] = next((choice for choice in choices if choice is not None), None)
    return values


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    return value.item() if isinstance(value, np.generic) else value
