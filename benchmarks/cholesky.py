"""Cholesky from XLA matrix products against LAPACK's, on a quiet machine and with one core kept busy.

    python benchmarks/cholesky.py

Gflop/s counts m³/3 flops. `busy` repeats the measurement while another process keeps one core busy.
"""

import multiprocessing
import time

import jax
import jax.numpy as jnp
from measure import save, seconds

from dngd.linear_solve.cholesky import cholesky


def spin(until):
    while time.time() < until:
        pass


def measure(size, dtype):
    a = jax.random.normal(jax.random.key(0), (size, size), dtype)
    matrix = a @ a.T / size + jnp.eye(size, dtype=dtype)
    shift = jnp.asarray(1e-3, dtype)
    ours = seconds(jax.jit(cholesky), matrix, shift)
    lapack = seconds(jax.jit(jnp.linalg.cholesky), matrix)
    gemm = seconds(jax.jit(lambda a: a @ a), matrix)
    return {
        "ours": size**3 / 3 / ours / 1e9,
        "lapack": size**3 / 3 / lapack / 1e9,
        "gemm": 2 * size**3 / gemm / 1e9,
    }


def main():
    jax.config.update("jax_enable_x64", True)
    rows = []
    print("    m  dtype         ours   LAPACK     GEMM  Gflop/s, then the same with one core busy")
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
            print(f"{size:5d}  {row['dtype']} " + "".join(f"{value:9.1f}" for value in values), flush=True)
    save("cholesky", rows)


if __name__ == "__main__":
    main()
