"""Options that several commands share: the problem, and settings from the command line and from a file."""

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args, get_type_hints

import tyro

from dngd.config import Config, OptimizerSettings
from dngd.train.directory import RunDirectoryError, read_settings
from dngd.train.locate import is_executed

METAVARS = {float: "X", int: "N", str: "NAME", bool: "True|False", dict: "NAME=N"}

Flag = Annotated[bool, tyro.conf.FlagCreatePairsOff, tyro.conf.arg(help_behavior_hint="")]
Out = Annotated[Path | None, tyro.conf.arg(metavar="DIR", help_behavior_hint="")]
Problem = Annotated[
    str | None,
    tyro.conf.Positional,
    tyro.conf.arg(metavar="PROBLEM", help="a name from dngd list, or FILE.py:NAME of your own", help_behavior_hint=""),
]
File = Annotated[
    Path | None, tyro.conf.arg(metavar="FILE", help="YAML with settings; what is typed wins", help_behavior_hint="")
]

Log = Annotated[
    tuple[Literal["tensorboard", "wandb", "mlflow"], ...],
    tyro.conf.UseAppendAction,
    tyro.conf.arg(metavar="SERVICE", help_behavior_hint=""),
]


def _typed(kind: type, **inner: type) -> type:
    """Make a type for what is typed of these settings, unchecked, with help and defaults as the parser shows them.

    `inner` are the types of those fields that hold settings themselves.
    """
    made: list[tuple[str, Any, Any]] = []
    for item in dataclasses.fields(kind):
        if item.name in inner:
            made.append((item.name, inner[item.name], dataclasses.field(default=inner[item.name]())))
            continue
        hint, default = get_type_hints(kind)[item.name], item.metadata.get("default")
        shown = tyro.conf.arg(
            help=item.metadata["help"],
            metavar=_metavar(hint),
            help_behavior_hint="" if default is None else f"({default})",
        )
        made.append((item.name, Annotated[hint, shown], item))
    return dataclasses.make_dataclass(
        kind.__name__, made, frozen=True, namespace={"__doc__": _first_paragraph(kind.__doc__)}
    )


def _first_paragraph(docstring: str | None) -> str:
    return (docstring or "").partition("\n\n")[0]


def _metavar(hint: Any) -> str:
    """Return a word for the values of a type, which may be None."""
    kind = next(one for one in get_args(hint) if one is not NoneType) if NoneType in get_args(hint) else hint
    return METAVARS.get(getattr(kind, "__origin__", kind)) or "|".join(get_args(kind))


Typed = _typed(Config, optimizer=_typed(OptimizerSettings))
if TYPE_CHECKING:  # a class that is made has no name for type checkers
    Settings = Any
else:
    Settings = Annotated[Typed, tyro.conf.arg(name="")]


def split_pairs(arguments: Sequence[str]) -> list[str]:
    """Split every `name=number` after `--points` into two arguments, which is what the parser understands."""
    found, inside = [], False
    for argument in arguments:
        if argument.startswith("-"):
            inside = argument == "--points"
        found += argument.split("=", 1) if inside and not argument.startswith("-") else [argument]
    return found


def given(problem: str | None, typed: Any, file: Path | None) -> tuple[str, Config]:
    """Return the problem and the settings: what was typed, else what the file holds."""
    stored = {} if file is None else _read(file)
    named = stored.pop("problem", None)
    if problem is None and isinstance(named, str) and is_executed(named):  # --config may be somebody else's
        raise ValueError(f"--config {file} names a file, which would be executed; if you trust it, type it: {named}")
    problem = named if problem is None else problem
    if not isinstance(problem, str):
        raise ValueError("name a problem, such as dngd solve kovasznay; dngd list shows them")
    return problem, Config.from_dict(_merged(stored, dataclasses.asdict(typed)))


def _merged(stored: Mapping[str, Any], typed: Mapping[str, Any]) -> dict[str, Any]:
    merged = {name: value for name, value in stored.items() if value is not None and name != "problem"}
    for name, value in typed.items():
        if isinstance(value, Mapping) and isinstance(stored.get(name, {}), Mapping):
            merged[name] = _merged(stored.get(name, {}), value)
        elif value is not None:
            merged[name] = value
    return merged


def _read(file: Path) -> dict[str, Any]:
    try:
        stored = read_settings(file)
    except RunDirectoryError as error:
        raise ValueError(f"--config: {error}") from error
    if stored is None:
        raise ValueError(f"--config {file}: there is no such file")
    return stored
