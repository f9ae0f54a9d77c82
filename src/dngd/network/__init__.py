"""Networks: functions of one point. Any Equinox module, or any other callable pytree, serves as well."""

from dngd.network.constraint import Constrained, InitialValue, VanishOnSphere
from dngd.network.embedding import FourierFeatures, PeriodicEmbedding
from dngd.network.flax import from_flax
from dngd.network.mlp import MLP, sine_and_tanh
from dngd.network.start import axis_aligned

__all__ = [
    "MLP",
    "Constrained",
    "FourierFeatures",
    "InitialValue",
    "PeriodicEmbedding",
    "VanishOnSphere",
    "axis_aligned",
    "from_flax",
    "sine_and_tanh",
]
