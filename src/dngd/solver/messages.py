"""What devices send each other in a step, and how long that takes on a network: a model, for plans.

A sum over p devices of B bytes takes `2 log₂ p` rounds, in which each one sends `2 B (p − 1) / p` bytes; collecting B
bytes from all takes half of both.

**Reference:** R. Thakur, R. Rabenseifner, W. Gropp, *Optimization of collective communication operations in MPICH*,
2005.
"""

import math
from dataclasses import dataclass

import jax.numpy as jnp

from dngd.devices import ManyDevices
from dngd.jacobian import cost
from dngd.jacobian.factored import FactoredJacobian
from dngd.solver import shared_cholesky
from dngd.solver.landmarks import block_size

EVALUATIONS = 3
"""Of the loss in the line search of a step: two or three are usual."""


@dataclass(frozen=True)
class Messages:
    """Bytes that each device sends, and rounds of messages that wait for each other."""

    bytes: float = 0.0
    rounds: float = 0.0

    def __add__(self, other: "Messages") -> "Messages":
        return Messages(self.bytes + other.bytes, self.rounds + other.rounds)

    def __rmul__(self, times: float | int) -> "Messages":
        return Messages(float(times * self.bytes), float(times * self.rounds))


@dataclass(frozen=True)
class Machine:
    """A device's speed in matrix products (flops a second), and what is between the devices: bytes a second that each
    one sends, and seconds that a message takes however short it is."""

    flops: float
    bandwidth: float
    latency: float

    def seconds(self, flops: float, messages: Messages) -> tuple[float, float]:
        """Seconds of computing, and of sending."""
        return flops / self.flops, messages.bytes / self.bandwidth + messages.rounds * self.latency


@dataclass(frozen=True)
class Exchange:
    """The ways in which so many devices exchange numbers of so many bytes each."""

    devices: int
    itemsize: int

    def sum(self, numbers: float | int) -> Messages:
        return 2 * self.gather(numbers)

    def gather(self, numbers: float | int) -> Messages:
        share = (self.devices - 1) / self.devices
        return Messages(share * numbers * self.itemsize, float(math.ceil(math.log2(self.devices))))

    def hop(self, numbers: float | int) -> Messages:
        return Messages(float(numbers * self.itemsize), 1.0)


def messages(
    jacobian: FactoredJacobian, shared: bool, rank: int, most: int, iterations: int, solves: int
) -> dict[str, Messages]:
    """What each solver sends in a step: `shared` says whether dense factorisations are, and of conjugate gradients
    `rank` landmarks are drawn where there is room for `most`."""
    if not isinstance(jacobian.devices, ManyDevices):
        return dict.fromkeys(("dense", "primal", "pcg"), Messages())
    via = Exchange(jacobian.devices.count, jnp.dtype(jacobian.space.dtype).itemsize)
    (_, n), number = jacobian.shape, via.sum(1)
    step = via.sum(n) + (EVALUATIONS + 3) * number  # the gradient; losses, and products of residual and image
    return {
        "dense": step + _dense(jacobian, shared, via, solves),
        "primal": step + via.sum(n**2) + solves * via.sum(n),
        "pcg": step + _pcg(jacobian, rank, most, solves * iterations, solves, via),
    }


def _dense(jacobian: FactoredJacobian, shared: bool, via: Exchange, solves: int) -> Messages:
    here, n = jacobian.shape
    m, half = jacobian.devices.total(here), via.devices // 2
    ring = half * (via.hop(jacobian.bytes / via.itemsize) + via.hop(here**2))
    if not shared:
        return ring + via.gather(here * via.devices * m) + (solves + 1) * via.gather(m) + solves * via.sum(n)
    turns, width = shared_cholesky.cut(here)
    panels = turns * via.devices
    stages = min(shared_cholesky.STAGES, panels)
    wide = (stages + 1) / (2 * stages) * panels * width  # mean length of a panel's rows, which grow by stages
    factor = panels * via.sum(width * wide)
    return ring + factor + via.gather(m) + solves * (2 * panels * via.sum(width) + via.gather(m) + via.sum(n))


def _pcg(jacobian: FactoredJacobian, rank: int, most: int, iterations: int, solves: int, via: Exchange) -> Messages:
    here, n = jacobian.shape
    block = block_size(most)
    columns = -(-most // block) * block
    landmarks = via.gather(jacobian.devices.total(here)) + via.sum(
        block * (_numbers_of_a_row(jacobian, block) + columns)
    )
    landmarks += via.sum(block * block) + 2 * via.sum(1)
    iteration = via.sum(n) + via.sum(columns) + 2 * via.sum(1)
    return -(-rank // block) * landmarks + via.sum(columns**2) + iterations * iteration + solves * via.sum(n)


def _numbers_of_a_row(jacobian: FactoredJacobian, block: int) -> int:
    """That stand for a row of the Jacobian: its factors, and its entries in leaves whose rows are written out."""
    total = jacobian.terms[0].plain.shape[2]
    for position in range(len(jacobian.factored)):
        if held := [factors for factors in jacobian.held(position) if factors is not None]:
            widest = max(held, key=lambda factors: factors.products)
            a, b = widest.rows.shape[3], widest.columns.shape[3]
            written = cost.column_flops(held, block)[1]
            total += a * b if written else widest.products * (a + b)
    return total
