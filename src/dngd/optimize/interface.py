"""What every optimizer is: a state, and a step that is compiled once for given shapes."""

import abc
from collections.abc import Mapping, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.sharding import Mesh
from jaxtyping import Array, Float, PyTree

from dngd import check
from dngd.devices import Devices
from dngd.jacobian.inputs import check_inputs, with_array_weights
from dngd.optimize.compiled import compiled
from dngd.optimize.info import Info
from dngd.optimize.mesh import back, check_points, everywhere, over_devices
from dngd.optimize.state import check_state
from dngd.term import Term

Stepped = tuple[PyTree, PyTree, Info]
"""Parameters and state after a step, and how it went."""


class Optimizer(eqx.Module):
    """Settings of a method, and its step."""

    devices: eqx.AbstractVar[Mesh | None]  # over which the points are shared out; None for one device

    @abc.abstractmethod
    def init(self, params: PyTree) -> PyTree:
        """Make the state before the first step."""

    @abc.abstractmethod
    def check_type(self, state: PyTree) -> None:
        """Refuse what is not a state of this method."""

    @abc.abstractmethod
    def compute(
        self,
        params: PyTree,
        state: PyTree,
        terms: Sequence[Term],
        batch: Mapping[str, Any],
        share: Float[Array, ""],
        devices: Devices,
    ) -> Stepped:
        """Take a step, as a part of a compiled program."""

    def step(
        self,
        params: PyTree,
        state: PyTree,
        terms: Sequence[Term],
        batch: Mapping[str, Any],
        share: float | Float[Array, ""] = 1.0,
    ) -> Stepped:
        """Take one step. It is compiled once for given shapes, and works inside `jax.jit` and `lax.scan`.

        Only a `share` of the step is taken, in (0, 1]. Short steps average over batches: what hovers settles. The
        rules for λ and momentum judge a step by what the full one promises, so with a share below one they learn from
        rejected steps alone. Baselines ignore it: their learning rates are schedules of their own. Numbers that are
        not finite end as an `Outcome`.
        """
        return back(self.devices, _step(*self._arguments(params, state, terms, batch, share)), params)

    def compile(
        self,
        params: PyTree,
        state: PyTree,
        terms: Sequence[Term],
        batch: Mapping[str, Any],
        share: float | Float[Array, ""] = 1.0,
    ) -> None:
        """Compile the step with these shapes and take none; from any thread, while steps of others are taken."""
        _step.prepare(*self._arguments(params, state, terms, batch, share))

    def _arguments(self, params: PyTree, state: PyTree, terms, batch, share) -> tuple:
        """Check the arguments of a step, and make them those of the compiled one."""
        self.check_type(state)
        if not isinstance(share, jax.Array):
            check.number("share", share, 0.0, 1.0, open_low=True)
        params = check_inputs(terms, params, batch)
        check_points(self.devices, batch)
        given = params, state, with_array_weights(terms), dict(batch), jnp.asarray(share, jnp.float32)
        return self, *everywhere(self.devices, given)


@compiled
def _step(optimizer: Optimizer, params, state, terms, batch, share):
    check_state(optimizer.init, params, state)
    with jax.default_matmul_precision("highest"):
        return over_devices(optimizer.devices, optimizer.compute, params, state, terms, batch, share)
