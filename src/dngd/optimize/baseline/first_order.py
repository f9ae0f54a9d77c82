r"""Gradient descent in its better known forms: Adam, SGD with one cycle, SOAP.

**References:** D. P. Kingma, J. Ba, *Adam*, 2015. L. N. Smith, N. Topin, *Super-convergence*, 2018 (one cycle).
N. Vyas et al., *SOAP: improving and stabilizing Shampoo using Adam*, 2024.
"""

import abc
import math
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax.sharding import Mesh
from jaxtyping import Array, Float, Int, PyTree

from dngd import check
from dngd.optimize.baseline.baseline import Baseline, Here, Move
from dngd.optimize.baseline.soap import scale_by_soap
from dngd.optimize.mesh import as_mesh
from dngd.optimize.outcome import Outcome
from dngd.optimize.schedule import Schedule, at_step, check_schedule
from dngd.space import select


class Transformed(Baseline):
    """Steps against a gradient that an optax transformation has changed, by a learning rate."""

    @property
    @abc.abstractmethod
    def schedule(self) -> Schedule:
        """The learning rate."""

    @property
    @abc.abstractmethod
    def transformation(self) -> optax.GradientTransformation:
        """What changes the gradient."""

    @property
    def smallest_gradient(self) -> float:
        return 0.0

    def start(self, parameters: PyTree) -> PyTree:
        return self.transformation.init(parameters)

    def move(self, memory: PyTree, here: Here) -> Move:
        direction, following = self.transformation.update(here.gradient, memory, here.parameters)
        length = at_step(self.schedule, here.step, here.loss.dtype)
        update = jax.tree.map(lambda d, p: (-length * d).astype(p.dtype), direction, here.parameters)
        leaves = jax.tree.leaves(jax.tree.map(jnp.add, here.parameters, update))
        finite = jnp.all(jnp.stack([jnp.all(jnp.isfinite(leaf)) for leaf in leaves]))
        return Move(
            update=update,
            memory=select(finite, following, memory),
            length=length,
            after=jnp.full((), jnp.nan, here.loss.dtype),
            evaluations=jnp.zeros((), jnp.int32),
            outcome=jnp.where(finite, Outcome.ACCEPTED, Outcome.NONFINITE_STEP),
        )


class Adam(Transformed):
    """Adam.

    **Arguments:**

    - `learning_rate`: a number or a schedule `step -> number`.
    - `b1`, `b2`, `eps`: as in the paper.
    - `devices`: as for `dngd.DualNaturalGradient`.

    **Example:** `Adam(optax.exponential_decay(1e-3, 1000, 0.9))`
    """

    name: ClassVar[str] = "adam"
    learning_rate: Schedule = eqx.field(static=True, default=1e-3)
    b1: float = eqx.field(static=True, default=0.9)
    b2: float = eqx.field(static=True, default=0.999)
    eps: float = eqx.field(static=True, default=1e-8)
    devices: Mesh | None = eqx.field(static=True, converter=as_mesh, default=None)

    def __check_init__(self):
        check_schedule("learning_rate", self.learning_rate, 0.0, open_low=True)
        _check_averages(self.b1, self.b2, self.eps)

    @property
    def schedule(self) -> Schedule:
        return self.learning_rate

    @property
    def transformation(self) -> optax.GradientTransformation:
        return optax.scale_by_adam(self.b1, self.b2, self.eps)


class SGD(Transformed):
    """Gradient descent with Nesterov's momentum and a one-cycle rate: `initial` → `peak` → `final` in `steps` steps.

    The rate rises for the first 30 % of the steps and falls over the rest, both along half a cosine; after `steps`
    it stays at `final`. Gradients longer than `clip` are shortened to it (`math.inf` leaves them alone): the same rate
    then serves losses of any size, where it would diverge.

    **Arguments:**

    - `steps`, `peak`, `initial`, `final`: of the cycle.
    - `momentum`: Nesterov's, in [0, 1).
    - `clip`: the longest gradient.
    - `devices`: as for `dngd.DualNaturalGradient`.

    **Example:** `SGD(steps=10_000, peak=1e-2)`
    """

    name: ClassVar[str] = "sgd"
    steps: int = eqx.field(static=True)
    peak: float = eqx.field(static=True, default=1e-2)
    initial: float = eqx.field(static=True, default=1e-4)
    final: float = eqx.field(static=True, default=1e-4)
    momentum: float = eqx.field(static=True, default=0.9)
    clip: float = eqx.field(static=True, default=1.0)
    devices: Mesh | None = eqx.field(static=True, converter=as_mesh, default=None)

    def __check_init__(self):
        check.count("steps", self.steps, hint="the length of the cycle")
        for name in ("peak", "initial", "final"):
            check.number(name, getattr(self, name), 0.0, open_low=True)
        if self.peak < max(self.initial, self.final):
            raise ValueError(
                f"peak={self.peak!r} lies below initial={self.initial!r} or final={self.final!r}; raise it"
            )
        check.number("momentum", self.momentum, 0.0, 1.0, open_high=True)
        if self.clip != math.inf:
            check.number("clip", self.clip, 0.0, open_low=True)

    @property
    def schedule(self) -> Schedule:
        return self.rate

    def rate(self, step: Int[Array, ""] | int) -> Float[Array, ""]:
        """The learning rate at a step."""
        rise = 0.3 * self.steps
        up = jnp.clip(step / rise, 0.0, 1.0)
        down = jnp.clip((step - rise) / (self.steps - rise), 0.0, 1.0)
        rising = self.initial + (self.peak - self.initial) * 0.5 * (1 - jnp.cos(jnp.pi * up))
        falling = self.final + (self.peak - self.final) * 0.5 * (1 + jnp.cos(jnp.pi * down))
        return jnp.where(step < rise, rising, falling)

    @property
    def transformation(self) -> optax.GradientTransformation:
        return optax.chain(optax.clip_by_global_norm(self.clip), optax.trace(self.momentum, nesterov=True))


class SOAP(Transformed):
    """Adam in the eigenbasis of Shampoo's preconditioner, see `dngd.optimize.baseline.soap`; defaults are the authors'.

    **Arguments:**

    - `learning_rate`: a number or a schedule `step -> number`.
    - `b1`, `b2`, `eps`: as for Adam.
    - `frequency`: steps between updates of the eigenbasis.
    - `largest_side`: bounds the memory. A side of length k takes two k × k matrices; Adam treats longer ones.
    - `devices`: as for `dngd.DualNaturalGradient`.

    **Example:** `SOAP(3e-3, frequency=10)`
    """

    name: ClassVar[str] = "soap"
    learning_rate: Schedule = eqx.field(static=True, default=3e-3)
    b1: float = eqx.field(static=True, default=0.95)
    b2: float = eqx.field(static=True, default=0.95)
    eps: float = eqx.field(static=True, default=1e-8)
    frequency: int = eqx.field(static=True, default=10)
    largest_side: int = eqx.field(static=True, default=2048)
    devices: Mesh | None = eqx.field(static=True, converter=as_mesh, default=None)

    def __check_init__(self):
        check_schedule("learning_rate", self.learning_rate, 0.0, open_low=True)
        _check_averages(self.b1, self.b2, self.eps)
        check.count("frequency", self.frequency, hint="steps between two changes of basis")
        check.number("largest_side", self.largest_side, 0.0)

    @property
    def schedule(self) -> Schedule:
        return self.learning_rate

    @property
    def transformation(self) -> optax.GradientTransformation:
        return scale_by_soap(self.b1, self.b2, self.eps, self.frequency, self.largest_side)


def _check_averages(b1: float, b2: float, eps: float) -> None:
    check.number("b1", b1, 0.0, 1.0, open_high=True)
    check.number("b2", b2, 0.0, 1.0, open_high=True)
    check.number("eps", eps, 0.0, open_low=True)
