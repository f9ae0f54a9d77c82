r"""A value together with the derivatives that travel with it.

One pass carries, for every intermediate value `g` of a function, along `D` directions `v`:

    value   g
    first   ∂_{v_i} g                       i = 0 … D-1
    rest    ∂_α g  for each α in `higher`,  then  Σ_{i < laplacian} ∂_{v_i}² g

The sum of second derivatives is one row however many directions it runs over, because
`Δ f(g) = f'(g) Δg + f''(g) Σ_i (∂_i g)²` needs no single `∂_i²` (Li et al. 2023, "forward Laplacian").
A dense layer therefore takes part in `1 + D + len(higher) + 1` products, and this number is what the
kernel of a Gauss–Newton step costs.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array

from dngd.derivative.multi_index import Index, closure


@dataclass(frozen=True)
class Wanted:
    """Which derivatives a pass computes: static, and closed under what they are computed from.

    **Arguments:**

    - `directions`: how many first derivatives.
    - `higher`: multi-indices of order two and above, over direction numbers.
    - `laplacian`: the second derivatives along this many leading directions are summed; 0 for none.

    **Example:** `Wanted(2, higher=closure([(1, 1)]))` is the value, two first derivatives and `∂₁²`.
    """

    directions: int
    higher: tuple[Index, ...] = ()
    laplacian: int = 0

    def __post_init__(self):
        if self.higher != closure(self.higher):
            raise ValueError(f"higher={self.higher} lacks what it is computed from; use {closure(self.higher)}")

    @property
    def order(self) -> int:
        """The highest derivative of an activation function that the pass needs."""
        return max([1, *map(len, self.higher), 2 if self.laplacian else 0])

    @property
    def rest(self) -> int:
        """The number of rows beyond the first derivatives."""
        return len(self.higher) + (self.laplacian > 0)


class Block(NamedTuple):
    """First derivatives: `(k, …)` where stacked, a single one `(…)` where not.

    Blocks that stay apart are not joined with others before the first nonlinearity: unit vectors multiply the first
    weight matrix on their own (linearisation turns that into look-ups), and a lone direction `x` gives the very
    product that the value already needs.
    """

    rows: Array
    stacked: bool = True
    apart: bool = False


@dataclass(frozen=True)
class Jet:
    """A value and its derivatives; `rest` is None where all of them are zero.

    `packed` holds value, first derivatives and rest as rows of one array, where they were computed together: the next
    dense layer then multiplies all of them at once.
    """

    value: Array
    first: tuple[Block, ...]
    rest: Array | None = None
    packed: Array | None = None

    @staticmethod
    def unpack(packed: Array, directions: int) -> "Jet":
        """Return the jet whose rows are these: the value, so many first derivatives, and the rest."""
        count = 1 + directions
        rest = jax.lax.slice_in_dim(packed, count, len(packed)) if len(packed) > count else None
        return Jet(row(packed, 0), (Block(jax.lax.slice_in_dim(packed, 1, count)),), rest, packed)

    def pack(self) -> Array | None:
        """Return all rows in one array; None where some stay apart."""
        if self.packed is not None or any(block.apart for block in self.first):
            return self.packed
        rest = [] if self.rest is None else [self.rest]
        return jnp.concatenate([self.value[None], self.stacked(), *rest])

    def stacked(self) -> Array:
        """Return all first derivatives, `(D, …)`."""
        rows = [block.rows if block.stacked else block.rows[None] for block in self.first]
        return rows[0] if len(rows) == 1 else jnp.concatenate(rows)

    def merged(self) -> "Jet":
        """Return the same jet with its first derivatives in one block."""
        return Jet(self.value, (Block(self.stacked()),), self.rest)

    def along(self, index: Index, wanted: Wanted) -> Array | None:
        """`∂_index` of the value; None where it is zero."""
        if len(index) == 0:
            return self.value
        if len(index) == 1:
            return row(self.stacked(), index[0])
        return None if self.rest is None else row(self.rest, wanted.higher.index(index))


def row(rows: Array, number: int) -> Array:
    """Take one row by a static slice (indexing would trace to a gather)."""
    return jax.lax.index_in_dim(rows, number, keepdims=False)


def aligned(jets: Sequence[Jet]) -> list[Jet]:
    """Return the same jets with equal blocks, and with `rest` for all of them or for none."""
    shapes = {tuple((block.stacked, len(block.rows) if block.stacked else 1) for block in jet.first) for jet in jets}
    if len(shapes) > 1:
        jets = [jet.merged() for jet in jets]
    counts = {len(jet.rest) for jet in jets if jet.rest is not None}
    if not counts:
        return list(jets)
    (count,) = counts
    return [
        jet
        if jet.rest is not None
        else Jet(jet.value, jet.first, jnp.zeros((count, *jet.value.shape), jet.value.dtype))
        for jet in jets
    ]
