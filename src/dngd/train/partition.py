"""How long a job may take in a partition of Slurm. One that asks for more would wait in the queue for ever."""

import math
import re
import subprocess

from dngd import check

MINUTES = 120
"""Time limit of a job where none is given. A run that hits it is put back in the queue, three times at most."""


def allowed_minutes(partition: str | None, wanted: int | None = None) -> int:
    """The time limit that a job should ask for: as given, or `MINUTES` where the partition allows it."""
    most = _most(partition)
    if wanted is None:
        return int(min(MINUTES, most))
    check.count("minutes", wanted)
    if wanted > most:
        where = "the default partition" if partition is None else f"partition {partition}"
        raise ValueError(f"--minutes {wanted} exceeds the {most:.0f} that {where} allows; jobs would wait for ever")
    return wanted


def _most(partition: str | None) -> float:
    """The limit of a partition, or the default one, in minutes; infinite where Slurm does not say."""
    command = ["sinfo", "--noheader", "--format", "%P %l", *(() if partition is None else ("--partition", partition))]
    try:
        listed = subprocess.run(command, capture_output=True, text=True)
    except OSError:
        return math.inf
    rows = [line.split() for line in listed.stdout.splitlines() if len(line.split()) == 2]
    limits = [_minutes(limit) for name, limit in rows if partition is not None or name.endswith("*")]
    return max((limit for limit in limits if limit >= 1), default=math.inf)


def _minutes(limit: str) -> float:
    """`infinite`, `30:00`, `2:00:00` or `1-00:00:00`, in minutes."""
    found = re.fullmatch(r"(?:(\d+)-)?(?:(\d+):)?(\d+):(\d+)", limit)
    if found is None:
        return math.inf
    days, hours, minutes, _ = (int(part or 0) for part in found.groups())
    return 60.0 * (24 * days + hours) + minutes
