"""The settings of a run. A problem's presets are settings too, so this package stands below problems."""

from dngd.config.config import Config, Resolved
from dngd.config.optimizer import OptimizerSettings

__all__ = ["Config", "OptimizerSettings", "Resolved"]
