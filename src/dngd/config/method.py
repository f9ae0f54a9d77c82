"""Methods by name, one or several in turn."""

from dataclasses import dataclass

from dngd.check import unknown

SOLVERS = ("auto", "dense", "primal", "pcg")
BASELINES = ("adam", "sgd", "lbfgs", "soap")
KEEP_THEIR_POINTS = ("lbfgs",)
METHODS = (*SOLVERS, *(f"{solver}+ga" for solver in SOLVERS), *BASELINES)


@dataclass(frozen=True)
class Phase:
    """A method and its share of the budget."""

    method: str
    share: float


def phases(method: str) -> tuple[Phase, ...]:
    """Parse `adam:0.3>lbfgs`: three tenths of the budget for Adam, the rest for L-BFGS."""
    parts = [part.strip() for part in method.split(">")]
    found, left = [], 1.0
    for place, part in enumerate(parts):
        name, _, share = part.partition(":")
        if name not in METHODS:
            raise ValueError(unknown("method", name, METHODS))
        last = place == len(parts) - 1
        if last and share:
            raise ValueError(f"method={method!r}: the last method takes what is left; leave out :{share}")
        if not last and not share:
            raise ValueError(f"method={method!r}: give {name} a share of the budget, such as {name}:0.3")
        try:
            value = left if last else float(share)
        except ValueError:
            value = -1.0
        if not 0 < value <= left or (not last and value >= left):
            raise ValueError(f"method={method!r}: the share {share!r} of {name} is not a number between 0 and {left:g}")
        left -= value
        found.append(Phase(name, value))
    return tuple(found)


def grows(method: str) -> bool:
    """Return whether the batch may grow. Baselines keep the size of theirs."""
    return any(phase.method not in BASELINES for phase in phases(method))


def keeps_its_points(method: str) -> bool:
    """Return whether any phase uses the same points in all of its steps, and therefore needs many."""
    return any(phase.method in KEEP_THEIR_POINTS for phase in phases(method))


def check_method(name: str, method: str) -> None:
    """Refuse a method that does not exist, as the value of this setting."""
    if not isinstance(method, str):
        raise TypeError(f"{name}={method!r} must be a name: {', '.join(METHODS)}")
    phases(method)
