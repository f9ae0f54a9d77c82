"""How a step ended. Numerical trouble is a value, never a silent NaN."""

import enum


class Outcome(enum.IntEnum):
    """The result of one step.

    Where it did not move (see `moved`) the parameters that `step` returns are the ones it was given.

    **Example:** `Outcome(int(info.outcome)).remedy` says what to do about it
    """

    ACCEPTED = 0
    DAMPING_RAISED = 1
    ZERO_GRADIENT = 2
    NONFINITE_RESIDUAL = 3
    NONFINITE_JACOBIAN = 4
    DAMPING_UNDERFLOW = 5
    FACTORIZATION_FAILED = 6
    NONFINITE_STEP = 7
    LINE_SEARCH_REJECTED = 8
    SOLVER_NOT_CONVERGED = 9

    @property
    def moved(self) -> bool:
        """Whether the parameters changed."""
        return self in (Outcome.ACCEPTED, Outcome.DAMPING_RAISED, Outcome.SOLVER_NOT_CONVERGED)

    @property
    def remedy(self) -> str:
        """What happened, and what to do."""
        return _REMEDIES[self]


_REMEDIES = {
    Outcome.ACCEPTED: "the step was taken",
    Outcome.DAMPING_RAISED: "the step was taken, but only after the damping was raised: with the damping asked for, "
    "the system was not positive definite to working precision. Raise the damping's floor, or use float64",
    Outcome.ZERO_GRADIENT: "the gradient is zero to working precision: converged, or the residual does not depend "
    "on the parameters. Stop, or check that the residual uses `params`",
    Outcome.NONFINITE_RESIDUAL: "a residual, or the sum of their squares, is NaN or infinite. Look at "
    "the points, the weights and singular expressions (division, sqrt, log) in the residual; rescale what overflows",
    Outcome.NONFINITE_JACOBIAN: "the residuals are finite but a derivative is not. Look for sqrt or norm at zero, "
    "and for `jnp.where` around a singular expression (guard its argument too)",
    Outcome.DAMPING_UNDERFLOW: "the damping rule gave a number that is not a positive normal float. Give the rule a "
    "floor, or set damping=0.0 for undamped steps",
    Outcome.FACTORIZATION_FAILED: "the damped system could not be solved, however far the damping was raised "
    "(conjugate gradients need damping above zero). The Jacobian may be near overflow: rescale residuals or weights",
    Outcome.NONFINITE_STEP: "the step overflowed. Raise the damping",
    Outcome.LINE_SEARCH_REJECTED: "no step length tried lowers the loss on this batch: at a minimum to working "
    "precision, or the damping is too small for the model to be trusted, or an iterative solver stopped far from its "
    "tolerance (see `solver_residual`). Raise the damping (or that solver's rank or iterations), use float64, or stop",
    Outcome.SOLVER_NOT_CONVERGED: "the step was taken, for it lowers the loss, but the iterative solver stopped before "
    "its tolerance (see `solver_residual`). Raise its rank, its iterations or the damping, or take solver='dense'",
}
