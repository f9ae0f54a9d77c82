"""Small trees to save, and a look at what lies in a directory."""

import jax.numpy as jnp

from dngd.train.checkpoint import save


def small(value):
    return {"x": jnp.full(3, float(value)), "n": jnp.asarray(value)}


def two(path):
    """Two checkpoints; where the second one is."""
    save(path, small(1), {"step": 1})
    return save(path, small(2), {"step": 2})


def names(path):
    return sorted(file.name for file in path.iterdir())
