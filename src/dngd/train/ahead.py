"""Programs that are compiled in a thread of their own, before a step needs them."""

import threading
from collections.abc import Callable, Hashable
from concurrent.futures import Future, ThreadPoolExecutor

THREAD = "dngd-compile"


class Ahead:
    """Tasks in one thread. Each is begun once, and may be waited for.

    What a task raises is left to whoever then does the same in vain: the step itself, which would be compiled anew.
    """

    def __init__(self):
        self._thread = ThreadPoolExecutor(1, THREAD)  # which starts with its first task
        self._tasks: dict[Hashable, Future] = {}

    def begin(self, key: Hashable, task: Callable[[], None]) -> None:
        """Do this in the thread, unless a task with this key was begun before."""
        if key not in self._tasks:
            self._tasks[key] = self._thread.submit(task)

    def wait(self, key: Hashable) -> None:
        """Return when the task is done, at once if it was never begun."""
        if key in self._tasks:
            self._tasks[key].exception()

    def is_busy_with(self, key: Hashable) -> bool:
        return key in self._tasks and not self._tasks[key].done()

    def close(self) -> None:
        """Begin nothing more. The task in progress goes on: nothing can stop XLA."""
        self._thread.shutdown(wait=False, cancel_futures=True)


def is_compiling() -> bool:
    """Whether a task is in progress, for which Python would wait before it ends. (A daemon thread is no way out: the
    process then aborts in the compiler.)"""
    return any(thread.name.startswith(THREAD) for thread in threading.enumerate())
