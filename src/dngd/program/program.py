"""A per-point residual as a flat list of primitive operations.

JAX traces a residual to a nested program (calls within calls) in which the same product may be
written several times: `u(x)`, `jax.grad(u)(x)` and `jax.hessian(u)(x)` each evaluate the network
anew. Here the calls are opened, repeated operations are merged and unused ones dropped, so that each
product with a weight matrix is seen exactly once.

`jit` and `remat` calls are opened, except functions that are operations of their own by name (`OPAQUE`).
`custom_jvp` and `custom_vjp` calls stay whole, because their rule and not their body defines the derivative (those
that the residual itself differentiates are replaced by their rule before we see them). Loops and branches stay
whole too.
"""

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var, jaxpr_as_fun

# Calls whose body is their meaning, and the parameter that holds it.
TRANSPARENT = {"jit": "jaxpr", "pjit": "jaxpr", "closed_call": "call_jaxpr", "core_call": "call_jaxpr"}
TRANSPARENT |= {"remat": "jaxpr", "remat2": "jaxpr", "checkpoint": "jaxpr"}

OPAQUE = frozenset({"dngd_unit_vectors"})
"""Names of jitted functions that stay one operation each."""

Reference = int | Literal
"""What an operation reads: the number of a value, or a literal."""


@dataclass(frozen=True)
class Operation:
    """One primitive applied to numbered values."""

    equation: JaxprEqn
    home: Jaxpr  # the program the equation stands in
    inputs: tuple[Reference, ...]
    outputs: tuple[int, ...]

    @property
    def name(self) -> str:
        """The name of the primitive, or of the function that is kept whole."""
        return _call_name(self.equation) or self.equation.primitive.name

    @functools.cached_property
    def apply(self) -> Callable[..., list[Any]]:
        """The primitive as a function of its operands."""
        return as_function(self.equation, self.home)


def as_function(equation: JaxprEqn, home: Jaxpr) -> Callable[..., list[Any]]:
    """Turn an equation into a function of all its operands, bound as JAX binds it, by way of a one-equation program.

    Each operand gets a variable of its own: in `x * x` the two factors may differ in what they carry.
    """
    operands = [v if isinstance(v, Literal) else Var(v.aval) for v in equation.invars]
    positions = [i for i, v in enumerate(operands) if isinstance(v, Var)]
    body = home.replace(
        constvars=[],
        invars=[operands[i] for i in positions],
        outvars=equation.outvars,
        eqns=[equation.replace(invars=operands)],
        effects=equation.effects,
    )
    function = jaxpr_as_fun(ClosedJaxpr(body, ()))
    return lambda *values: function(*(values[i] for i in positions))


def aval_of(variable: Var | Literal) -> Any:
    """Shape and type of a variable or literal, neither of which JAX's own annotation knows."""
    return variable.aval


@dataclass(frozen=True)
class Program:
    """Operations in order, with the numbers of the inputs, the constants and the outputs."""

    operations: tuple[Operation, ...]
    inputs: tuple[int, ...]
    outputs: tuple[Reference, ...]
    constants: dict[int, Any]
    avals: dict[int, Any]

    def aval(self, reference: Reference) -> Any:
        """Shape and type of a value or literal."""
        return self.avals[reference] if isinstance(reference, int) else aval_of(reference)

    def run(self, arguments: Sequence[Any], special: Callable | None = None) -> Callable[[Reference], Any]:
        """Evaluate at these inputs; returns how to read a value.

        `special(number, values, read)` may give the outputs of operation `number` in its stead, or None.
        """
        values = dict(self.constants)
        values.update(zip(self.inputs, arguments, strict=True))

        def read(reference: Reference) -> Any:
            return values[reference] if isinstance(reference, int) else reference.val

        for number, operation in enumerate(self.operations):
            operands = [read(reference) for reference in operation.inputs]
            outputs = special(number, operands, read) if special is not None else None
            outputs = operation.apply(*operands) if outputs is None else outputs
            values.update(zip(operation.outputs, outputs, strict=True))
        return read


def trace(function: Callable, *arguments) -> Program:
    """Trace the flat program of `function` at arguments of these shapes (leaves in flattening order)."""
    return flatten(jax.make_jaxpr(function)(*arguments))


def flatten(closed: ClosedJaxpr) -> Program:
    """Open transparent calls, merge repeated operations, drop unused ones."""
    operations: list[Operation] = []
    avals: dict[int, Any] = {}
    seen: dict[Any, tuple[int, ...]] = {}

    def fresh(aval) -> int:
        avals[len(avals)] = aval
        return len(avals) - 1

    def emit(equation: JaxprEqn, home: Jaxpr, inputs: tuple[Reference, ...]) -> tuple[int, ...]:
        key = _identity(equation, inputs)
        if key is not None and key in seen:
            return seen[key]
        outputs = tuple(fresh(variable.aval) for variable in equation.outvars)
        operations.append(Operation(equation, home, inputs, outputs))
        if key is not None:
            seen[key] = outputs
        return outputs

    def inline(jaxpr: Jaxpr, arguments: Sequence[Reference]) -> list[Reference]:
        environment: dict[Var, Reference] = dict(zip(jaxpr.invars, arguments, strict=True))

        def read(variable) -> Reference:
            return variable if isinstance(variable, Literal) else environment[variable]

        for equation in jaxpr.eqns:
            inputs = tuple(read(variable) for variable in equation.invars)
            name = equation.primitive.name
            if name in TRANSPARENT and _call_name(equation) is None:
                body, constants = _open(equation.params[TRANSPARENT[name]])
                outputs = inline(body, [constant(value) for value in constants] + list(inputs))
            else:
                outputs = emit(equation, jaxpr, inputs)
            environment.update(zip(equation.outvars, outputs, strict=True))
        return [read(variable) for variable in jaxpr.outvars]

    constants: dict[int, Any] = {}
    numbers: dict[int, int] = {}

    def constant(value) -> int:
        if id(value) not in numbers:
            numbers[id(value)] = fresh(jax.typeof(value))
            constants[numbers[id(value)]] = value
        return numbers[id(value)]

    body, values = _open(closed)
    inputs = tuple(fresh(variable.aval) for variable in closed.jaxpr.invars)
    outputs = inline(body, [constant(value) for value in values] + list(inputs))
    return Program(_used(operations, outputs), inputs, tuple(outputs), constants, avals)


def _call_name(equation: JaxprEqn) -> str | None:
    name = equation.params.get("name")
    return name if name in OPAQUE else None


def _open(body: ClosedJaxpr | Jaxpr) -> tuple[Jaxpr, list[Any]]:
    """Return a body whose constants come first among its inputs, and those constants."""
    jaxpr, constants = (body.jaxpr, list(body.consts)) if isinstance(body, ClosedJaxpr) else (body, [])
    return jaxpr.replace(constvars=[], invars=[*jaxpr.constvars, *jaxpr.invars]), constants


def _identity(equation: JaxprEqn, inputs: tuple[Reference, ...]):
    """Return a key equal for equal operations; None where two must not be merged or cannot be compared."""
    if equation.effects:
        return None
    # the bits of a literal, since -0.0 equals 0.0 and printed digits are cut
    operands = tuple((str(x.aval), np.asarray(x.val).tobytes()) if isinstance(x, Literal) else x for x in inputs)
    try:
        key = (equation.primitive, operands, tuple(sorted(equation.params.items(), key=lambda item: item[0])))
        hash(key)
    except (TypeError, ValueError):
        return None
    return key


def _used(operations: list[Operation], outputs: Sequence[Reference]) -> tuple[Operation, ...]:
    needed = {output for output in outputs if isinstance(output, int)}
    kept = []
    for operation in reversed(operations):
        if operation.equation.effects or needed.intersection(operation.outputs):
            kept.append(operation)
            needed.update(operand for operand in operation.inputs if isinstance(operand, int))
    return tuple(reversed(kept))
