"""Cholesky from XLA matrix products against LAPACK's, on a quiet machine and with one core kept busy.

    python benchmarks/cholesky.py

Gflop/s counts m³/3 flops of the best call; behind the bar are milliseconds of the slowest of `CALLS`. `busy` repeats
the measurement while another process keeps one core busy.
"""

import multiprocessing
import time

import jax
import jax.numpy as jnp
from measure import save, seconds

from dngd.solver.cholesky import cholesky

CALLS = 20


def spin(until):
    while time.time() < until:
        pass


def best_and_slowest(function, *arguments):
    """Seconds, of `CALLS` calls after one that compiles."""
    jax.block_until_ready(function(*arguments))
    times = []
    for _ in range(CALLS):
        began = time.perf_counter()
        jax.block_until_ready(function(*arguments))
        times.append(time.perf_counter() - began)
    return min(times), max(times)


def measure(size, dtype):
    a = jax.random.normal(jax.random.key(0), (size, size), dtype)
    matrix = a @ a.T / size + jnp.eye(size, dtype=dtype)
    shift = jnp.asarray(1e-3, dtype)
    ours, ours_slowest = best_and_slowest(jax.jit(cholesky), matrix, shift)
    lapack, lapack_slowest = best_and_slowest(jax.jit(jnp.linalg.cholesky), matrix)
    gemm = seconds(jax.jit(lambda a: a @ a), matrix)
    return {
        "ours": size**3 / 3 / ours / 1e9,
        "lapack": size**3 / 3 / lapack / 1e9,
        "gemm": 2 * size**3 / gemm / 1e9,
        "ours_slowest": 1e3 * ours_slowest,
        "lapack_slowest": 1e3 * lapack_slowest,
    }


def main():
    jax.config.update("jax_enable_x64", True)
    rows = []
    print("Gflop/s of the best call, then with one core busy | ms of the slowest call, then with one core busy")
    print("    m  dtype         ours   LAPACK     GEMM     ours   LAPACK     GEMM  |  ours   LAPACK     ours   LAPACK")
    for dtype in (jnp.float64, jnp.float32):
        for size in (200, 800, 2400, 5000):
            row = {"m": size, "dtype": jnp.dtype(dtype).name, "quiet": measure(size, dtype)}
            other = multiprocessing.get_context("spawn").Process(target=spin, args=(time.time() + 60,), daemon=True)
            other.start()
            time.sleep(0.5)
            row["busy"] = measure(size, dtype)
            other.kill()
            rows.append(row)
            values = [row[when][what] for when in ("quiet", "busy") for what in ("ours", "lapack", "gemm")]
            slowest = [row[when][f"{what}_slowest"] for when in ("quiet", "busy") for what in ("ours", "lapack")]
            print(
                f"{size:5d}  {row['dtype']} "
                + "".join(f"{value:9.1f}" for value in values)
                + "  |"
                + "".join(f"{value:9.1f}" for value in slowest),
                flush=True,
            )
    save("cholesky", rows)


if __name__ == "__main__":
    main()
