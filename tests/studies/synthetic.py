"""Cells with made-up times, and a count of how often they were asked for."""

from reproduce.step_cost import make_row


def silent(text):
    """Print nothing."""


class Synthetic:
    """Measures a cell by a formula; `stop` interrupts after so many."""

    def __init__(self, seconds, size=lambda cell: 1000, stop=None):
        self.seconds, self.size, self.stop, self.asked = seconds, size, stop, []

    def __call__(self, cell, limits, path):
        if self.stop is not None and len(self.asked) == self.stop:
            raise KeyboardInterrupt
        self.asked.append(cell.name)
        seconds = self.seconds(cell)
        if seconds is None:
            return make_row(cell, limits, "over time", message="too slow")
        return make_row(cell, limits, "measured", seconds=[seconds], median=seconds, bytes=self.size(cell))
