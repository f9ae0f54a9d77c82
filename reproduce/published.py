"""The paper's published numbers: A. Jnini, F. Vella, *Dual Natural Gradient Descent …*, TMLR 2025.

All were measured on one NVIDIA A100-80GB: errors as the median of ten seeds after 3000 s (the cavity: 9000 s), times as
the mean of 500 iterations.
"""

ERRORS: dict[str, dict[str, float]] = {
    "heat": {"sgd": 3.48e-3, "adam": 1.45e-3, "lbfgs": 9.82e-5, "dense": 1.24e-5, "dense+ga": 8.52e-6},
    "kovasznay": {"sgd": 6.94e-3, "adam": 4.50e-3, "lbfgs": 9.48e-5, "dense": 5.23e-7, "dense+ga": 5.49e-7},
    "poisson10": {"sgd": 6.26e-2, "adam": 3.51e-2, "lbfgs": 5.47e-4, "pcg": 2.74e-4},
    "fokker_planck": {"sgd": 5.48e-2, "adam": 4.80e-2, "lbfgs": 9.30e-1, "dense": 3.27e-3, "dense+ga": 2.47e-3},
    "allen_cahn": {"sgd": 9.93e-1, "adam": 4.92e-1, "lbfgs": 9.92e-1, "dense": 1.21e-5, "dense+ga": 9.13e-6},
    "cavity": {"sgd": 1.10, "adam": 6.93e-1, "lbfgs": 3.85e-1, "pcg": 3.59e-3},
    "poisson100k": {"sgd": 3.67e-3, "adam": 1.87e-4, "lbfgs": 1.78e-3, "dense": 3.30e-5, "dense+ga": 1.14e-5},
}
"""Median relative L² error by problem and method (Table "Median relative L² error after the task budget")."""

SECONDS = {problem: 9000.0 if problem == "cavity" else 3000.0 for problem in ERRORS}
"""Budget of a run (Section 5, appendix "Hyperparameters for Lid-Driven Cavity Experiment")."""

NAMES = {
    "sgd": "SGD",
    "adam": "Adam",
    "lbfgs": "L-BFGS",
    "dense": "Dense D-NGD",
    "dense+ga": "Dense D-NGD+GA",
    "pcg": "PCGD-NGD",
}
"""What the paper calls our methods."""

ROWS = (300, 1800, 3300, 4800, 6300)
"""Residuals m of the sweep (appendix "Navier–Stokes (m × n) Sweep")."""

PARAMETERS = (303, 2853, 5403, 7953, 10503, 13053, 15603, 18153)
"""Parameters n of the sweep: those of 2-50-…-50-3 with one to eight hidden layers."""

_PRIMAL = (
    (0.0012, 0.0054, 0.0146, 0.0294, 0.0480, 0.0824, 0.1226, 0.1681),
    (0.0039, 0.0210, 0.0419, 0.0676, 0.1062, 0.1554, 0.2138, 0.2868),
    (0.0045, 0.0556, 0.0969, 0.1496, 0.2121, 0.2898, 0.3857, 0.4917),
    (0.0060, 0.1031, 0.1805, 0.2705, 0.3734, 0.4913, 0.6278, 0.7791),
    (0.0084, 0.1732, 0.2985, 0.4389, 0.5950, 0.7675, 0.9606, None),
)
_DUAL = (
    (0.0015, 0.0025, 0.0035, 0.0043, 0.0053, 0.0061, 0.0069, 0.0078),
    (0.0059, 0.0072, 0.0098, 0.0127, 0.0138, 0.0164, 0.0188, 0.0213),
    (0.0069, 0.0120, 0.0179, 0.0232, 0.0266, 0.0307, 0.0325, 0.0418),
    (0.0099, 0.0194, 0.0290, 0.0344, 0.0440, 0.0466, 0.0511, 0.0657),
    (0.0161, 0.0308, 0.0416, 0.0591, 0.0639, 0.0726, 0.0807, None),
)


def _by_size(table: tuple[tuple[float | None, ...], ...]) -> dict[tuple[int, int], float]:
    """Seconds by (m, n); the cell that the paper leaves out is left out."""
    pairs = (
        (m, n, seconds) for m, row in zip(ROWS, table, strict=True) for n, seconds in zip(PARAMETERS, row, strict=True)
    )
    return {(m, n): seconds for m, n, seconds in pairs if seconds is not None}


PRIMAL_SECONDS = _by_size(_PRIMAL)
"""Seconds per iteration (Table "Primal (parameter-space) Gauss–Newton: time per iteration")."""

DUAL_SECONDS = _by_size(_DUAL)
"""Seconds per iteration (Table "Dual D-NGD: time per iteration")."""
