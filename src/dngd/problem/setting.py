"""What a condition needs to know about the problem that it belongs to."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Array

from dngd.check import unknown
from dngd.problem.domain import Domain


@dataclass(frozen=True)
class Setting:
    """What a condition needs to know about its problem."""

    domain: Domain
    fields: Mapping[str, int]
    constants: Mapping[str, Array]
    coefficients: Mapping[str, Array]

    def outputs(self, fields: Iterable[str] | str | None) -> tuple[int, ...]:
        """Return the positions of fields among the network's outputs; all for None."""
        names = list(self.fields) if fields is None else [fields] if isinstance(fields, str) else list(fields)
        starts = dict(zip(self.fields, np.cumsum([0, *self.fields.values()]).tolist(), strict=False))
        for name in names:
            if name not in self.fields:
                raise ValueError(unknown("field", str(name), self.fields))
            if names.count(name) > 1:
                raise ValueError(f"field {name!r} is named twice; name each field once")
        return tuple(starts[name] + i for name in names for i in range(self.fields[name]))

    @property
    def size(self) -> int:
        return sum(self.fields.values())
