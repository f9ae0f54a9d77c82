"""A step of a 12.8-million-parameter network in 10⁵ dimensions: seconds and peak memory.

    python benchmarks/large_network.py

Network [100000, 128, 128, 128, 128, 1], 100 points, residual = value + 16 second derivatives along random
coordinates. Memory is the peak resident set during the step above what was resident before it (interpreter,
parameters and points), less the copies of the parameters that the step returns or searches with.
"""

import json
import subprocess
import sys
import threading
import time

import equinox as eqx
import jax
import jax.numpy as jnp
from measure import save

import dngd

DIMENSION, POINTS, DERIVATIVES = 100_000, 100, 16
COPIES = 4  # velocity, acceleration, trial and returned parameters


def residual(network, point):
    x = point["x"]

    def along(i):
        unit = jax.nn.one_hot(i, DIMENSION, dtype=x.dtype)
        return jax.jvp(lambda z: jax.jvp(network, (z,), (unit,))[1], (x,), (unit,))[1]

    return network(x) + jnp.sum(jax.vmap(along)(point["indices"]))


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096


def measure(dtype):
    jax.config.update("jax_enable_x64", dtype == "float64")
    network = eqx.nn.MLP(DIMENSION, "scalar", 128, 4, jnp.tanh, key=jax.random.key(0), dtype=dtype)
    terms = (dngd.Term("interior", residual),)
    keys = jax.random.split(jax.random.key(1))
    points = jax.random.normal(keys[0], (POINTS, DIMENSION), dtype) / DIMENSION**0.5
    indices = jax.random.randint(keys[1], (POINTS, DERIVATIVES), 0, DIMENSION)
    batch = {"interior": {"x": points, "indices": indices}}
    optimizer = dngd.DualNaturalGradient(solver="dense")
    state = optimizer.init(network)
    size = sum(leaf.nbytes for leaf in jax.tree.leaves(eqx.filter(network, eqx.is_array)))
    jax.block_until_ready((network, batch))
    before, peak, running = resident(), [0], [True]

    def watch():
        while running[0]:
            peak[0] = max(peak[0], resident())
            time.sleep(0.002)

    threading.Thread(target=watch, daemon=True).start()
    times = []
    for _ in range(4):
        begin = time.perf_counter()
        network, state, info = optimizer.step(network, state, terms, batch)
        jax.block_until_ready(network)
        times.append(time.perf_counter() - begin)
    running[0] = False
    return {
        "dtype": dtype,
        "parameters": size // jnp.dtype(dtype).itemsize,
        "seconds": min(times[1:]),
        "first_seconds": times[0],
        "peak_bytes": peak[0] - before,
        "peak_bytes_above_copies": peak[0] - before - COPIES * size,
        "loss": float(info.loss),
        "outcome": dngd.Outcome(int(info.outcome)).name,
    }


def main():
    if len(sys.argv) > 1:
        print(json.dumps(measure(sys.argv[1])))
        return
    rows = []
    print("dtype      parameters  seconds a step   peak memory of the step   above the parameters' copies")
    for dtype in ("float32", "float64"):
        # a process each, so that one's memory does not hide the other's
        output = subprocess.run([sys.executable, __file__, dtype], capture_output=True, text=True, check=True).stdout
        row = json.loads(output.splitlines()[-1])
        rows.append(row)
        print(
            f"{dtype}  {row['parameters']:12,d} {row['seconds']:12.2f} s {row['peak_bytes'] / 2**30:18.2f} GiB"
            f" {row['peak_bytes_above_copies'] / 2**30:24.2f} GiB",
            flush=True,
        )
    save("large_network", rows)


if __name__ == "__main__":
    main()
