"""`dngd compare`."""

from pathlib import Path

from dngd.cli.exit_code import ExitCode
from dngd.cli.options import File, Out, Problem, Settings, Typed, given
from dngd.train.comparison import Comparison
from dngd.train.launch import launcher as made


def compare(
    problem: Problem = None,
    methods: str = "dense+ga,adam,lbfgs",
    seeds: int = 3,
    settings: Settings = Typed(),
    config: File = None,
    out: Out = None,
    jobs: int = 1,
    launcher: str = "local",
    partition: str | None = None,
    gpus: int | None = None,
    minutes: int | None = None,
) -> int:
    """Run methods × seeds on a problem under the same budget, and write a table and a figure.

    Finished runs are not repeated: start the same command again to go on. A run that fails is a row of the table.

    Args:
        methods: names, separated by commas
        seeds: how many seeds, from 0 (or --seed) on
        out: directory (runs/compare-PROBLEM)
        jobs: how many runs at once; on one machine more than one distorts their times
        launcher: local, or slurm: each run is a job (docs/scaling.md)
        partition: of the jobs
        gpus: number of GPUs of a job
        minutes: time limit of a job
    """
    from dngd import report

    problem, chosen = given(problem, settings, config)
    if chosen.method is not None:
        raise ValueError(f"--method {chosen.method}: a comparison takes --methods, such as --methods auto,adam")
    names = tuple(name.strip() for name in methods.split(",") if name.strip())
    out = Path("runs") / f"compare-{Path(problem).stem}" if out is None else out
    first = chosen.seed or 0
    launch = made(launcher, out / "jobs", partition, gpus, minutes)
    results = Comparison(problem, names, tuple(range(first, first + seeds)), chosen, out).run(jobs, launch)
    for path in report.write_comparison(out):
        print(path.read_text() if path.suffix == ".md" else f"written: {path}")
    failed = [name for name, ended in results.items() if ended != 0]
    if failed:
        print(f"{len(failed)} of {len(results)} runs did not end well: {', '.join(failed)}")
    return int(ExitCode.ERROR if len(failed) == len(results) else ExitCode.DONE)
