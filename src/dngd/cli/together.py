"""Options for several devices and several processes."""

from dataclasses import dataclass
from typing import Annotated

import tyro

from dngd import check
from dngd.train import processes


@dataclass(frozen=True)
class Together:
    """Several devices and processes (docs/scaling.md)."""

    devices: Annotated[str | None, tyro.conf.arg(metavar="N|all", help_behavior_hint="")] = None
    """share out the points of each step over so many devices (1)"""
    distributed: Annotated[bool, tyro.conf.FlagCreatePairsOff, tyro.conf.arg(help_behavior_hint="")] = False
    """this process is one of several, started by Slurm, Open MPI or Kubernetes, or with the three options below"""
    coordinator: Annotated[str | None, tyro.conf.arg(metavar="HOST:PORT", help_behavior_hint="")] = None
    """address of process 0"""
    processes: Annotated[int | None, tyro.conf.arg(metavar="N", help_behavior_hint="")] = None
    """number of processes"""
    process: Annotated[int | None, tyro.conf.arg(metavar="K", help_behavior_hint="")] = None
    """number of this process, from 0 on"""

    def join(self) -> int | str | None:
        """Join the other processes, if there are any, and return the devices to use."""
        if self.distributed:
            processes.join(self.coordinator, self.processes, self.process)
        elif any(one is not None for one in (self.coordinator, self.processes, self.process)):
            raise ValueError("--coordinator, --processes and --process go with --distributed; add it")
        if self.devices is None or self.devices == "all":
            return self.devices
        if not self.devices.isdigit():
            raise ValueError(f"--devices {self.devices}: give a number, or all")
        check.count("devices", number := int(self.devices))
        return number


Machines = Annotated[Together, tyro.conf.arg(name="")]
