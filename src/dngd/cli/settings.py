"""Settings from a YAML file, as if they had been typed: what is typed wins."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

FLAG = "--config"


def read_settings(arguments: list[str]) -> list[str]:
    """Replace `--config FILE` by the options that the file holds, in front of those typed."""
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
    options = []
    positional = settings.pop("problem", None)
    for name, value in settings.items():
        flag = f"--{str(name).replace('_', '-')}"
        negated = f"--no-{str(name).replace('_', '-')}"
        if value is not None and flag not in typed and negated not in typed:
            options += _option(flag, negated, value)
    # The problem stands first after the command, unless one was typed.
    if positional is not None and (len(rest) < 2 or rest[1].startswith("-")):
        rest = [*rest[:1], str(positional), *rest[1:]]
    return [*rest, *options]


def _option(flag: str, negated: str, value: Any) -> list[str]:
    if isinstance(value, bool):
        return [flag if value else negated]
    if isinstance(value, Mapping):
        return [flag, *(str(part) for pair in value.items() for part in pair)] if value else []
    if isinstance(value, list):
        return [flag, ",".join(str(part) for part in value)]
    return [flag, str(value)]


def _read(path: Path) -> dict[str, Any]:
    try:
        settings = yaml.safe_load(path.read_text())
    except OSError as error:
        raise ValueError(f"{FLAG} {path}: {error.strerror}") from error
    except yaml.YAMLError as error:
        raise ValueError(f"{FLAG} {path} is not valid YAML: {error}") from error
    if not isinstance(settings, dict):
        raise ValueError(f"{FLAG} {path} must hold settings such as `seconds: 60`, not {settings!r}")
    return settings
