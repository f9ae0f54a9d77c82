"""Tables of `docs/notebook/benchmarks.md` from the stored results, so that they cannot drift.

    python benchmarks/tables.py

Rewrites what stands between `<!-- table NAME -->` and `<!-- end -->`. The tests fail when the page is not what this
would write.
"""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "notebook" / "benchmarks.md"
RESULTS = ROOT / "benchmarks" / "results"
BLOCK = re.compile(r"(<!-- table (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)

LARGEST_ITERATIONS = 500  # of conjugate gradients in benchmarks/pcg.py
STEP_PARTS = ("sampling", "linearise", "kernel", "factorise", "velocity", "acceleration", "search", "rest")

ATTACKED = {"inputs": "inputs in Python", "commands": "command lines", "runs": "damaged run directories"}

Row = dict[str, Any]


@dataclass(frozen=True)
class Table:
    """Columns by heading: how a row is shown."""

    command: str
    columns: dict[str, Callable[[Row], str]]
    file: str
    section: str | None = None  # of results that have several

    def text(self) -> str:
        stored = json.loads((RESULTS / f"{self.file}.json").read_text())
        rows = stored["rows"] if self.section is None else stored["rows"].get(self.section, [])
        rows = [rows] if isinstance(rows, dict) else rows
        if not rows:
            return f"Not measured yet: `{self.command}`.\n"
        machine = stored["machine"]
        dates = sorted({row.get("date", machine["date"]) for row in rows})
        when = dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"
        lines = [
            f"`{self.command}` · {machine['processor']}, {machine['cores']} cores, jax {machine['jax']} · {when}",
            "",
            "| " + " | ".join(self.columns) + " |",
            "|" + "---|" * len(self.columns),
        ]
        lines += ["| " + " | ".join(show(row) for show in self.columns.values()) + " |" for row in rows]
        return "\n".join(lines) + "\n"


def plain(key: str) -> Callable[[Row], str]:
    """A whole number or a word."""
    return lambda row: f"{row[key]:,}" if isinstance(row[key], int) else str(row[key])


def iterations(key: str) -> Callable[[Row], str]:
    """Of a solve, with the residual it left if it was cut short."""
    return lambda row: f"{row[key]}" + (f" ({row[key + '_residual']:.0e})" if row[key] >= LARGEST_ITERATIONS else "")


def number(*keys: str, unit: str = "", digits: int = 3, scale: float = 1.0) -> Callable[[Row], str]:
    """A measured number, by the path of its keys; a dash where it was not measured."""

    def show(row: Row) -> str:
        value: Any = row
        for key in keys:
            value = value.get(key) if isinstance(value, dict) else None
        if value is None:
            return "—"
        return f"{scale * value:#.{digits}g}".rstrip(".") + unit

    return show


def times(key: str) -> Callable[[Row], str]:
    return number(key, unit="×", digits=2)


TABLES = {
    "gram": Table(
        "python benchmarks/gram.py",
        {
            "q": plain("q"),
            "width": plain("w"),
            "points": plain("m"),
            "type": plain("dtype"),
            "factors": number("linearise", unit=" s"),
            "kernel": number("kernel", unit=" s"),
            "J and J·Jᵀ takes": times("with_j"),
            "J·Jᵀ alone takes": times("given"),
            "above the GEMM limit": times("peak"),
        },
        "gram",
    ),
    "derivative": Table(
        "python benchmarks/derivative.py",
        {
            "d": plain("d"),
            "width": plain("width"),
            "points": plain("points"),
            "activation": plain("activation"),
            "our pass": number("pass", unit=" ms", scale=1e3),
            "folx takes": times("folx"),
            "trace of Hessian takes": times("hessian"),
            "linearising with folx takes": times("linearise"),
        },
        "derivative",
    ),
    "large_network": Table(
        "python benchmarks/large_network.py",
        {
            "type": plain("dtype"),
            "parameters": plain("parameters"),
            "step": number("seconds", unit=" s"),
            "first step, compiling": number("first_seconds", unit=" s"),
            "peak memory above the start": number("peak_bytes", unit=" GiB", scale=2**-30),
        },
        "large_network",
    ),
    "pcg_iteration": Table(
        "python benchmarks/pcg.py iteration",
        {
            "m": plain("rows"),
            "n": plain("parameters"),
            "from factors": number("factored", unit=" s"),
            "forward after reverse mode": number("matrix_free", unit=" s"),
            "ratio": times("speedup"),
        },
        "pcg",
        "iteration",
    ),
    "pcg_cavity": Table(
        "python benchmarks/pcg.py cavity",
        {
            "m": plain("rows"),
            "n": plain("parameters"),
            "landmarks": plain("rank"),
            "at most": plain("largest_rank"),
            "iterations": plain("iterations"),
            "residual": number("residual", digits=2),
            "step": number("seconds", unit=" s"),
            "an iteration": number("seconds_an_iteration", unit=" s"),
            "peak memory": number("peak_bytes", unit=" GiB", scale=2**-30),
        },
        "pcg",
        "cavity",
    ),
    "pcg_crossover": Table(
        "python benchmarks/pcg.py crossover",
        {
            "problem": plain("problem"),
            "m": plain("rows"),
            "dense step": number("dense", unit=" s"),
            "pcg step": number("pcg", unit=" s"),
            "landmarks": plain("rank"),
            "iterations": plain("iterations"),
        },
        "pcg",
        "crossover",
    ),
    "pcg_landmarks": Table(
        "python benchmarks/pcg.py landmarks",
        {
            "problem": plain("problem"),
            "after steps": plain("step"),
            "m": plain("rows"),
            "landmarks": plain("rank"),
            "iterations, uniform": iterations("uniform"),
            "iterations, pivoted": iterations("pivoted"),
        },
        "pcg",
        "landmarks",
    ),
    "step": Table(
        "python benchmarks/step.py",
        {"problem": plain("problem"), "m": plain("rows"), "step": number("step", unit=" s")}
        | {"in residuals": number("passes"), "in gradients": number("gradients")}
        | {"lengths tried": plain("evaluations")}
        | {part: number(part, unit=" %", scale=1e2, digits=2) for part in STEP_PARTS},
        "step",
    ),
    "compile": Table(
        "python benchmarks/compile.py",
        {
            "problem": plain("problem"),
            "compiles in": number("compile", unit=" s"),
            "in haste": number("hasty_compile", unit=" s"),
            "as JAX does": number("usual_compile", unit=" s"),
            "a step takes": number("step", unit=" s"),
            "compiled in haste": number("hasty_step", unit=" s"),
            "as JAX does it": number("usual_step", unit=" s"),
        },
        "compile",
    ),
    "time_to_error": Table(
        "python benchmarks/time_to_error.py",
        {
            "problem": plain("problem"),
            "error": lambda row: f"{row['target']:.0e}",
            "method": plain("method"),
            "seconds": number("seconds"),
            "steps": plain("steps"),
            "reached": lambda row: f"{row['error']:.2e}",
            "times ours": lambda row: ("" if row["reached"] else "> ") + f"{row['ratio']:.3g}",
        },
        "time_to_error",
    ),
    "trainer": Table(
        "python benchmarks/trainer.py",
        {
            "optimizer.step": number("step", unit=" ms", scale=1e3),
            "the trainer's part beside it": number("overhead", unit=" %", scale=1e2, digits=2),
            "evaluation": number("evaluation_share", unit=" %", scale=1e2, digits=2),
            "start to first step": number("first", "first_step_written", unit=" s"),
            "with programs cached": number("second", "first_step_written", unit=" s"),
        },
        "trainer",
    ),
    "attack": Table(
        "python benchmarks/attack",
        {
            "what": lambda row: ATTACKED[row["kind"]],
            "tried": plain("all"),
            "clear error or warning, or nothing lost": plain("clear"),
            "accepted though wrong": lambda row: str(row.get("accepted", 0)),
            "another error, a crash, a hang": lambda row: str(row.get("unclear", 0)),
        },
        "attack",
    ),
    "kills": Table(
        "python benchmarks/kills.py",
        {
            "kills": plain("kills"),
            **{signal: plain(signal) for signal in ("SIGKILL", "SIGTERM", "SIGINT")},
            "before the first step": plain("before the first step"),
            "runs": plain("runs"),
            "that ended with other bits": plain("differ"),
        },
        "kills",
    ),
}


def write(page: str) -> str:
    """The page with its tables replaced."""

    def replace(found: re.Match) -> str:
        return f"{found[1]}\n{TABLES[found[2]].text()}\n{found[3]}"

    return BLOCK.sub(replace, page)


if __name__ == "__main__":
    PAGE.write_text(write(PAGE.read_text()))
    print(f"written to {PAGE.relative_to(ROOT)}")
