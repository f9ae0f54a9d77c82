"""A problem as a notebook shows it: formulas of what its functions compute, or their source where there is none."""

import contextlib
import functools
import html
import inspect
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from dngd.derivative.typeset import typeset_equation, typeset_function
from dngd.derivative.written import derivative, name, number
from dngd.problem.boundary import Initial, Periodic, Robin
from dngd.problem.condition import Condition
from dngd.problem.data import Data
from dngd.problem.domain import Ball, Box, Domain, Masked
from dngd.problem.equation import Equation
from dngd.problem.region import Region
from dngd.problem.setting import Setting

MOST_ROWS = 12
"""Of coordinates of a domain that are written out."""

STYLE = "text-align:left;vertical-align:top;padding:0.15em 1em 0.15em 0"


def problem_html(problem: Any) -> str:
    """A table: the domain, each condition, and the numbers that they name."""
    setting = problem.setting()
    rows = [("domain", domain_html(problem.domain))]
    for title, condition in problem.conditions.items():
        rows.append((title, condition_html(condition, setting)))
    rows += [("constants", _numbers(problem.constants))] if problem.constants else []
    rows += [("unknown", f"{_numbers(problem.coefficients)} (first guess)")] if problem.coefficients else []
    if problem.parameters:
        ranges = [
            f"{name(n).html} ∈ ({_number(low)}, {_number(high)})" for n, (low, high, *_) in problem.parameters.items()
        ]
        rows.append(("for all", ", ".join(ranges)))
    about = problem.description or problem.name
    return f"<strong>{html.escape(about)}</strong>{table(rows)}"


def table(rows: list[tuple[str, str]]) -> str:
    """Rows of a title, which is escaped here, and of HTML."""
    cells = "".join(
        f'<tr><th style="{STYLE}">{html.escape(title)}</th><td style="{STYLE}">{content}</td></tr>'
        for title, content in rows
    )
    return f"<table>{cells}</table>"


@functools.singledispatch
def condition_html(condition: Condition, setting: Setting) -> str:
    """What one condition says, and where; register a function to show conditions of your own."""
    return f"<code>{html.escape(type(condition).__name__)}</code>"


@condition_html.register
def _(condition: Equation, setting: Setting) -> str:
    formulas = typeset_equation(condition.compiled(setting))
    lines = [f"{formula} = 0" for formula in formulas] if formulas else [source(condition.equation)]
    return "<br>".join(lines) + _place(condition.on)


@condition_html.register
def _(condition: Data, setting: Setting) -> str:
    fields = ", ".join(name(one).html for one in _fields(condition, setting))
    return f"{fields} observed at {len(condition.at)} points"


@condition_html.register
def _(condition: Periodic, setting: Setting) -> str:
    return f"periodic in {name(condition.coordinate).html}, derivatives up to order {condition.order}"


@condition_html.register
def _(condition: Initial, setting: Setting) -> str:
    left = [derivative(one, (condition.time,) * condition.order).html for one in _fields(condition, setting)]
    low = setting.domain.window()[0][condition.start(setting.domain)]
    return _prescribed(left, condition.value, setting) + f" at {name(condition.time).html} = {_number(low)}"


@condition_html.register
def _(condition: Robin, setting: Setting) -> str:
    left = [_robin(one, condition.a, condition.b) for one in _fields(condition, setting)]
    return _prescribed(left, condition.value, setting) + _place(condition.on)


def domain_html(domain: Domain) -> str:
    """Intervals, and what is cut out."""
    space = domain.space
    if isinstance(space, Ball):
        return f"‖{name(space.name).html}‖ ≤ {_number(space.radius)} in {space.size} dimensions"
    if isinstance(space, Masked):
        formulas = typeset_function(space.part.mask, space.coordinates)
        return f"{domain_html(space.box)} where {formulas[0] if formulas else source(space.part.mask)}"
    if not isinstance(space, Box):
        return f"<code>{html.escape(type(space).__name__)}</code>"
    groups: dict[tuple[str, tuple[float, float]], int] = {}
    for title, axes in space.names.groups:
        for axis in axes:
            key = title, (space.low[axis], space.high[axis])
            groups[key] = groups.get(key, 0) + 1
    parts = []
    for (title, (low, high)), count in list(groups.items())[:MOST_ROWS]:
        power = f"<sup>{count}</sup>" if count > 1 else ""
        parts.append(f"{name(title).html} ∈ ({_number(low)}, {_number(high)}){power}")
    return ", ".join(parts) + (", …" if len(groups) > MOST_ROWS else "")


def source(function: Callable) -> str:
    """A named function with its arguments, or the line of the source where a lambda starts."""
    line = getattr(function, "__name__", type(function).__name__)
    with contextlib.suppress(OSError, TypeError, ValueError):  # no source, or no signature
        if line == "<lambda>":
            line = inspect.getsource(function).strip().partition("\n")[0].rstrip(",")
        else:
            line += f"({', '.join(inspect.signature(function).parameters)})"
    return f"<code>{html.escape(line)}</code>"


def _fields(condition: Data | Initial | Robin, setting: Setting) -> list[str]:
    names = [n if size == 1 else f"{n}{i}" for n, size in setting.fields.items() for i in range(size)]
    return [names[output] for output in setting.outputs(condition.fields)]


def _prescribed(left: list[str], value: Any, setting: Setting) -> str:
    if callable(value):
        constants = dict(setting.constants) | dict(setting.coefficients)
        formulas = typeset_function(value, setting.domain.coordinates, constants)
        if formulas is None or len(formulas) not in (1, len(left)):
            return f"{', '.join(left)} = {source(value)}"
        right = list(formulas)
    else:
        right = [_number(one) for one in np.ravel(np.asarray(value, float))]
    if len(right) == 1:
        return f"{' = '.join(left)} = {right[0]}"
    return "<br>".join(f"{one} = {other}" for one, other in zip(left, right, strict=False))


def _robin(field: str, a: float, b: float) -> str:
    u = name(field)
    parts = [(number(a) * u).html] if a else []
    if b:
        factor = "" if b == 1 else f"{number(b).html} "
        parts.append(f"{factor}∂{u.html}/∂<i>n</i>")
    return " + ".join(parts)


def _place(on: Any) -> str:
    if on is None:
        return ""
    if isinstance(on, Region) and on.given is not None:
        return f" at {len(on.given)} given points"
    faces = (on,) if isinstance(on, str) else on
    if isinstance(faces, (tuple, list)):
        return f" on {', '.join(html.escape(str(face)).replace('-', '−') for face in faces)}"
    return f" on a <code>{html.escape(type(on).__name__)}</code>"


def _numbers(values: Mapping[str, Any]) -> str:
    shown = []
    for n, value in values.items():
        entries = ", ".join(_number(one) for one in np.ravel(np.asarray(value, float))[:MOST_ROWS])
        shown.append(f"{name(n).html} = {entries if np.ndim(value) == 0 else f'({entries})'}")
    return ", ".join(shown)


def _number(value: float) -> str:
    return number(float(value)).html
