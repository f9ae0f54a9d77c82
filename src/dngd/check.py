"""How bad settings are refused: the value, the reason and the remedy, in one style for the whole library."""

import difflib
import importlib.util
import math
import numbers
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np


def number(
    name: str,
    value: Any,
    low: float = -math.inf,
    high: float = math.inf,
    *,
    open_low: bool = False,
    open_high: bool = False,
    hint: str = "",
) -> None:
    """Refuse anything but a finite real number between `low` and `high`; `hint` ends the message.

    **Example:** `number("momentum", 1.5, 0, 1, open_high=True)` raises "momentum=1.5 must be at least 0 and below 1".
    """
    if not _is_real(value):
        raise TypeError(f"{name}={value!r} is not a number{_and(hint)}")
    inside = (low < value if open_low else low <= value) and (value < high if open_high else value <= high)
    if inside and math.isfinite(value):
        return
    bounds = []
    if math.isfinite(low):
        bounds.append(f"{'greater than' if open_low else 'at least'} {low:g}")
    bounds.append(f"{'below' if open_high else 'at most'} {high:g}" if math.isfinite(high) else "finite")
    raise ValueError(f"{name}={value!r} must be {' and '.join(bounds)}{_and(hint)}")


def positive(name: str, value: Any, hint: str = "") -> None:
    """Refuse anything but a finite number above zero."""
    number(name, value, 0.0, open_low=True, hint=hint)


def count(name: str, value: Any, least: int = 1, hint: str = "", most: int | None = None) -> None:
    """Refuse anything but a whole number of at least `least`, and at most `most`."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        wanted = "a positive whole number" if least == 1 else f"a whole number of at least {least}"
        raise ValueError(f"{name}={value!r} must be {wanted}{_and(hint)}")
    if most is not None and value > most:
        raise ValueError(f"{name}={value} exceeds {most}{_and(hint)}")


def array(name: str, value: Any, finite: bool = True) -> np.ndarray:
    """Read real numbers as an array of floats; refuse what NumPy would take with a loss.

    **Example:** `array("values", [1j])` raises "values: numbers are complex; …".
    """
    if np.ma.is_masked(value):
        raise ValueError(f"{name}: {np.ma.count_masked(value)} entries are masked; remove them first")
    try:
        found = np.asarray(value)
        found = found.astype(float) if found.dtype.kind == "O" and not _holds_text(found) else found
    except (ValueError, TypeError) as error:
        reason = str(error).partition("\n")[0]
        raise ValueError(f"{name}: {reason}; pass an array of real numbers, all rows of one length") from error
    if found.dtype.kind == "c":
        raise TypeError(f"{name}: numbers are complex; give real and imaginary part as two fields")
    if found.dtype.kind in "OSUmM" or found.dtype.names:
        raise TypeError(f"{name}: entries have type {found.dtype}; pass an array of real numbers")
    found = found.astype(float)
    if finite and not np.isfinite(found).all():
        said = f"{name}: an entry is not finite; remove it first" if found.ndim else f"{name}={value!r} is not finite"
        raise ValueError(said)
    return found


def inside(name: str, values: np.ndarray, low: float, high: float, what: str) -> None:
    """Refuse values outside of an interval, which is `what`; rounding is forgiven.

    **Example:** `inside("t", np.array(2.0), 0, 1, "the domain")` raises "t=2.0 is outside of (0, 1), the domain".
    """
    slack = 1e-9 * (high - low)
    outside = ~((values >= low - slack) & (values <= high + slack))
    if outside.any():
        raise ValueError(f"{name}={float(values[outside][0])!r} is outside of ({low:g}, {high:g}), {what}")


def path(name: str, value: Any) -> Path:
    """Read a path; refuse what cannot be one."""
    if not isinstance(value, (str, os.PathLike)):
        raise TypeError(f"{name}={value!r} must be a path, such as 'runs/mine'")
    return Path(value)


def boolean(name: str, value: Any) -> None:
    """Refuse anything but True or False."""
    if not isinstance(value, bool):
        raise TypeError(f"{name}={value!r} must be True or False")


def choice(name: str, value: Any, choices: Iterable[str], hint: str = "") -> None:
    """Refuse anything but one of the choices, and suggest the nearest one."""
    choices = list(choices)
    if isinstance(value, str) and value in choices:
        return
    close = _closest(value, choices) if isinstance(value, str) else ""
    remedy = f"did you mean {close!r}?" if close else f"choose one of {', '.join(choices)}"
    raise ValueError(f"{name}={value!r} is unknown; {remedy}{_and(hint)}")


def installed(module: str, purpose: str, extra: str = "full") -> None:
    """Refuse to go on without a package that is not part of the core, and say how to install it."""
    if importlib.util.find_spec(module) is None:
        raise ImportError(f"{purpose} needs {module}, which is not installed: pip install 'dngd[{extra}]'")


def unknown(what: str, name: str, known: Iterable[str], also: Iterable[str] = ()) -> str:
    """The message for a name that does not exist: which ones do, and which one was probably meant."""
    known = list(known)
    close = _closest(name, [*known, *also])
    suggestion = f"; did you mean {close!r}?" if close else ""
    return f"unknown {what} {name!r}: there {'is' if len(known) == 1 else 'are'} {', '.join(known)}{suggestion}"


def _is_real(value: Any) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def _holds_text(values: np.ndarray) -> bool:
    return any(isinstance(one, (str, bytes)) for one in values.ravel())


def _closest(name: str, known: list[str]) -> str:
    return next(iter(difflib.get_close_matches(name, known, n=1, cutoff=0.5)), "")


def _and(hint: str) -> str:
    return f"; {hint}" if hint else ""
