r"""Which derivatives belong to which: the combinatorics of Taylor coefficients.

A multi-index is a sorted tuple of direction numbers: `(0, 0, 1)` stands for `∂₀²∂₁`. Two rules need
to know how one falls apart, Leibniz and Faà di Bruno:

    ∂_α (a b)  = Σ_{β ⊎ γ = α}  (∂_β a)(∂_γ b)
    ∂_α f(g)   = Σ_{π partition of α}  f^{(|π|)}(g)  Π_{B ∈ π} ∂_B g

where sums run over the positions of `α`; equal summands are merged here and carry a count.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import combinations

Index = tuple[int, ...]


def closure(indices: Iterable[Index]) -> tuple[Index, ...]:
    """Return the indices and everything they are computed from, of order two and above, lowest order first.

    **Example:** `closure([(0, 0, 1)]) == ((0, 0), (0, 1), (0, 0, 1))`
    """
    parts = {
        part
        for index in indices
        for order in range(2, len(index) + 1)
        for part in combinations(tuple(sorted(index)), order)
    }
    return tuple(sorted(parts, key=lambda part: (len(part), part)))


@cache
def splits(index: Index) -> tuple[tuple[int, Index, Index], ...]:
    """List the ways to deal the positions out to two factors: `(count, β, γ)`, the empty ones included.

    **Example:** `splits((0, 0)) == ((1, (), (0, 0)), (2, (0,), (0,)), (1, (0, 0), ()))`
    """
    positions = range(len(index))
    counted = Counter(
        (tuple(index[i] for i in chosen), tuple(index[i] for i in positions if i not in chosen))
        for size in range(len(index) + 1)
        for chosen in combinations(positions, size)
    )
    return tuple((count, left, right) for (left, right), count in counted.items())


@cache
def partitions(index: Index) -> tuple[tuple[int, tuple[Index, ...]], ...]:
    """List the ways to cut the positions into blocks: `(count, blocks)`.

    **Example:** `partitions((0, 0)) == ((1, ((0,), (0,))), (1, ((0, 0),)))`
    """
    counted = Counter(tuple(sorted(blocks)) for blocks in _set_partitions(index))
    return tuple((count, blocks) for blocks, count in counted.items())


def _set_partitions(items: Index) -> Iterator[tuple[Index, ...]]:
    if not items:
        yield ()
        return
    head, tail = items[0], items[1:]
    for size in range(len(tail) + 1):
        for chosen in combinations(range(len(tail)), size):
            block = (head, *(tail[i] for i in chosen))
            others = tuple(tail[i] for i in range(len(tail)) if i not in chosen)
            for rest in _set_partitions(others):
                yield (block, *rest)
