"""Options that several commands share, made from the fields of `Config`."""

import dataclasses
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, get_args, get_type_hints

import tyro

from dngd.config import Config, OptimizerSettings

METAVARS = {float: "X", int: "N", str: "NAME", bool: "True|False", dict: "NAME=N"}

Problem = Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="PROBLEM")]
Out = Annotated[Path | None, tyro.conf.arg(metavar="DIR", help_behavior_hint="")]
Flag = Annotated[bool, tyro.conf.FlagCreatePairsOff, tyro.conf.arg(help_behavior_hint="")]


def _typed(kind: type, **inner: type) -> type:
    """What is typed for these settings, unchecked, with help and default in a form that the parser shows.

    `inner` are the types of those fields that hold settings themselves.
    """
    made: list[tuple[str, Any, Any]] = []
    for item in dataclasses.fields(kind):
        if item.name in inner:
            made.append((item.name, inner[item.name], dataclasses.field(default=inner[item.name]())))
            continue
        hint, default = get_type_hints(kind)[item.name], item.metadata.get("default", item.default)
        shown = tyro.conf.arg(
            help=item.metadata["help"],
            metavar=_metavar(hint),
            help_behavior_hint="" if default in (None, dataclasses.MISSING) else f"({default})",
        )
        made.append((item.name, Annotated[hint, shown], item))
    return dataclasses.make_dataclass(kind.__name__, made, frozen=True, namespace={"__doc__": kind.__doc__})


def _metavar(hint: Any) -> str:
    """A word for the values of a type, which may be None."""
    kind = next(one for one in get_args(hint) if one is not NoneType) if NoneType in get_args(hint) else hint
    return METAVARS.get(getattr(kind, "__origin__", kind)) or "|".join(get_args(kind))


Typed = _typed(Config, optimizer=_typed(OptimizerSettings))
Settings = Annotated[Typed, tyro.conf.arg(name="")]


def checked(typed: Any) -> Config:
    """The settings that were typed, checked."""
    return Config.from_dict(dataclasses.asdict(typed))
