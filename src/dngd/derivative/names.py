"""Names of coordinates and fields, and how `u.xxt` is read."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from dngd.check import unknown

# Attributes of a field that are not derivatives along a coordinate of that name.
RESERVED = ("d", "divergence", "gradient", "hessian", "laplacian", "value")


def sized(names: Iterable[str] | Mapping[str, int], what: str) -> dict[str, int]:
    """Check names with sizes, given as a sequence (all of size one) or a mapping.

    **Example:** `sized(("t", "x"), "coordinate") == {"t": 1, "x": 1}`
    """
    if isinstance(names, str):
        raise TypeError(f"{what} names {names!r} are a string; pass a tuple such as ({names!r},) or a mapping to sizes")
    pairs = list(names.items()) if isinstance(names, Mapping) else [(name, 1) for name in names]
    for name, size in pairs:
        if not isinstance(name, str) or not name.isidentifier() or name.startswith("_"):
            raise ValueError(f"{what} name {name!r} cannot be an argument or attribute; use letters and digits")
        if name in RESERVED:
            raise ValueError(f"{what} name {name!r} is taken: u.{name} means something else; choose another name")
        if isinstance(size, bool) or not isinstance(size, int) or size < 1:
            raise ValueError(f"{what} {name!r} has size {size!r}; a size is a positive integer")
    if len({name for name, _ in pairs}) != len(pairs):
        raise ValueError(f"{what} names {[name for name, _ in pairs]} repeat one; each needs its own")
    return dict(pairs)


@dataclass(frozen=True)
class Coordinates:
    """Named coordinates of a point, in order; a name of size above one is a group of numbered ones.

    **Example:** `Coordinates.of({"t": 1, "x": 10})` has the axes `t, x0, x1, …, x9` and the group `x`.
    """

    axes: tuple[str, ...]
    groups: tuple[tuple[str, tuple[int, ...]], ...]  # each declared name and its axes
    spatial: tuple[int, ...]

    @classmethod
    def of(
        cls, names: "Coordinates | Iterable[str] | Mapping[str, int]", spatial: Iterable[str] | None = None
    ) -> "Coordinates":
        """Make coordinates by name; `spatial` are those of the Laplacian, all but `t` if not given."""
        if isinstance(names, Coordinates):
            return names
        axes: list[str] = []
        groups = {}
        for name, size in sized(names, "coordinate").items():
            groups[name] = tuple(range(len(axes), len(axes) + size))
            axes.extend([name] if size == 1 else [f"{name}{i}" for i in range(size)])
        if not axes:
            raise ValueError("an equation needs at least one coordinate")
        if len(set(axes) | set(groups)) != len(axes) + sum(len(group) > 1 for group in groups.values()):
            raise ValueError(f"the members of a coordinate group collide with other coordinates: {', '.join(axes)}")
        chosen = [name for name in groups if name != "t"] if spatial is None else list(spatial)
        lookup = dict(groups) | {axis: (i,) for i, axis in enumerate(axes)}
        for name in chosen:
            if name not in lookup:
                raise ValueError(unknown("spatial coordinate", name, lookup))
        return cls(tuple(axes), tuple(groups.items()), tuple(i for name in chosen for i in lookup[name]))

    @property
    def names(self) -> tuple[str, ...]:
        """Everything that can be named: declared names, then members of groups."""
        declared = tuple(name for name, _ in self.groups)
        return declared + tuple(axis for axis in self.axes if axis not in declared)

    def positions(self, name: str) -> tuple[int, ...]:
        """Return the axes that a name stands for."""
        if name in self.axes:
            return (self.axes.index(name),)
        found = dict(self.groups).get(name)
        if found is None:
            raise ValueError(unknown("coordinate", name, self.names))
        return found

    def axis(self, name: str) -> int:
        """Return the one axis that a name stands for."""
        first, *others = self.positions(name)
        if others:
            raise ValueError(
                f"{name!r} is a group of {1 + len(others)} coordinates, {self.axes[first]} to {self.axes[others[-1]]}; "
                "differentiate along one of them, or use laplacian, gradient or divergence"
            )
        return first

    def parse(self, attribute: str) -> tuple[int, ...] | None:
        """Return the axes along which `u.<attribute>` differentiates; None if it is not made of coordinate names.

        **Example:** with coordinates `t, x`, `parse("xxt") == (1, 1, 0)`.
        """
        ways = self._ways(attribute)
        if len(ways) > 1:
            readings = " or ".join("·".join(self.axes[i] for i in way) for way in ways[:2])
            raise ValueError(f'u.{attribute} can be read as {readings}; write u.d("…", "…") with one name each')
        return ways[0] if ways else None

    def _ways(self, attribute: str) -> list[tuple[int, ...]]:
        if not attribute:
            return [()]
        return [
            (i, *rest)
            for i, axis in enumerate(self.axes)
            if attribute.startswith(axis)
            for rest in self._ways(attribute[len(axis) :])
        ]
