"""What makes a problem the problem it is, so that a run is not taken up with another one.

Each part has a digest of its own, and a refusal says which ones differ. Programs are compared by their operations and
constants; names, addresses and formatting do not count. The reference is no part: it is only compared with.
"""

import functools
import hashlib
import re
from collections.abc import Callable, Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal
from jaxtyping import Array

from dngd import __version__
from dngd.problem.domain import Box
from dngd.problem.model import Model
from dngd.problem.problem import Problem
from dngd.problem.sense import check_key
from dngd.program.program import Program, flatten

VERSIONS, TRACED = "versions", ("network", "points of", "condition")
_ADDRESS = re.compile(r"0x[0-9a-f]+")


def fingerprint(problem: Problem) -> dict[str, str]:
    """Digests of the parts of a problem, by what messages call them, and the versions that programs depend on."""
    with jax.default_matmul_precision("highest"):  # which is a setting of products in programs
        return _fingerprint(problem, jnp.result_type(float))


@functools.lru_cache(maxsize=8)
def _fingerprint(problem: Problem, number: Any) -> dict[str, str]:
    setting, key, domain = problem.setting(), jax.random.key(0), problem.domain
    # Conditions see a network of one sine, whose derivatives are traced in a fraction of the time.
    simple = Model(_Sine(jax.ShapeDtypeStruct((setting.size, domain.dimension), number)), dict(setting.coefficients))
    parts: dict[str, Any] = {
        "fields": problem.sizes,
        "domain": (domain.coordinates.names, domain.window()),
        "constants": setting.constants,
        "coefficients": setting.coefficients,
        "stages": [(dict(stage.constants), stage.steps, stage.share) for stage in problem.stages],
    }
    point = jax.ShapeDtypeStruct((domain.dimension,), number)
    if problem.network is not None:
        try:
            model = eqx.filter_eval_shape(problem.init, key)
            first = network_program(problem, key)
            applied = _program(lambda model, x: model(x), model, point)[0]
        except jax.errors.JAXTypeError:  # a network that computes with NumPy while it is made
            model, first = problem.init(key), None
            applied = _program(lambda model, x: model(x), model, point)[0]
        parts["network"] = _structure(model), applied, first
    for name, condition in problem.conditions.items():
        one, drawn = point, None
        if not (condition.is_on_faces and isinstance(domain.space, Box)):  # whose names say where
            drawn, points = _program(lambda key, condition=condition: condition.draw(key, domain, 1), key)
            one = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype), points)
        parts[f"points of {name!r}"] = repr(condition.sampling), vars(condition).get("on") or (), drawn
        residual = condition.residual(setting)
        try:
            program, _ = _program(residual, simple, one)
        except AttributeError:  # a condition of the user's that looks inside the network
            program, _ = _program(residual, eqx.filter_eval_shape(problem.init, key), one)
        parts[f"condition {name!r}"] = float(condition.weight), program
    digests = {name: hashlib.sha256(_text(part).encode()).hexdigest()[:16] for name, part in parts.items()}
    return {VERSIONS: f"dngd {__version__}, jax {jax.__version__}"} | digests


def network_program(problem: Problem, key: Any) -> Program:
    """The program that makes a network; refuses one that is drawn from another key than its own."""
    made = _program(lambda key: eqx.filter(problem.init(key), eqx.is_array), key)[0]
    check_key(made)
    return made


def differences(stored: Mapping[str, str], ours: Mapping[str, str]) -> list[str]:
    """Names of the parts that differ. Programs written by other versions of JAX or dngd cannot be compared."""
    comparable = stored.get(VERSIONS) == ours[VERSIONS]
    names = [*ours, *(name for name in stored if name not in ours)]
    return [
        name
        for name in names
        if name != VERSIONS
        and (name not in ours or name not in stored or (comparable or not name.startswith(TRACED)))
        and stored.get(name) != ours.get(name)
    ]


class _Sine(eqx.Module):
    weight: Any

    def __call__(self, x: Array) -> Array:
        return jnp.sin(self.weight @ x)


def _structure(model: Any) -> list[Any]:
    leaves = jax.tree_util.tree_leaves_with_path(eqx.filter(model, eqx.is_array_like))
    return [(jax.tree_util.keystr(path), jnp.shape(leaf)) for path, leaf in leaves]


def _program(function: Callable, *arguments: Any) -> tuple[Program, Any]:
    """The program of a function whose arguments may hold more than arrays, and the shape of its result."""
    arrays, rest = eqx.partition(arguments, lambda leaf: isinstance(leaf, jax.ShapeDtypeStruct) or eqx.is_array(leaf))
    made, shape = jax.make_jaxpr(lambda arrays: function(*eqx.combine(arrays, rest)), return_shape=True)(arrays)
    return flatten(made), shape


def _text(part: Any) -> str:
    """A value as a text that is the same in every process."""
    if isinstance(part, Program):
        lines = [f"{part.inputs} {part.outputs if not part.outputs else [_text(one) for one in part.outputs]}"]
        lines += [f"{number}={_text(value)}" for number, value in part.constants.items()]
        for one in part.operations:
            inputs = [_text(operand) for operand in one.inputs]
            kinds = [str(part.avals[number]) for number in one.outputs]
            settings = [f"{name}={_text(value)}" for name, value in sorted(one.equation.params.items())]
            lines.append(f"{one.outputs}:{kinds} = {one.name} {inputs} {settings}")
        return "\n".join(lines)
    if isinstance(part, (ClosedJaxpr, Jaxpr)):
        return _text(flatten(part if isinstance(part, ClosedJaxpr) else ClosedJaxpr(part, ())))
    if isinstance(part, Literal):
        return _text(part.val)
    if isinstance(part, (np.ndarray, np.generic, jax.Array)):
        if isinstance(part, jax.Array) and jnp.issubdtype(part.dtype, jax.dtypes.prng_key):
            part = jax.random.key_data(part)
        array = np.asarray(part)
        return f"{array.dtype}{array.shape}{hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()}"
    if isinstance(part, Mapping):
        return str({name: _text(value) for name, value in part.items()})
    if isinstance(part, (tuple, list)):
        return str([_text(one) for one in part])
    if isinstance(part, eqx.Module):
        return ""  # a region, whose points are traced
    if callable(part) and not isinstance(part, type):
        return ""  # how JAX differentiates or calls what stands beside it; its address says nothing
    return _ADDRESS.sub("", repr(part))
