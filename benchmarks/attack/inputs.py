"""Bad inputs: what a user may type by mistake, for every argument of the public names, and on the command line."""

import jax
import jax.numpy as jnp
import numpy as np

import dngd

NAN, INF = float("nan"), float("inf")
HUGE = 10**400
POINTS = np.array([[0.2], [0.5], [0.8]])
MASKED = np.ma.masked_array([0.1, 0.5, 0.9], [False, True, False])

EQUATION, ENDS = dngd.Equation(lambda u, x: u.xx + 1.0, points=8), dngd.Dirichlet(0.0, points=2)


def network(key):
    return dngd.network.MLP((1, 4, 1), key=key)


def problem(**changes):
    parts = {"domain": dngd.Box(x=(0, 1)), "conditions": {"it": EQUATION, "ends": ENDS}, "network": network}
    return dngd.Problem(**(parts | changes))


def condition(one, **changes):
    return problem(conditions={"it": EQUATION, "ends": ENDS, "bad": one}, **changes)


class BegunError(Exception):
    """Nothing refused the input: the first step would be taken now."""


class Begins:
    """Ends a run before it compiles anything, since most of the time of an attack would go there."""

    def start(self, run, state):
        raise BegunError


def solve(given=None, **settings):
    settings = {"steps": 1, "method": "adam", "quiet": True} | settings
    if "out" not in settings:
        settings = {"observers": [Begins()]} | settings
    return dngd.solve(problem() if given is None else given, **settings)


# A maker, and for each of its arguments values that it has to refuse; what it makes is used for one step if it does not.
ARGUMENTS = {
    "Box": (
        lambda x: solve(problem(domain=dngd.Box(x=x))),
        {
            "x": [
                3,
                "01",
                (0,),
                (0, 1, 2),
                (1, 0),
                (0, 0),
                (NAN, 1),
                (0, INF),
                (0, 1j),
                ("a", "b"),
                None,
                [],
                (None, 1),
                {},
                MASKED,
                (0, 1e400),
            ]
        },
    ),
    "Box names": (
        lambda name: solve(problem(domain=dngd.Box(**{name: (0, 1)}))),
        {"name": ["laplacian", "gradient", "_x", "x y", "1x", "d", "value", ""]},
    ),
    "where": (
        lambda mask: solve(problem(domain=dngd.Box(x=(0, 1)).where(mask))),
        {
            "mask": [
                3,
                None,
                "x > 0",
                lambda x: x**2 - 0.25,
                lambda x: NAN,
                lambda x: None,
                lambda y: y > 0,
                lambda x: x > 5,
                lambda x: [x > 0],
                lambda: True,
                lambda x: jnp.array([True, False]),
                lambda x: x > 0 if x > 0 else False,
            ]
        },
    ),
    "Ball": (
        lambda dimension=1, radius=1.0, name="x": solve(problem(domain=dngd.Ball(dimension, radius=radius, name=name))),
        {
            "dimension": [0, -1, 1.5, "2", None, True, HUGE],
            "radius": [0, -1, NAN, INF, "1", None, 1j],
            "name": ["", 3, None, "laplacian", "a b"],
        },
    ),
    "PointSet": (
        lambda points: solve(condition(dngd.Dirichlet(0.0, on=dngd.PointSet(points), points=1))),
        {
            "points": [
                [],
                [1.0, 2.0],
                [[NAN]],
                [["a"]],
                [[1j]],
                MASKED[:, None],
                3,
                None,
                [[0.1, 0.2]],
                [[5.0]],
                [[0.1], [0.2, 0.3]],
                [[None]],
                "points",
                np.zeros((0, 1)),
                np.zeros((2, 1, 1)),
            ]
        },
    ),
    "Curve": (
        lambda function: solve(
            condition(
                dngd.Dirichlet(0.0, on=dngd.Curve(function)),
                domain=dngd.Box(x=(0, 1), y=(0, 1)),
                network=lambda key: dngd.network.MLP((2, 4, 1), key=key),
            )
        ),
        {
            "function": [
                3,
                None,
                lambda s: s,
                lambda s: jnp.array([NAN, 0.0]),
                lambda s: jnp.array([5.0, 5.0]),
                lambda: 0,
                lambda s: "a",
                lambda s: jnp.ones((2, 2)),
                lambda s: jnp.array([1j, 0.5]),
            ]
        },
    ),
    "Curve normals": (
        lambda outward: solve(
            condition(
                dngd.Neumann(0.0, on=dngd.Curve(lambda s: jnp.array([0.5, s[0]]), outward=outward)),
                domain=dngd.Box(x=(0, 1), y=(0, 1)).where(lambda x: x < 0.5),
                network=lambda key: dngd.network.MLP((2, 4, 1), key=key),
            )
        ),
        {
            "outward": [
                None,
                3,
                lambda p: 2 * p,
                lambda p: jnp.array([-1.0, 0.0]),
                lambda p: jnp.array([0.0, 1.0]),
                lambda p: p[0],
                lambda p: jnp.array([2.0, 0.0]),
            ]
        },
    ),
    "Equation": (
        lambda equation: solve(problem(conditions={"it": dngd.Equation(equation, points=8), "ends": ENDS})),
        {
            "equation": [
                3,
                None,
                "u.xx",
                lambda u: 1.0,
                lambda v: v.xx,
                lambda u: u.yy,
                lambda u: u.xz,
                lambda u: NAN,
                lambda u: None,
                lambda u: "a",
                lambda u: u.xx * 1j,
                lambda u: jnp.ones(3),
                lambda u: [u.xx, None],
                lambda: 0.0,
                lambda u, x, speed: u.xx,
                lambda u: u.laplacien,
                lambda u: u.xx if u > 0 else u.x,
                lambda u: np.sin(u.x),
                lambda u: u.xxxxxxxxxxxx,
                lambda u: u[3],
                lambda u: u.d("y"),
                lambda u: 1 / 0,
            ]
        },
    ),
    "Equation settings": (
        lambda points=8, weight=1.0, on=None, sampling=None: solve(
            problem(
                conditions={
                    "it": dngd.Equation(EQUATION.equation, points=points, weight=weight, on=on, sampling=sampling),
                    "ends": ENDS,
                }
            )
        ),
        {
            "points": [0, -3, 2.5, "8", NAN, True, HUGE, [8], 10**13],
            "weight": [-1, NAN, INF, "1", None, 1j, [1, 2], lambda x: x, np.ones(8), MASKED],
            "on": ["y-", "x+-", 3, "", ("x-", "z"), {}, dngd.Box],
            "sampling": ["sobol", 3, True, dngd.Sampling, "x"],
        },
    ),
    "Dirichlet": (
        lambda value=0.0, on=None, fields=None: solve(condition(dngd.Dirichlet(value, on=on, fields=fields, points=2))),
        {
            "value": [
                "0",
                None,
                NAN,
                INF,
                1j,
                [1, 2],
                lambda y: y,
                lambda x: NAN,
                lambda x: jnp.log(x - 2),
                lambda x: 1j * x,
                lambda x: jnp.ones(3),
                lambda x: None,
                lambda: "a",
                {},
                MASKED,
            ],
            "on": ["y", "left", 3, ("x-", "x-", "y"), [], "x?"],
            "fields": ["v", 3, ("u", "v"), (), ("u", "u")],
        },
    ),
    "Robin": (
        lambda a=1.0, b=1.0, value=0.0: solve(condition(dngd.Robin(value, a=a, b=b, points=2))),
        {"a": ["1", None, NAN, INF, 1j, [1], lambda x: x], "b": ["1", None, NAN, INF, 1j], "value": [NAN, "a"]},
    ),
    "Robin both": (lambda both: dngd.Robin(0.0, a=both, b=both), {"both": [0, 0.0]}),
    "Initial": (
        lambda value=0.0, order=0, time="x": solve(condition(dngd.Initial(value, order=order, time=time, points=1))),
        {"value": [NAN, "0", None, lambda t: t], "order": [-1, 0.5, "1", None, True, 12], "time": ["t", "", 3, None]},
    ),
    "Periodic": (
        lambda coordinate="x", order=0: solve(condition(dngd.Periodic(coordinate, order=order))),
        {"coordinate": ["t", 3, None, "", ("x",)], "order": [-1, 1.5, "1", None, 12]},
    ),
    "Data": (
        lambda at=POINTS, values=(0.1, 0.2, 0.3), points=None, noise=None, weight=1.0: solve(
            condition(dngd.Data(at, values, points=points, noise=noise, weight=weight))
        ),
        {
            "at": [
                [],
                [0.1, 0.2, 0.3],
                [[NAN]] * 3,
                [["a"]] * 3,
                [[0.1]] * 2,
                [[5.0]] * 3,
                MASKED[:, None],
                POINTS * 1j,
                None,
                np.ones((3, 2)),
                [[None]] * 3,
                np.array([["2020-01-01"]] * 3, "datetime64[D]"),
            ],
            "values": [
                [],
                [0.1],
                [NAN, 0, 0],
                ["a", "b", "c"],
                [1j, 0, 0],
                MASKED,
                None,
                np.ones((3, 2)),
                [[1], [2, 3], [4]],
                [None] * 3,
            ],
            "points": [0, 4, -1, 1.5, "2", True],
            "noise": [0, -1, NAN, INF, "0.1", (0.1, 0.2), []],
            "weight": [-1, NAN, "1"],
        },
    ),
    "Sampling": (
        lambda method="uniform", every=1, adaptive=None, clustered=False: solve(
            problem(
                conditions={
                    "it": dngd.Equation(
                        EQUATION.equation,
                        points=8,
                        sampling=dngd.Sampling(method, every=every, adaptive=adaptive, clustered=clustered),
                    ),
                    "ends": ENDS,
                }
            )
        ),
        {
            "method": ["soboll", 3, None, ""],
            "every": [0, -1, 1.5, "1", True],
            "adaptive": [True, "yes", 3, dngd.Adaptive],
            "clustered": ["y-", 3, "yes", ("x-", "y"), None],
        },
    ),
    "Adaptive": (
        lambda **settings: dngd.Adaptive(**settings),
        {
            "candidates": [0, -1, 1.5, "10", None],
            "power": [-1, NAN, INF, "1", None],
            "floor": [-1, NAN, INF, "1", None],
            "weighted": ["no", 1, None],
        },
    ),
    "Stage": (
        lambda name="easy", constants=None, steps=None, share=None: solve(
            condition(
                ENDS,
                constants={"nu": 1.0},
                stages=(
                    dngd.Stage(
                        name,
                        {"nu": 2.0} if constants is None else constants,
                        steps=steps or (None if share else 1),
                        share=share,
                    ),
                ),
            )
        ),
        {
            "name": ["", 3],
            "constants": [{"mu": 1.0}, {"nu": "a"}, {"nu": NAN}, 3, ["nu"]],
            "steps": [-1, 1.5, "3", True],
            "share": [1.0, 2.0, -0.5, NAN, "half"],
        },
    ),
    "Reference": (
        lambda reference: solve(problem(reference=reference)),
        {
            "reference": [
                3,
                "sin",
                lambda y: y,
                lambda x: jnp.ones(3),
                lambda x: 1j * x,
                lambda x: None,
                dngd.Reference,
            ]
        },
    ),
    "Problem": (
        lambda **parts: solve(problem(**parts)),
        {
            "domain": [None, (0, 1), dngd.Box, "box"],
            "conditions": [
                {},
                None,
                [EQUATION],
                {"it": EQUATION.equation},
                {"": EQUATION},
                {3: EQUATION},
                {"it": dngd.Equation},
                {"it": dngd.Equation(EQUATION.equation, weight=0.0)},
            ],
            "fields": [(), ("x",), ("u", "u"), {"u": 0}, {"u": 1.5}, 3, ("laplacian",), ("u v",), None],
            "network": [
                3,
                "mlp",
                lambda: None,
                lambda key: None,
                lambda key: dngd.network.MLP((2, 4, 1), key=key),
                lambda key: dngd.network.MLP((1, 4, 2), key=key),
                lambda key: network(jax.random.key(0)),
                network(jax.random.key(0)),
                lambda key: lambda x: NAN,
            ],
            "constants": [{"u": 1.0}, {"c": "a"}, {"c": NAN}, {"c": 1j}, 3, ["c"], {"c": None}],
            "coefficients": [{"D": 1.0}, {"x": 1.0}, {"D": NAN}, {"D": "a"}, 3],
            "parameters": [
                {"nu": 1.0},
                {"nu": (1, 0)},
                {"nu": (0, 1, "log")},
                {"nu": (0, 1, "lin")},
                {"nu": (NAN, 1)},
                {"x": (0, 1)},
                3,
            ],
            "continuation": ["nu", 3, {"nu": 3.0}],
            "stages": [3, ("easy",), (dngd.Stage,)],
            "presets": [{"fast": 3}, {"fast": {"secnods": 3}}, {"fast": {"points": {"no": 3}}}, 3],
        },
    ),
    "solve": (
        solve,
        {
            "given": ["kovaznay", 3, dngd.Box(x=(0, 1)), "nowhere.py:problem", ""],
            "steps": [0, -1, 1.5, "3", NAN, True, HUGE * 1.0 if False else "1e3"],
            "seconds": [0, -1, NAN, INF, "3", True],
            "target": [0, -1, NAN, "1e-3"],
            "patience": [0, -1, 1.5, "9"],
            "seed": [-1, 1.5, "0", 2**63, 2**64, HUGE],
            "method": ["adm", 3, "", "adam>lbfgs", "adam:2>lbfgs", "adam:0.5>"],
            "precision": ["float16", 64, "double"],
            "points": [{"no": 3}, {"it": 0}, {"it": 1.5}, 3, {"it": 10**13}, ["it"]],
            "preset": ["papr", 3],
            "doublings": [-1, 1.5, "2"],
            "settle": [-0.1, 1.1, NAN, "yes"],
            "stages": ["no", 1, 0],
            "balance": [-1, 1.5],
            "checkpoint_seconds": [0, NAN, "60"],
            "optimizer": [
                3,
                {"rnk": 3},
                {"rank": 0},
                {"momentum": 5},
                {"momentum": 1.0},
                {"damping": "auto"},
                {"damping_level": -1},
                {"learning_rate": NAN},
                {"history": 0},
                {"tolerance": 0},
            ],
            "quiet": ["no", 1, None],
            "observers": [print, [3], 3, [object()], [dict]],
            "devices": [0, -1, "many", 1.5, 99],
            "secnods": [3],
            "rank": [3],
        },
    ),
    "load": (dngd.load, {"path": ["nowhere", "", 3, None]}),
    "resume": (dngd.resume, {"path": ["nowhere", "", 3, None]}),
    "MLP": (
        lambda sizes: dngd.network.MLP(sizes, key=jax.random.key(0)),
        {"sizes": [(), (1,), (0, 1), (1, -3, 1), (1, 2.5, 1), 3, "141", (1, None, 1)]},
    ),
}

CONDITION = ("solve", "heat", "--steps", "1")
COMMANDS = [
    [], ["slove"], ["solve"], ["solve", "kovaznay"], ["solve", ""], ["solve", "nowhere.py:problem"], ["solve", "nowhere.py"],
    ["solve", "heat.py:"], ["solve", ":problem"], ["solve", "../../etc/passwd:x"], ["solve", "a\x00b.py:p"], ["solve", "heat", "extra"],
    *([*CONDITION, "--method", one] for one in ("adm", "", "adam>", ">adam", "adam:x>lbfgs", "adam:0>lbfgs", "DENSE", "dense+gb")),
    *([*CONDITION[:2], "--seconds", one] for one in ("0", "-1", "nan", "inf", "1e400", "soon", "")),
    *([*CONDITION[:2], "--steps", one] for one in ("0", "-1", "1.5", "1e3", "many", "")),
    *([*CONDITION, "--target", one] for one in ("0", "-1", "nan", "good")),
    *([*CONDITION, "--patience", one] for one in ("0", "-1", "x")),
    *([*CONDITION, "--seed", one] for one in ("-1", "1.5", str(2**64), "9" * 5000, "x")),
    *([*CONDITION, "--precision", one] for one in ("float16", "64")),
    *([*CONDITION, "--points", *one] for one in (["interior"], ["interior=0"], ["interior=-3"], ["interior=x"], ["no=3"], ["interior=1.5"], ["interior=" + "9" * 20])),
    *([*CONDITION, "--doublings", one] for one in ("-1", "x")),
    *([*CONDITION, "--settle", one] for one in ("-0.1", "2", "nan")),
    *([*CONDITION, "--stages", one] for one in ("no", "1", "")),
    *([*CONDITION, "--preset", one] for one in ("papr", "")),
    *([*CONDITION, "--checkpoint-seconds", one] for one in ("0", "-5")),
    *([*CONDITION, "--optimizer.momentum", one] for one in ("1", "5", "-1", "x")),
    *([*CONDITION, "--optimizer.rank", one] for one in ("0", "-1", "x")),
    *([*CONDITION, "--optimizer.damping", one] for one in ("auto", "")),
    *([*CONDITION, "--devices", one] for one in ("0", "-1", "many", "99")),
    *([*CONDITION, "--config", one] for one in ("nowhere.yaml", ".", "list.yaml", "text.yaml", "deep.yaml", "unknown.yaml", "tag.yaml", "binary.yaml")),
    *([*CONDITION, "--out", one] for one in ("file.txt", "file.txt/below", "a\x00b")),
    [*CONDITION, "--log", "tensorbord"], [*CONDITION, "--secnods", "3"], [*CONDITION, "--rank", "3"], [*CONDITION, "--cluster.process", "0"],
    ["resume"], ["resume", "nowhere"], ["resume", "file.txt"], ["resume", "."], ["resume", "nowhere", "--steps", "0"], ["resume", "nowhere", "--steps", "None"],
    ["report"], ["report", "nowhere"], ["report", "file.txt"], ["report", "."], ["report", "file.txt", "--out", "nowhere/page.html"],
    ["compare"], ["compare", "heat", "--methods", ""], ["compare", "heat", "--methods", "adm", "--out", "c"],
    ["compare", "heat", "--methods", "adam", "--seeds", "0", "--out", "c"], ["compare", "heat", "--methods", "adam", "--seeds", "-2", "--out", "c"],
    ["compare", "heat", "--methods", "adam", "--jobs", "0", "--steps", "1", "--out", "c"], ["compare", "heat", "--methods", "adam", "--out", "file.txt"],
    ["compare", "heat", "--methods", "adam", "--launcher", "slrum"],
    ["plan"], ["plan", "kovaznay"], ["plan", "heat", "--preset", "papr"], ["plan", "kovasznay", "--devices", "0"],
    ["watch"], ["watch", "nowhere"], ["watch", ".", "--port", "x"], ["watch", ".", "--port", "99999999"], ["watch", ".", "--port", "-1"],
    ["list", "everything"], ["doctor", "now"], ["--versoin"],
]  # fmt: skip
FILES = {
    "file.txt": b"a file\n",
    "list.yaml": b"- a\n- b\n",
    "text.yaml": b"steps: [1\n",
    "deep.yaml": b"points: " + b"[" * 5000 + b"]" * 5000,
    "unknown.yaml": b"secnods: 3\n",
    "tag.yaml": b"steps: !!python/object/apply:os.system ['touch executed']\n",
    "binary.yaml": bytes(range(256)),
}
"""Files that commands find."""
