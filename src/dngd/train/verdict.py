"""What to say about a run that has not converged: the most likely cause, and the next thing to try."""

from collections.abc import Sequence

from dngd.train.estimate import Estimate
from dngd.train.run import Run
from dngd.train.state import RunState

FEW_STEPS = 150
"""Number of steps below which a run has simply been too short."""


def verdict(run: Run, state: RunState, estimate: Estimate, concentrated: Sequence[str]) -> str:
    """A sentence or two for people."""
    axes = run.problem.domain.coordinates.axes
    where = ", ".join(f"{axis} = {value:.3g}" for axis, value in zip(axes, estimate.largest_at, strict=True))
    said = f"the estimated error is {estimate.rel_l2:.0%}" + (f", largest near {where}" if len(axes) <= 4 else "")
    position, budget = state.position, "--seconds" if run.config.seconds is not None else "--steps"
    if not position.window.is_last and not position.window.again:
        return f"{said}; only {position.window.end:.0%} of the time was reached: give it more {budget}"
    if position.step < FEW_STEPS:
        return f"{said}; only {position.step} steps were taken: give it more {budget}, or fewer --points"
    if position.window.length <= 1 / 32:
        return f"{said}; even short windows of time do not converge: shorten the time, or check the equation's signs"
    constants, easier = list(run.problem.constants), ""
    if constants and not run.problem.stages:
        easier = f"; where a constant makes it hard, reach its value in steps: continuation={constants[0]!r}"
    if concentrated:
        return (
            f"{said}; {concentrated[0]}: a corner, a kink or a layer; soften it, or leave it out of the domain{easier}"
        )
    losses = {name: float(value) for name, value in run.validation_losses(state).items()}
    largest = max(losses, key=losses.get)
    if losses[largest] > 0.9 * sum(losses.values()):
        return (
            f"{said}; condition {largest!r} has nearly all of the loss: check that it does not contradict the others, "
            "or lower its weight"
        )
    return f"{said}; the solution may vary faster than points and network follow: more --points and {budget}{easier}"
