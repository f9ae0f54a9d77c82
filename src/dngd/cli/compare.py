"""`dngd compare`."""

from pathlib import Path
from typing import Annotated

import tyro

from dngd import report
from dngd.cli.exit_code import ExitCode
from dngd.train.comparison import Comparison
from dngd.train.config import Config


def compare(
    problem: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="PROBLEM")],
    methods: str = "dense+ga,adam,lbfgs",
    seeds: int = 3,
    settings: Annotated[Config, tyro.conf.arg(name="")] = Config(),
    out: Path | None = None,
    jobs: int = 1,
) -> int:
    """Methods × seeds on a problem, each under the same budget; a table and a figure at the end.

    Runs that are finished are not repeated: start the same command again to go on. A run that fails is a row of the
    table, not the end.

    Args:
        problem: a name from `dngd list`, or FILE.py:NAME for a dngd.Problem of your own
        methods: names, separated by commas
        seeds: how many, from 0 on (or from --seed)
        out: where the runs go; runs/compare-PROBLEM if not given
        jobs: how many runs at once; more than one distorts their times
    """
    if settings.method is not None:
        raise ValueError(f"--method {settings.method}: a comparison takes --methods, such as --methods auto,adam")
    names = tuple(name.strip() for name in methods.split(",") if name.strip())
    out = Path("runs") / f"compare-{Path(problem).stem}" if out is None else out
    comparison = Comparison(problem, names, tuple(range(settings.seed, settings.seed + seeds)), settings, out)
    results = comparison.run(jobs)
    written = report.write_comparison(out)
    for path in written:
        print(path.read_text() if path.suffix == ".md" else f"written: {path}")
    failed = [name for name, ended in results.items() if ended != 0]
    if failed:
        print(f"{len(failed)} of {len(results)} runs did not end well: {', '.join(failed)}")
    return int(ExitCode.ERROR if len(failed) == len(results) else ExitCode.DONE)
