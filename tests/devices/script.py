"""What four virtual devices find beside one; started by the tests of this folder: `script.py REPORT quick|all`.

Compiling dominates: one small problem, whose points no number of devices divides, and few programs.
"""

import dataclasses
import json
import sys

import cases
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jax.sharding import Mesh, NamedSharding, PartitionSpec

import dngd
from benchmarks.collectives import collectives, largest, sent
from dngd.devices import AXIS, ManyDevices
from dngd.jacobian.inputs import with_array_weights
from dngd.jacobian.linearize import TILE_BYTES, linearized
from dngd.jacobian.residuals import Residuals
from dngd.optimize.mesh import everywhere, over_devices
from dngd.solver import shared_cholesky
from dngd.solver.messages import EVALUATIONS
from dngd.solver.messages import messages as planned_messages
from dngd.solver.plan import _on_one_of

jax.config.update("jax_enable_x64", True)
KEY = jax.random.key(7)
shared_cholesky.WIDTH = 4  # several panels on each device
TERMS, PARAMS, BATCH = cases.problem(
    "dictionary",
    "nested_forward",
    inputs=2,
    outputs=2,
    width=6,
    depth=2,
    activation="tanh",
    order=1,
    counts=(23, 9),
    seed=0,
)


def mesh_of(count):
    return None if count == 1 else Mesh(np.array(jax.devices()[:count]), (AXIS,))


def flat(tree):
    return np.asarray(ravel_pytree(eqx.filter(tree, eqx.is_inexact_array))[0])


def products(count, form, written):
    """Every product of a Jacobian, in the order that one device has."""
    mesh, u = mesh_of(count), jax.random.normal(KEY, (23 * 2 + 9,))
    weighted = (TERMS[0], dngd.Term("boundary", TERMS[1].residual, jnp.linspace(0.5, 2.0, 9)))

    def compute(params, indices, terms, batch, devices):
        residuals = Residuals.trace(terms, params, batch, devices)
        devices = residuals.devices
        r, jacobian = linearized(residuals, terms, params, batch, form, TILE_BYTES)
        if written is not None and form == "factored":
            jacobian = dataclasses.replace(jacobian, written=(written,) * len(jacobian.written))
        v = jax.tree.map(jnp.sin, residuals.space.tree(residuals.space.leaves(params)))
        found = {"gram": devices.gather(jacobian.gram()), "columns": devices.gather(jacobian.columns(indices))}
        if written is not None:
            return found
        if form == "factored":
            found |= {
                "residual": devices.gather(r),
                "loss": residuals.loss(params),
                "gradient": flat_of(jax.grad(residuals.loss)(params)),
                "term_losses": residuals.term_losses(r),
                "second": devices.gather(residuals.second(params, v)),
            }
        return found | {
            "matvec": devices.gather(jacobian.matvec(v)),
            "rmatvec": flat_of(jacobian.rmatvec(devices.here(u))),
            "diagonal": devices.gather(jacobian.diagonal()),
            "parameter_gram": jacobian.parameter_gram(),
            "dense": devices.gather(jacobian.dense()),
        }

    def flat_of(tree):
        return ravel_pytree(eqx.filter(tree, eqx.is_inexact_array))[0]

    given = everywhere(mesh, (PARAMS, jnp.asarray([3, 50, 45, 46, 0, 54]), with_array_weights(weighted), BATCH))
    return eqx.filter_jit(lambda *given: over_devices(mesh, compute, *given))(*given)


def differences(found, wanted):
    """The largest relative difference in each result, and whether all devices have the same bits."""
    relative = {
        jax.tree_util.keystr(path): float(np.max(np.abs(np.asarray(a) - np.asarray(b))) / np.max(np.abs(np.asarray(b))))
        for (path, a), b in zip(jax.tree_util.tree_leaves_with_path(found), jax.tree.leaves(wanted), strict=True)
    }
    return {"relative": relative, "same_bits": same_bits(found)}


def same_bits(tree):
    leaves = [leaf for leaf in jax.tree.leaves(tree) if isinstance(leaf, jax.Array)]
    copies = [[np.asarray(one.data) for one in leaf.addressable_shards] for leaf in leaves]
    return all(one.tobytes() == leaf[0].tobytes() for leaf in copies for one in leaf)


STEPS = {
    "dense": {"solver": "dense", "momentum": 0.8},
    "shared": {"solver": dngd.solver.DenseDual(shared_from=1), "geodesic": False},
    "primal": {"solver": "primal", "geodesic": False},
    "pcg": {"solver": dngd.solver.PCG(rank=20, sufficient=0.0), "geodesic": False},
    "uniform": {"solver": dngd.solver.PCG(rank=20, landmarks="uniform", preconditioner="spectral"), "geodesic": False},
    "undamped": {"solver": "dense", "damping": 0.0, "geodesic": False},
    "adam": None,
    "lbfgs": None,
}


LENGTHS = {"undamped": 6, "lbfgs": 25}
"""Steps of a run, where these are not 50: without damping the loss is rounding after ten, and L-BFGS makes rounding
grow more than tenfold in every ten."""


def steps(name, count):
    """A run of some steps, whether all devices hold the same bits after each of them, and the compiled program."""
    options = STEPS[name]
    if options is None:
        baseline = dngd.baseline
        made = baseline.Adam(devices=count) if name == "adam" else baseline.LBFGS(history=4, devices=count)
    else:
        made = dngd.DualNaturalGradient(**{"damping": 1e-3, **options}, devices=count)
    batch = BATCH
    if name == "undamped":  # more parameters than rows, and no row that depends on others
        batch = {"interior": BATCH["interior"][:5], "boundary": jax.tree.map(lambda x: x[:2], BATCH["boundary"])}
    params, state, terms, batch = everywhere(mesh_of(count), (PARAMS, made.init(PARAMS), TERMS, batch))
    step = jax.jit(lambda params, state, batch: made.step(params, state, terms, batch))
    program = step.lower(params, state, batch).compile()
    infos, same = [], True
    for _ in range(LENGTHS.get(name, 50)):
        params, state, info = program(params, state, batch)
        same = same and same_bits((params, state, info))
        infos.append(info)
    found = {
        "params": flat(params),
        "loss": np.asarray([float(info.loss) for info in infos]),
        "outcome": np.asarray([float(info.outcome) + 1 for info in infos]),
        # Later a residual may be just above the tolerance here, just below it there.
        "iterations": np.asarray([float(info.solver_iterations) + 1 for info in infos[:2]]),
    }
    return found, same, program.as_text()


def volumes(name, count, text):
    """Bytes that each device sends in a step, counted in the compiled program and planned for it; and the numbers that
    stand for its rows of the Jacobian."""
    iterations, solves = (10 if name == "pcg" else 1), (2 if name == "dense" else 1)
    passes = {"search": EVALUATIONS, "landmarks": 20, "iterations": iterations}
    jacobian = eqx.filter_eval_shape(_on_one_of, ManyDevices.over(count, TERMS, BATCH), TERMS, PARAMS, BATCH)
    planned = planned_messages(jacobian, name == "shared", 20, 20, iterations, solves)
    counted, _ = sent(collectives(text), count, passes)
    factors = sum(leaf.size for leaf in jax.tree.leaves(jacobian) if isinstance(leaf, jax.ShapeDtypeStruct))
    return {"counted": counted, "planned": planned["dense" if name == "shared" else name].bytes, "factors": factors}


def errors():
    said = {}
    pairs = jax.devices()[:4]
    tries = {
        "too many": lambda: dngd.DualNaturalGradient(devices=9),
        "none": lambda: dngd.DualNaturalGradient(devices=0),
        "a word": lambda: dngd.DualNaturalGradient(devices="some"),
        "two axes": lambda: dngd.DualNaturalGradient(devices=Mesh(np.array(pairs).reshape(2, 2), ("a", "b"))),
        "few points": lambda: few_points(dngd.DualNaturalGradient(devices=4)),
    }
    for name, attempt in tries.items():
        try:
            attempt()
            said[name] = "nothing"
        except Exception as error:
            said[name] = f"{type(error).__name__}: {error}"
    return said


def few_points(optimizer):
    batch = jax.tree.map(lambda x: x[:1], BATCH)
    optimizer.step(PARAMS, optimizer.init(PARAMS), TERMS, batch)


def places():
    """Where results are: with local parameters here, with those on the mesh there; and inside the user's own loop."""
    made = dngd.DualNaturalGradient(solver="dense", geodesic=False, damping=1e-3, devices=4)
    given = PARAMS, made.init(PARAMS)
    here = made.step(*given, TERMS, BATCH)[0]
    sharded = {"interior": BATCH["interior"][:20], "boundary": jax.tree.map(lambda x: x[:8], BATCH["boundary"])}
    alone = dngd.DualNaturalGradient(solver="dense", geodesic=False, damping=1e-3).step(*given, TERMS, sharded)[0]
    sharded = jax.device_put(sharded, NamedSharding(mesh_of(4), PartitionSpec(AXIS)))

    @jax.jit
    def twice(params, state, batch):
        return jax.lax.scan(lambda carry, _: (made.step(*carry, TERMS, batch)[:2], None), (params, state), length=1)[0]

    there = twice(*everywhere(mesh_of(4), given), sharded)[0]
    return {
        "here": len(jax.tree.leaves(here)[0].sharding.device_set),
        "there": len(jax.tree.leaves(there)[0].sharding.device_set),
        "difference": float(np.max(np.abs(flat(there) - flat(alone)))),
    }


PRODUCTS = {"quick": (("factored", None), ("factored", (0,))), "all": (("explicit", None), ("matrix_free", None))}
METHODS = {"quick": ("dense", "shared", "pcg", "primal"), "all": ("uniform", "undamped", "adam", "lbfgs")}


def main():
    path, which = sys.argv[1:]
    report = {"products": {}, "steps": {}, "messages": {}, "volumes": {}}
    for form, written in PRODUCTS[which]:
        name = form if written is None else f"{form}, rows of the first term"
        wanted = products(1, form, written)
        for count in (4,) if written is None else (3,):
            report["products"][f"{name} {count}"] = differences(products(count, form, written), wanted)
    for name in METHODS[which]:
        wanted, _, _ = steps(name, 1)
        for count in (2, 4) if which == "all" or name == "dense" else (4,):
            found, same, text = steps(name, count)
            report["messages"][name] = largest(text)
            if name in ("dense", "shared", "pcg", "primal"):
                report["volumes"][f"{name} {count}"] = volumes(name, count, text)
            report["steps"][f"{name} {count}"] = differences(found, wanted) | {"same_bits": same}
    report["errors"] = errors()
    report["places"] = places() if which == "all" else {}
    with open(path, "w") as file:
        json.dump(report, file)


if __name__ == "__main__":
    main()
