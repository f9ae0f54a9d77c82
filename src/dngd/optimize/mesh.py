"""A step on several devices: one `jax.shard_map` around all of it.

Parameters, the optimizer's state and what a step reports are the same on every device; points, factors, vectors of
residual space, rows of the kernel and of its low-rank factor are shared out (`dngd.devices`).
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import equinox as eqx
import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxtyping import PyTree

from dngd.devices import AXIS, ManyDevices, OneDevice
from dngd.term import Term

EVERYWHERE = PartitionSpec()


def as_mesh(devices: int | str | Mesh | Sequence[Any] | None) -> Mesh | None:
    """The mesh that shares out the points; None for one device, the usual one.

    `devices` is a number, `"all"` (of all processes), a sequence of JAX devices, or a mesh with one axis.
    """
    if devices is None:
        return None
    if isinstance(devices, Mesh):
        if len(devices.axis_names) != 1:
            raise ValueError(
                f"devices={devices} has axes {', '.join(devices.axis_names)}; points are shared out along one axis: "
                "pass jax.sharding.Mesh(jax.devices(), ('points',)), or devices='all'"
            )
        chosen = list(devices.devices.flat)
    elif isinstance(devices, str | int):
        chosen = _first(devices)
    else:
        chosen = list(devices)
    kinds = sorted({f"{one.platform} ({one.device_kind})" for one in chosen})
    if len(kinds) != 1:
        raise ValueError(
            f"devices={devices!r} are of kinds {', '.join(kinds) or 'none'}; a step needs devices of one kind"
        )
    return None if chosen == jax.devices()[:1] else Mesh(np.array(chosen), (AXIS,))


def _first(devices: int | str) -> list[Any]:
    there = jax.devices()
    if devices == "all":
        return there
    if isinstance(devices, bool | str) or devices < 1:
        raise ValueError(f"devices={devices!r} must be a positive whole number, or 'all'")
    if jax.process_count() > 1 and devices != len(there):
        raise ValueError(
            f"devices={devices} leaves out some of the {len(there)} devices of {jax.process_count()} processes; "
            "pass 'all'"
        )
    if devices > len(there):
        hint = "; for devices that share the processor, set JAX_NUM_CPU_DEVICES" if there[0].platform == "cpu" else ""
        raise ValueError(f"devices={devices} exceeds the {len(there)} there are ({there[0].device_kind}){hint}")
    return there[:devices]


def check_points(mesh: Mesh | None, batch: Mapping[str, Any]) -> None:
    """Refuse a batch with fewer points than devices."""
    if mesh is not None and (points := sum(_count(batch[name]) for name in batch)) < mesh.size:
        raise ValueError(f"{points} points are fewer than the {mesh.size} devices; sample more, or take fewer devices")


def everywhere(mesh: Mesh | None, tree: PyTree) -> PyTree:
    """The arrays of a tree on every device of the mesh. In each process they have to be the same before."""
    if mesh is None:
        return tree
    sharding, here = NamedSharding(mesh, EVERYWHERE), set(mesh.devices.flat)

    def put(x):
        if not eqx.is_array_like(x) or isinstance(x, jax.core.Tracer | bool | int | float | complex):
            return x
        if isinstance(x, jax.Array) and x.sharding.device_set == here:
            return x
        if jax.process_count() == 1:
            return jax.device_put(x, sharding)
        copies = [jax.device_put(x, device) for device in sharding.addressable_devices]
        return jax.make_array_from_single_device_arrays(x.shape, sharding, copies)

    return jax.tree.map(put, tree)


def local(tree: PyTree) -> PyTree:
    """The copy on this process' first device of arrays that are the same everywhere."""
    return jax.tree.map(
        lambda x: x.addressable_data(0) if isinstance(x, jax.Array) and len(x.sharding.device_set) > 1 else x, tree
    )


def over_devices(mesh: Mesh | None, compute: Callable, params, state, terms: Sequence[Term], batch, *others) -> PyTree:
    """`compute(params, state, terms, batch, *others, devices)`, where every device has its share of the points."""
    if mesh is None:
        return compute(params, state, terms, batch, *others, OneDevice())
    devices = ManyDevices(mesh.size, tuple(_count(batch[term.name]) for term in terms))
    dynamic, static = eqx.partition((params, state, terms, batch, others), eqx.is_array)
    kept = []  # what of the result is no array

    def on_each(dynamic):
        params, state, terms, batch, others = eqx.combine(dynamic, static)
        shares = [devices.mine(number, batch[term.name], term.weight) for number, term in enumerate(terms)]
        weighed = tuple(
            eqx.tree_at(lambda one: one.weight, term, weight) for term, (_, weight) in zip(terms, shares, strict=True)
        )
        points = {term.name: share for term, (share, _) in zip(terms, shares, strict=True)}
        result, rest = eqx.partition(compute(params, state, weighed, points, *others, devices), eqx.is_array)
        kept.append(rest)
        return result

    # Residuals are programs that were traced before and are bound anew; these do not carry types that vary by device.
    shared = jax.shard_map(on_each, mesh=mesh, in_specs=EVERYWHERE, out_specs=EVERYWHERE, check_vma=False)
    result = shared(dynamic)
    return eqx.combine(result, kept[-1])


def _count(points: PyTree) -> int:
    return jax.tree.leaves(points)[0].shape[0]
