"""The kernel where every device has some of the rows: the rows of the others come by, one device after the other."""

from collections.abc import Callable

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, PyTree

from dngd.devices import AXIS, Devices, ManyDevices, packed

Cross = Callable[[PyTree, PyTree], Float[Array, "m k"]]


def round_the_ring(devices: Devices, own: Float[Array, "m m"], mine: PyTree, cross: Cross) -> Float[Array, "m all"]:
    """The rows of the kernel on this device, from its block on the diagonal and `cross(mine, theirs)` for all others.

    `mine` is what the rows are made of. It goes half-way round the ring of devices, p − 1 messages at most, since the
    block of two devices serves both: one computes it and sends its transpose to the other.
    """
    if not isinstance(devices, ManyDevices):
        return own
    count, m, device = devices.count, own.shape[0], lax.axis_index(AXIS)
    kernel = _put(jnp.zeros((m, count * m), own.dtype), own, device)
    nearest = [(sender, (sender - 1) % count) for sender in range(count)]
    vectors, unpacked = packed(mine)

    def meet(distance, carried):
        kernel, theirs = carried
        theirs = lax.ppermute(theirs, AXIS, nearest)
        return _put(kernel, cross(mine, unpacked(theirs)), (device + distance) % count), theirs

    half = count // 2
    kernel, _ = lax.fori_loop(1, half + 1, meet, (kernel, vectors))
    for distance in range(1, half + 1):  # a message needs its way to be known when the program is compiled
        ways = [(sender, (sender + distance) % count) for sender in range(count)]
        given = lax.dynamic_slice_in_dim(kernel, (device + distance) % count * m, m, axis=1)
        received = lax.ppermute(given, AXIS, ways).T
        if 2 * distance == count:  # both have computed it: the first one's counts, for the sake of symmetry
            received = jnp.where(device < half, given, received)
        kernel = _put(kernel, received, (device - distance) % count)
    return in_order(devices, kernel)


def in_order(devices: ManyDevices, kernel: Float[Array, "m padded"]) -> Float[Array, "m all"]:
    """Columns in the order of `devices.gather`, without those of padding."""
    parts, start, blocks = [], 0, kernel.reshape(kernel.shape[0], devices.count, -1)
    for rows, all_rows in devices.rows_of_terms:
        parts.append(blocks[:, :, start : start + rows].reshape(kernel.shape[0], -1)[:, :all_rows])
        start += rows
    return jnp.concatenate(parts, axis=1)


def _put(kernel: Float[Array, "m padded"], block: Float[Array, "m m"], device) -> Float[Array, "m padded"]:
    return lax.dynamic_update_slice_in_dim(kernel, block, device * kernel.shape[0], axis=1)
