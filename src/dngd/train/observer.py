"""Observers: what watches a run. Displays, the history, evaluation, selection, checkpoints, and your own."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from dngd.problem.model import Model
from dngd.train.run import Run
from dngd.train.state import RunState

HOOKS = ("start", "step", "note", "end", "close")
Answer = RunState | bool | None


class Observer:
    """Told about a run as it goes. Every hook is optional, so any object that has one of them is an observer too.

    What an observer keeps from step to step has to be part of the state, or a resumed run will not know it: `start`
    and `step` may return a state to go on with.
    """

    def start(self, run: Run, state: RunState) -> RunState | None:
        """The run is about to start, or to go on."""

    def step(self, run: Run, state: RunState, row: dict[str, Any]) -> Answer:
        """A step was taken; `row` is its row of the history, to which entries may be added. True ends the run."""

    def note(self, text: str) -> None:
        """Something happened that a person should know."""

    def end(self, summary: Mapping[str, Any]) -> None:
        """The run has ended."""

    def close(self) -> None:
        """Called last, also after an error: let go of files and terminals."""


class FunctionObserver(Observer):
    """A function `f(row, model)`, called after every step; True ends the run."""

    def __init__(self, function: Callable[[dict[str, Any], Model], Any]):
        self._function = function

    def step(self, run: Run, state: RunState, row: dict[str, Any]) -> bool:
        return bool(self._function(row, state.model))


def as_observers(given: Iterable[Any]) -> list[Any]:
    """Take observers as they are and functions as observers; refuse anything else."""
    if callable(given) or not isinstance(given, Iterable):
        raise TypeError(f"observers={given!r} must be a list, such as observers=[{given!r}]")
    found = []
    for one in given:
        if any(callable(getattr(one, hook, None)) for hook in HOOKS) and not isinstance(one, type):
            found.append(one)
        elif callable(one) and not isinstance(one, type):
            found.append(FunctionObserver(one))
        else:
            raise TypeError(
                f"observers: {one!r} is neither a function f(row, model) nor an object with any of the methods "
                f"{', '.join(HOOKS)}"
            )
    return found


def tell(observers: Sequence[Any], hook: str, *arguments: Any) -> list[Any]:
    """Call a hook of every observer that has it; returns their answers."""
    hooks = [getattr(observer, hook, None) for observer in observers]
    return [call(*arguments) for call in hooks if call is not None]


def ask(observers: Sequence[Any], hook: str, run: Run, state: RunState, *arguments: Any) -> tuple[RunState, bool]:
    """Call a hook of every observer in turn; returns the state they leave, and whether any asked to stop."""
    stop = False
    for observer in observers:
        for answer in tell([observer], hook, run, state, *arguments):
            if isinstance(answer, RunState):
                state = answer
            else:
                stop = stop or bool(answer)
    return state, stop
