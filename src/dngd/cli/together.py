"""Options for several devices and several processes."""

from dataclasses import dataclass
from typing import Annotated

import tyro

from dngd import check
from dngd.train.processes import PATIENCE, join


@dataclass(frozen=True)
class Cluster:
    """Who is who, where neither Slurm nor Open MPI nor Kubernetes says it (docs/scaling.md)."""

    coordinator: Annotated[
        str | None,
        tyro.conf.arg(name="cluster.coordinator", prefix_name=False, metavar="HOST:PORT", help_behavior_hint=""),
    ] = None
    """address of process 0"""
    processes: Annotated[
        int | None, tyro.conf.arg(name="cluster.processes", prefix_name=False, metavar="N", help_behavior_hint="")
    ] = None
    """number of processes"""
    process: Annotated[
        int | None, tyro.conf.arg(name="cluster.process", prefix_name=False, metavar="K", help_behavior_hint="")
    ] = None
    """number of this process, from 0 on"""
    patience: Annotated[
        int, tyro.conf.arg(name="cluster.patience", prefix_name=False, metavar="SECONDS", help_behavior_hint="(300)")
    ] = PATIENCE
    """how long to wait for the others"""


@dataclass(frozen=True)
class Together:
    """Several devices and processes (docs/scaling.md)."""

    devices: Annotated[str | None, tyro.conf.arg(prefix_name=False, metavar="N|all", help_behavior_hint="")] = None
    """share out the points of each step over devices (1)"""
    distributed: Annotated[
        bool, tyro.conf.FlagCreatePairsOff, tyro.conf.arg(prefix_name=False, help_behavior_hint="")
    ] = False
    """this process is one of several (docs/scaling.md)"""
    cluster: Cluster = Cluster()

    def join(self) -> int | str | None:
        """Join the other processes, if there are any, and return the devices to use."""
        if self.distributed:
            join(**vars(self.cluster))
        elif self.cluster != Cluster():
            raise ValueError("--cluster.coordinator and its like go with --distributed; add it")
        if self.devices is None or self.devices == "all":
            return self.devices
        if not self.devices.isdigit():
            raise ValueError(f"--devices {self.devices}: give a number, or all")
        check.count("devices", number := int(self.devices))
        return number


Machines = Annotated[Together, tyro.conf.arg(name="machines", prefix_name=False)]
