"""`dngd compare`."""

from pathlib import Path

from dngd.cli.exit_code import ExitCode
from dngd.cli.options import Out, Problem, Settings, Typed, checked
from dngd.train.comparison import Comparison


def compare(
    problem: Problem,
    methods: str = "dense+ga,adam,lbfgs",
    seeds: int = 3,
    settings: Settings = Typed(),
    out: Out = None,
    jobs: int = 1,
) -> int:
    """Run methods × seeds on a problem under the same budget, and write a table and a figure.

    Finished runs are not repeated: start the same command again to go on. A run that fails is a row of the table.

    Args:
        problem: a name from dngd list, or FILE.py:NAME of your own
        methods: names, separated by commas
        seeds: how many seeds, from 0 (or --seed) on
        out: directory (runs/compare-PROBLEM)
        jobs: how many runs at once; more than one distorts their times
    """
    from dngd import report

    config = checked(settings)
    if config.method is not None:
        raise ValueError(f"--method {config.method}: a comparison takes --methods, such as --methods auto,adam")
    names = tuple(name.strip() for name in methods.split(",") if name.strip())
    out = Path("runs") / f"compare-{Path(problem).stem}" if out is None else out
    first = config.seed or 0
    results = Comparison(problem, names, tuple(range(first, first + seeds)), config, out).run(jobs)
    for path in report.write_comparison(out):
        print(path.read_text() if path.suffix == ".md" else f"written: {path}")
    failed = [name for name, ended in results.items() if ended != 0]
    if failed:
        print(f"{len(failed)} of {len(results)} runs did not end well: {', '.join(failed)}")
    return int(ExitCode.ERROR if len(failed) == len(results) else ExitCode.DONE)
