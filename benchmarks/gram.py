"""The kernel from factors, against computing J and multiplying, GEMM and Cholesky, all in one run.

    python benchmarks/gram.py [--largest 2400] [--dtype float32] [--width 50]

Rows are stored one by one, beside those of earlier runs.

Columns: `linearise`, seconds for r and the factors; `kernel`, seconds for K from them. Then ratios, each a
time divided by ours: `J·Jᵀ given` (J already computed) over kernel; `J, J·Jᵀ` (computed and multiplied) over
linearise + kernel; `Cholesky` (LAPACK, same m) over kernel. `peak` is the time over (flops needed ÷ GEMM peak),
where the flops needed are the matrix products of the form chosen, each unordered pair of points once, and the
GEMM peak (last column) is that of a 2000 × 2000 product measured beside. Freed memory is kept, as by the command line.
"""

import argparse

import equinox as eqx
import folx
import jax
import jax.numpy as jnp
from measure import keep, seconds

from dngd import Term
from dngd.jacobian.linearize import TILE_BYTES, linearization
from dngd.train.memory import keep_freed_memory

LARGEST_J = 5 * 2**30  # bytes; beyond this J is not computed


def problem(dimension, width, count, dtype):
    """A Laplacian by forward propagation: q = dimension + 2 products with every hidden matrix."""
    network = eqx.nn.MLP(dimension, "scalar", width, 4, jnp.tanh, key=jax.random.key(0), dtype=dtype)
    points = jax.random.uniform(jax.random.key(1), (count, dimension), dtype)
    terms = (Term("interior", lambda network, x: folx.forward_laplacian(network)(x).laplacian),)
    return terms, network, {"interior": points}


def measure(dimension, width, count, dtype, square):
    terms, network, batch = problem(dimension, width, count, dtype)
    linearise = seconds(linearization, terms, network, batch, "factored", TILE_BYTES)
    _, J = linearization(terms, network, batch, "factored", TILE_BYTES)
    # The peak is measured beside each kernel: on a shared machine it moves.
    peak = 2 * 2000**3 / seconds(jax.jit(lambda a: a @ a), square)
    kernel = seconds(lambda J: J.gram(), J)
    peak = max(peak, 2 * 2000**3 / seconds(jax.jit(lambda a: a @ a), square))
    needed = J.kernel_flops(elementwise=False) / peak
    K = J.gram() + jnp.eye(count, dtype=dtype)
    row = {
        "q": dimension + 2,
        "w": width,
        "m": count,
        "dtype": jnp.dtype(dtype).name,
        "linearise": linearise,
        "kernel": kernel,
        "peak": kernel / needed,
        "gemm_peak": peak,
        "cholesky": seconds(jax.jit(jnp.linalg.cholesky), K) / kernel,
    }
    if J.shape[0] * J.shape[1] * jnp.dtype(dtype).itemsize <= LARGEST_J:
        row["with_j"] = seconds(
            lambda: linearization(terms, network, batch, "explicit", TILE_BYTES)[1].matrix, repeats=2
        )
        matrix = linearization(terms, network, batch, "explicit", TILE_BYTES)[1].matrix
        row["given"] = seconds(jax.jit(lambda J: J @ J.T), matrix, repeats=2)
        row["with_j"] = (row["with_j"] + row["given"]) / (linearise + kernel)
        row["given"] /= kernel
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--largest", type=int, default=6000, help="most points (default 6000, about 20 minutes)")
    parser.add_argument("--dtype", choices=["float64", "float32"], nargs="*", default=["float64", "float32"])
    parser.add_argument("--width", type=int, choices=[50, 100, 128, 256], nargs="*", default=[50, 100, 128, 256])
    chosen = parser.parse_args()
    counts = [count for count in (600, 2400, 6000) if count <= chosen.largest]
    jax.config.update("jax_enable_x64", True)
    keep_freed_memory()
    print("  q    w     m  dtype    linearise    kernel | J·Jᵀ given  J, J·Jᵀ  Cholesky |  peak  Gflop/s")
    for dtype in map(jnp.dtype, chosen.dtype):
        square = jax.random.normal(jax.random.key(0), (2000, 2000), dtype)
        for width in chosen.width:
            dimension = 10 if width == 256 else 2
            for count in counts:
                row = measure(dimension, width, count, dtype, square)
                keep("gram", row, ("q", "w", "m", "dtype"))
                ratios = [f"{row[key]:8.2f}×" if key in row else "       — " for key in ("given", "with_j")]
                sizes = f"{row['q']:3d} {width:4d} {count:5d}  {row['dtype']}"
                times = f"{row['linearise']:9.4f} s {row['kernel']:8.3f} s"
                rest = f"{row['cholesky']:8.2f}× | {row['peak']:5.2f}  {row['gemm_peak'] / 1e9:4.0f}"
                print(f"{sizes} {times} | {ratios[0]}  {ratios[1]} {rest}", flush=True)


if __name__ == "__main__":
    main()
