"""Error against time on the paper's seven problems: the long runs kept here, the baselines, and the paper's errors.

    python results/figure.py

draws docs/figures/accuracy.png.
"""

from pathlib import Path

import matplotlib
from collect import BASELINES, default_method, published, records
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from dngd.report.group import COLOURS
from reproduce.published import ERRORS, SECONDS

OUT = Path(__file__).parents[1] / "docs" / "figures" / "accuracy.png"
LONG, SHORT = 3000.0, 300.0
OURS, *OTHERS = COLOURS
PAPER = {"color": "black", "lw": 0.8, "ls": (0, (4, 3))}


def panel(axes, problem, groups):
    for method, seconds, look in [
        *((method, SHORT, {"color": colour, "lw": 1.2}) for method, colour in zip(BASELINES, OTHERS, strict=False)),
        (default_method(problem), LONG, {"color": OURS, "lw": 1.8}),
    ]:
        for run in groups.get((problem, method, seconds), [])[:1]:
            times = [row["seconds"] for row in run["history"]] + [run["seconds"]]
            axes.plot(times, [row["rel_l2"] for row in run["history"]] + [run["rel_l2"]], **look)
            axes.plot(times[-1], run["rel_l2"], ".", color=look["color"])  # all there is of runs of a few steps
    axes.axhline(published(problem), **PAPER)
    axes.plot(SECONDS[problem], published(problem), "k*", ms=10, clip_on=False)
    axes.set(xscale="log", yscale="log", xlim=(1, 12000), title=problem)
    axes.set_ylim(top=min(axes.get_ylim()[1], 3.0))
    axes.grid(alpha=0.3)


def main():
    groups = records()
    with matplotlib.rc_context({"font.size": 10, "axes.titlesize": 11}):
        figure = Figure(figsize=(12.5, 5.6), layout="constrained")
        panels = figure.subplots(2, 4).flat
        for axes, problem in zip(panels, ERRORS, strict=False):
            panel(axes, problem, groups)
        handles = [Line2D([], [], color=OURS, label="dngd, one or two CPU cores")]
        drawn = {method for problem, method, seconds in groups if problem in ERRORS and seconds == SHORT}
        looks = zip(BASELINES, OTHERS, strict=False)
        handles += [Line2D([], [], color=colour, label=name) for name, colour in looks if name in drawn]
        handles.append(Line2D([], [], **PAPER, marker="*", ms=10, label="the paper, A100"))
        panels[-1].axis("off")
        panels[-1].legend(handles=handles, loc="center", frameon=False)
        figure.supxlabel("seconds of training", size="medium")
        figure.supylabel("relative L² error", size="medium")
        figure.savefig(OUT, dpi=96)
    print(f"{OUT.name}: {OUT.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
