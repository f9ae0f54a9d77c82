"""A step on several devices: one `jax.shard_map` around all of it.

Parameters, the optimizer's state and what a step reports are the same on every device; points, factors, vectors of
residual space, rows of the kernel and of its low-rank factor are shared out (`dngd.devices`).
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
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
    points = sum(jax.tree.leaves(one)[0].shape[0] for one in batch.values())
    if mesh is not None and points < mesh.size:
        raise ValueError(f"{points} points are fewer than the {mesh.size} devices; sample more, or take fewer devices")


def everywhere(mesh: Mesh | None, tree: PyTree) -> PyTree:
    """The arrays of a tree on every device of the mesh. Before, each process has them, and they are the same in all."""
    if mesh is None:
        return tree
    sharding = NamedSharding(mesh, EVERYWHERE)

    def put(x):
        if not eqx.is_array(x) or isinstance(x, Tracer) or _is_on(mesh, x):
            return x
        if jax.process_count() == 1:
            return jax.device_put(x, sharding)
        copies = [jax.device_put(x, device) for device in sharding.addressable_devices]
        return jax.make_array_from_single_device_arrays(x.shape, sharding, copies)

    return jax.tree.map(lambda x: put(jnp.asarray(x) if isinstance(x, np.ndarray) else x), tree)


def back(mesh: Mesh | None, result: PyTree, params: PyTree) -> PyTree:
    """What a step returns, where its parameters came from: on the mesh, or on this process' own device."""
    arrays = [x for x in jax.tree.leaves((params, result)) if eqx.is_array(x)]
    if mesh is None or any(isinstance(x, Tracer) for x in arrays):
        return result
    if any(_is_on(mesh, x) for x in jax.tree.leaves(params) if isinstance(x, jax.Array)):
        return result
    return jax.tree.map(lambda x: x.addressable_data(0) if isinstance(x, jax.Array) else x, result)


def at_home(mesh: Mesh | None, tree: PyTree) -> PyTree:
    """The arrays of a tree where `back` leaves them: JAX compiles anew for arrays that are bound to a device."""
    if mesh is None:
        return tree
    home = NamedSharding(mesh, EVERYWHERE).addressable_devices
    device = min(home, key=lambda one: one.id)
    return jax.tree.map(lambda x: jax.device_put(x, device) if isinstance(x, jax.Array) else x, tree)


def _is_on(mesh: Mesh, x: jax.Array) -> bool:
    return x.sharding.device_set == set(mesh.devices.flat)


def over_devices(mesh: Mesh | None, compute: Callable, params, state, terms: Sequence[Term], batch, *others) -> PyTree:
    """`compute(params, state, terms, batch, *others, devices)`, where every device has its share of the points."""
    if mesh is None:
        return compute(params, state, terms, batch, *others, OneDevice())
    devices = ManyDevices.over(mesh.size, terms, batch)
    dynamic, static = eqx.partition((params, state, terms, batch, others), eqx.is_array)
    kept = []  # what of the result is no array

    def on_each(dynamic):
        params, state, terms, batch, others = eqx.combine(dynamic, static)
        terms, batch = devices.share(terms, batch, jax.lax.axis_index(AXIS))
        result, rest = eqx.partition(compute(params, state, terms, batch, *others, devices), eqx.is_array)
        kept.append(rest)
        return result

    # Residuals are programs that were traced before and are bound anew; these do not carry types that vary by device.
    shared = jax.shard_map(on_each, mesh=mesh, in_specs=EVERYWHERE, out_specs=EVERYWHERE, check_vma=False)
    result = shared(dynamic)
    return eqx.combine(result, kept[-1])
