"""Settings from a YAML file, as if they had been typed: what is typed wins."""

import dataclasses
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from dngd.config import Config

FLAG = "--config"


def read_settings(arguments: list[str]) -> list[str]:
    """Replace `--config FILE` by the options that the file holds, except those that were typed."""
    places = [place for place, one in enumerate(arguments) if one == FLAG or one.startswith(f"{FLAG}=")]
    if not places:
        return arguments
    place, argument = places[0], arguments[places[0]]
    if argument == FLAG:
        if place + 1 >= len(arguments):
            raise ValueError(f"{FLAG} needs a file, such as {FLAG} run.yaml")
        path, rest = arguments[place + 1], arguments[:place] + arguments[place + 2 :]
    else:
        path, rest = argument.partition("=")[2], arguments[:place] + arguments[place + 1 :]
    settings = _read(Path(path))
    typed = {option.partition("=")[0].replace("_", "-") for option in rest if option.startswith("--")}
    positional = settings.pop("problem", None)
    options = [part for flag, values in _options(settings) if flag not in typed for part in (flag, *values)]
    # The problem stands first after the command, unless one was typed.
    if positional is not None and (len(rest) < 2 or rest[1].startswith("-")):
        rest = [*rest[:1], str(positional), *rest[1:]]
    return [*rest, *options]


def _options(settings: Mapping[str, Any], root: str = "--") -> Iterator[tuple[str, list[str]]]:
    """The flag and the values of every setting that the file gives; those of the optimizer by their full names."""
    for name, value in settings.items():
        flag = f"{root}{str(name).replace('_', '-')}"
        default = getattr(Config, name, None) if isinstance(name, str) else None
        if isinstance(value, Mapping) and dataclasses.is_dataclass(default):
            yield from _options(value, f"{flag}.")
        elif isinstance(value, Mapping):
            yield from [(flag, [str(part) for pair in value.items() for part in pair])] if value else []
        elif isinstance(value, bool) and name not in Config.__dataclass_fields__:  # of the command, such as --quiet
            yield from [(flag, [])] if value else []
        elif value is not None:
            yield flag, [",".join(map(str, value)) if isinstance(value, list) else str(value)]


def _read(path: Path) -> dict[str, Any]:
    import yaml

    try:
        settings = yaml.safe_load(path.read_text())
    except OSError as error:
        raise ValueError(f"{FLAG} {path}: {error.strerror}") from error
    except yaml.YAMLError as error:
        raise ValueError(f"{FLAG} {path} is not valid YAML: {error}") from error
    if not isinstance(settings, dict):
        raise ValueError(f"{FLAG} {path} must hold settings such as `seconds: 60`, not {settings!r}")
    return settings
