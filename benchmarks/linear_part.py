"""How much of the solution in 10⁵ dimensions is `(1 − ‖x‖²)` times a constant, and a linear function.

    python benchmarks/linear_part.py

Relative L² errors of both on 400 test points: what a network must learn beyond them to do better.
"""

import jax
import jax.numpy as jnp

from dngd.catalogue import poisson100k

POINTS = 400


def main() -> None:
    jax.config.update("jax_enable_x64", True)
    problem = poisson100k()
    points = jnp.asarray(problem.evaluator.points(0)[:POINTS])

    def solution(x):
        return problem.reference.function(x[None])[0]

    true = jax.lax.map(solution, points)
    origin = jnp.zeros(points.shape[1])
    constant, slope = jax.value_and_grad(solution)(origin)
    inside = 1 - jnp.sum(points**2, axis=1)
    for name, part in {"constant": constant, "constant + linear": constant + points @ slope}.items():
        error = jnp.linalg.norm(true - inside * part) / jnp.linalg.norm(true)
        print(f"{name:18s} relative L² error {error:.2e}")
    print(f"constant {constant:.1f}, norm of the slope {jnp.linalg.norm(slope):.1f}")


if __name__ == "__main__":
    main()
