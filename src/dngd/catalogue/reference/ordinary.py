"""References of ordinary differential equations: integrated when they are first asked for."""

import functools
from collections.abc import Callable, Sequence

from dngd.problem.accuracy import Reference


def integrated(slope: Callable, start: Sequence[float], end: float, kept: Sequence[int]) -> Reference:
    """The solution of `y′ = slope(t, y)` from t = 0 by an adaptive Runge-Kutta method of order eight."""

    @functools.cache
    def solved():
        from scipy.integrate import solve_ivp

        settings = {"method": "DOP853", "rtol": 1e-12, "atol": 1e-12, "dense_output": True}
        return solve_ivp(slope, (0, end), start, **settings).sol

    return Reference(lambda points: solved()(points[:, 0])[kept].T, batched=True, points=2000)
