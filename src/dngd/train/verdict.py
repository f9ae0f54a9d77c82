"""Whether a run has converged, and what to say where it has not: the most likely cause, and the next thing to try."""

from collections.abc import Mapping, Sequence

from dngd.train.estimate import Estimate
from dngd.train.run import Run
from dngd.train.schedule import UNSOLVED
from dngd.train.state import RunState

FAILED = 0.05
"""Estimate above which a run counts as not converged."""

FEW_STEPS = 150
"""Number of steps below which a run has simply been too short."""


def has_converged(estimate: Estimate, losses: Mapping[str, float], latest: float) -> bool:
    """Whether the estimated error is small, and so are the losses of the terms on points that no step uses, and
    `latest`, the mean loss of the last steps on new points: they look where residuals are large."""
    return estimate.rel_l2 <= FAILED and sum(losses.values()) <= UNSOLVED and not latest > UNSOLVED


def verdict(
    run: Run,
    state: RunState,
    estimate: Estimate,
    concentrated: Sequence[str],
    losses: Mapping[str, float],
    latest: float,
    window: tuple[float, float],
) -> str:
    """A sentence or two for people. `losses` are those of the part of the time where they are largest, `window`."""
    axes = run.problem.domain.coordinates.axes
    where = ", ".join(f"{axis} = {value:.3g}" for axis, value in zip(axes, estimate.largest_at, strict=True))
    said = f"the estimated error is {estimate.rel_l2:.0%}" + (f", largest near {where}" if len(axes) <= 4 else "")
    if estimate.rel_l2 <= FAILED:
        size = (2 * max(sum(losses.values()), latest)) ** 0.5
        said = f"residuals are still {size:.0%} of their size, so the error may be far above its estimate"
        if window[1] < 1:
            begin, length = run.formulation.marching.part(*window)
            said = f"from t = {begin:.4g} to {begin + length:.4g} {said}"
    position, budget = state.position, "--seconds" if run.config.seconds is not None else "--steps"
    if not position.window.is_last and not position.window.again:
        return f"{said}; only {position.window.end:.0%} of the time was reached: give it more {budget}"
    if position.step < FEW_STEPS:
        return f"{said}; only {position.step} steps were taken: give it more {budget}, or fewer --points"
    if window[1] <= 1 / 32:
        return f"{said}; even short windows of time do not converge: shorten the time, or check the equation's signs"
    constants, easier = list(run.problem.constants), ""
    if constants and not run.problem.stages:
        easier = f"; where a constant makes it hard, reach its value in steps: continuation={constants[0]!r}"
    if concentrated:
        return (
            f"{said}; {concentrated[0]}: a corner, a kink or a layer; soften it, or leave it out of the domain{easier}"
        )
    largest = max(losses, key=lambda name: losses[name])
    if losses[largest] > 0.9 * sum(losses.values()):
        return (
            f"{said}; condition {largest!r} has nearly all of the loss: check that it does not contradict the others, "
            "or lower its weight"
        )
    return f"{said}; the solution may vary faster than points and network follow: more --points and {budget}{easier}"
