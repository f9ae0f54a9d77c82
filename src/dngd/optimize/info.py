"""What one looks at after a step."""

import equinox as eqx
from jaxtyping import Array, Float, Int


class Info(eqx.Module):
    """How a step went. `Outcome(int(info.outcome))` names how it ended; NaN where a quantity has no meaning."""

    loss: Float[Array, ""]  # before the step
    term_losses: dict[str, Float[Array, ""]]
    damping: Float[Array, ""]  # the λ used, after any raising
    momentum: Float[Array, ""]  # the μ used
    step_length: Float[Array, ""]
    predicted_reduction: Float[Array, ""]  # by the step taken, or by the full one that was rejected
    actual_reduction: Float[Array, ""]
    gradient_norm: Float[Array, ""]
    geodesic_ratio: Float[Array, ""]  # 2‖a‖/‖v‖
    evaluations: Int[Array, ""]  # of the loss, by the line search
    outcome: Int[Array, ""]
    solver_iterations: Int[Array, ""]  # zero for a direct solver
    solver_residual: Float[Array, ""]  # relative, that an iterative solver left
    solver_rank: Int[Array, ""]  # of an iterative solver's preconditioner
    solver: str = eqx.field(static=True)
