"""What the ways to compute a kernel cost, in units of matrix-product flops, and which one is cheapest.

Constants are measured on two CPU cores (`benchmarks/gram.py`).
"""

from collections.abc import Sequence

from dngd.jacobian.factors import Factors

# A product of Gram matrices reads, multiplies and sums q² numbers per entry of the kernel. One of these costs as much
# as about this many flops of a matrix product: 1.6 ns in both precisions (float32 products are faster).
ELEMENTWISE_FLOPS = {8: 140, 4: 280}  # by the bytes of a number

# Likewise for writing an entry of the explicit rows: 3.5 ns up to q = 12, 5.3 ns for q = 24 (float64).
EXPLICIT_FLOPS = 250.0
EXPLICIT_FLOPS_A_PRODUCT = 8.0

PRODUCT_FLOPS = 3.0
"""A flop of `J Jᵀ u`, whose products are narrow, at 34,000 rows (`benchmarks/pcg.py cavity`)."""


def inner_flops(first: Factors, second: Factors, elementwise: bool = True) -> float:
    """Cost of `first.inner(second)`: matrix products, plus the element-wise part in the same unit."""
    points = first.rows.shape[1] * second.rows.shape[1]
    pairs = points * first.products * second.products
    total = 0.0
    for side in ("rows", "columns"):
        x, y = getattr(first, side), getattr(second, side)
        looked_up = first.picks is not None and first.picks.side == side
        products = points * x.shape[0] * y.shape[0] if looked_up else pairs  # look-ups multiply nothing
        total += 2.0 * products * x.shape[2] * y.shape[2] * x.shape[3]
    each = ELEMENTWISE_FLOPS[first.rows.dtype.itemsize] if elementwise else 0
    return total + each * pairs * first.outputs * second.outputs


def explicit_flops(first: Factors, second: Factors) -> float:
    """Cost of the same tile from explicit rows, once these are there."""
    these, those = first.rows.shape[1] * first.outputs, second.rows.shape[1] * second.outputs
    return 2.0 * these * those * first.rows.shape[3] * first.columns.shape[3]


def writing_flops(factors: Factors) -> float:
    """Cost of the explicit rows."""
    entries = factors.rows.shape[1] * factors.outputs * factors.rows.shape[3] * factors.columns.shape[3]
    return entries * (EXPLICIT_FLOPS + EXPLICIT_FLOPS_A_PRODUCT * factors.products)


def product_flops(factors: Factors) -> float:
    """Cost of `J Jᵀ u`."""
    shared = min(factors.rows.shape[2], factors.columns.shape[2])
    points = factors.products * factors.rows.shape[1]
    return PRODUCT_FLOPS * 4.0 * points * shared * factors.rows.shape[3] * factors.columns.shape[3]


def column_flops(held: Sequence[Factors | None], count: int) -> tuple[float, bool]:
    """Cost of one leaf's part of that many columns of the kernel, and whether explicit rows are the cheaper way."""
    factors = [one for one in held if one is not None]
    if not factors:
        return 0.0, False
    # Single rows have one output each, and as many products as any term has.
    widest = max(factors, key=lambda one: one.products)
    share = count / (widest.rows.shape[1] * widest.outputs)
    by_rows = sum(writing_flops(one) + share * explicit_flops(one, widest) for one in factors)
    by_products = sum(share * inner_flops(one, widest) for one in factors)
    return min(by_rows, by_products), by_rows < by_products


def kernel_flops(held: Sequence[Factors | None], written: tuple[int, ...], elementwise: bool = True) -> float:
    """Cost of one leaf's part of the kernel's upper half, where the rows of these terms are written out.

    Pairs of those terms are products of rows, all others Gram products.
    """
    factors = {i: one for i, one in enumerate(held) if one is not None}
    total = sum(2 * writing_flops(factors[i]) for i in written if i in factors) if elementwise else 0.0
    for i, first in factors.items():
        for j, second in factors.items():
            both = i in written and j in written
            total += explicit_flops(first, second) if both else inner_flops(first, second, elementwise)
    return total / 2  # each unordered pair once


def cheapest_forms(leaves: Sequence[Sequence[Factors | None]]) -> tuple[tuple[int, ...], ...]:
    """For each leaf the terms (sorted) whose rows are best written out for the kernel.

    The terms of most products are the first for which rows are cheaper.
    """
    return tuple(
        min(possible_forms(held), key=lambda written, held=held: kernel_flops(held, written)) for held in leaves
    )


def possible_forms(held: Sequence[Factors | None]) -> list[tuple[int, ...]]:
    """From no term to all terms that use the leaf."""
    products = {i: one.products for i, one in enumerate(held) if one is not None}
    ranked = sorted(products, key=lambda i: -products[i])
    return [tuple(sorted(ranked[:count])) for count in range(len(ranked) + 1)]
