"""What kind of operation a primitive is: what the rules need to know of it.

A name that is missing here costs time, not correctness: `rules.anything` covers it.
"""

from collections.abc import Sequence

import jax.numpy as jnp
from jax.extend.core import Jaxpr, JaxprEqn, Literal

from dngd.program.program import TRANSPARENT, aval_of


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Affine in all floating-point operands together (indices and predicates are never differentiated).
LINEAR = _names(
    "add add_any sub neg reduce_sum cumsum reshape squeeze expand_dims transpose broadcast_in_dim concatenate pad "
    "slice dynamic_slice dynamic_update_slice gather scatter-add rev select_n copy copy_p convert_element_type "
    "real imag reduce_window_sum split"
)
# Affine in each of two operands.
BILINEAR = frozenset({"mul", "dot_general", "conv_general_dilated"})

# Entry by entry, a function of the entry.
_FUNCTIONS = _names(
    "abs acos acosh asin asinh atan atan2 atanh bessel_i0e bessel_i1e cbrt ceil clamp cos cosh digamma div erf "
    "erf_inv erfc exp exp2 expm1 floor integer_pow is_finite lgamma log log1p logistic max min nextafter pow rem "
    "round rsqrt sign sin sinh sqrt square stop_gradient tan tanh"
)
_ARITHMETIC = _names("add add_any sub neg mul select_n copy copy_p convert_element_type")
_PREDICATES = _names("eq ne lt le gt ge and or not xor")
_BODIES = TRANSPARENT | {"custom_jvp_call": "call_jaxpr"}


def is_entrywise(equation: JaxprEqn, dependent: Sequence[int]) -> bool:
    """Return whether each entry of the output is a function of the same entry of the dependent operands.

    A `custom_jvp` around such operations counts as well; its own rule is what gets differentiated.
    """
    if len(equation.outvars) != 1:
        return False
    shape = aval_of(equation.outvars[0]).shape
    operands = [aval_of(equation.invars[position]) for position in dependent]
    if any(operand.shape != shape for operand in operands):
        return False
    if any(jnp.issubdtype(operand.dtype, jnp.complexfloating) for operand in operands):
        return False  # not all of these have one slope for all directions
    name = equation.primitive.name
    if name == "custom_jvp_call":
        return _is_elementwise_body(_body(equation), set(dependent), shape)
    return name in _FUNCTIONS or name in _ARITHMETIC


def is_linear_entrywise(name: str, dependent: Sequence[int]) -> bool:
    """Return whether such an operation is affine in the dependent operands together."""
    if name in ("mul", "div"):
        return len(dependent) == 1 and (name == "mul" or dependent[0] == 0)
    return name in _ARITHMETIC


def _is_elementwise_body(jaxpr: Jaxpr, dependent: set[int], shape: tuple[int, ...]) -> bool:
    held = {jaxpr.invars[position] for position in dependent}
    for equation in jaxpr.eqns:
        positions = {
            i for i, variable in enumerate(equation.invars) if not isinstance(variable, Literal) and variable in held
        }
        if not positions:
            continue
        if any(aval_of(variable).shape != shape for variable in equation.outvars):
            return False
        name = equation.primitive.name
        if name in _BODIES:
            if not _is_elementwise_body(_body(equation), positions, shape):
                return False
        elif name not in _FUNCTIONS | _ARITHMETIC | _PREDICATES:
            return False
        held.update(equation.outvars)
    return True


def _body(equation: JaxprEqn) -> Jaxpr:
    body = equation.params[_BODIES[equation.primitive.name]]
    return getattr(body, "jaxpr", body)
