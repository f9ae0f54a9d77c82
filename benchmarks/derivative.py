"""The Laplacian of a network: our pass, folx, and the trace of a Hessian, all in one run.

    python benchmarks/derivative.py [--quick]

`pass` is the time of one jitted evaluation over a batch of points. Columns after it are ratios, each a time
divided by ours: `folx` (forward Laplacian), `Hessian` (trace of `jax.hessian`, nothing shared), `linearise`
(residual and factors of the Jacobian with folx' Laplacian, over the same with ours).
"""

import argparse

import equinox as eqx
import folx
import jax
import jax.numpy as jnp
from measure import save, seconds

from dngd import Term, derivative
from dngd.jacobian.linearize import TILE_BYTES, linearization

ACTIVATIONS = {"tanh": jnp.tanh, "gelu": jax.nn.gelu}


def fused(f, x):
    return derivative.laplacian(f, x)


def with_folx(f, x):
    return folx.forward_laplacian(f)(x).laplacian


def hessian(f, x):
    return jnp.trace(jax.hessian(f)(x))


def measure(dimension, width, count, activation):
    network = eqx.nn.MLP(dimension, "scalar", width, 4, ACTIVATIONS[activation], key=jax.random.key(0))
    points = jax.random.uniform(jax.random.key(1), (count, dimension))
    times, values = {}, {}
    for operator in (fused, with_folx, hessian):
        run = eqx.filter_jit(
            lambda network, points, operator=operator: jax.vmap(lambda x: operator(network, x))(points)
        )
        times[operator] = seconds(run, network, points, repeats=15)
        values[operator] = run(network, points)
    for operator in (with_folx, hessian):
        assert jnp.allclose(values[fused], values[operator], rtol=1e-8, atol=1e-10), operator.__name__
    linearise = {
        operator: seconds(
            linearization,
            (Term("interior", lambda network, x, operator=operator: operator(network, x)),),
            network,
            {"interior": points},
            "factored",
            TILE_BYTES,
        )
        for operator in (fused, with_folx)
    }
    return {
        "d": dimension,
        "width": width,
        "points": count,
        "activation": activation,
        "pass": times[fused],
        "folx": times[with_folx] / times[fused],
        "hessian": times[hessian] / times[fused],
        "linearise": linearise[with_folx] / linearise[fused],
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few points")
    quick = parser.parse_args().quick
    jax.config.update("jax_enable_x64", True)
    rows = []
    print("  d    w     N  activation      pass |    folx  Hessian  linearise")
    for dimension, width, count in ((2, 100, 2000), (10, 128, 1000), (100, 128, 100)):
        for activation in ACTIVATIONS:
            row = measure(dimension, width, count // 10 if quick else count, activation)
            rows.append(row)
            print(
                f"{dimension:3d} {width:4d} {row['points']:5d}  {activation:10s} {row['pass']:7.4f} s | "
                f"{row['folx']:6.2f}× {row['hessian']:7.2f}× {row['linearise']:9.2f}×",
                flush=True,
            )
    if not quick:
        save("derivative", rows)


if __name__ == "__main__":
    main()
