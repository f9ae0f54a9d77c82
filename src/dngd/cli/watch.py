"""`dngd watch`."""

import contextlib
from pathlib import Path
from typing import Annotated

import tyro

from dngd.cli.options import Flag


def watch(
    directories: Annotated[
        tuple[Path, ...], tyro.conf.Positional, tyro.conf.arg(metavar="[DIR ...]", help_behavior_hint="(runs)")
    ] = (Path("runs"),),
    port: int = 0,
    trust: Flag = False,
) -> int:
    """Show runs while they go on, on a page of this machine, with buttons to pause, stop and extend them.

    Args:
        directories: runs, or directories of runs
        port: of the address; 0 takes a free one
        trust: whether a run that has ended may go on if it names a file for its problem, which is executed
    """
    from dngd.report.watch import Server

    if not 0 <= port < 2**16:
        raise ValueError(f"--port {port}: ports are numbers from 1 to 65535, and 0 for a free one")
    with Server(directories, port, trust) as server:
        print(
            f"watch: {server.address}\nOpen it in a browser on this machine; Ctrl-C ends the watcher, not the runs.",
            flush=True,
        )
        with contextlib.suppress(KeyboardInterrupt):
            server.serve_forever()
    return 0
