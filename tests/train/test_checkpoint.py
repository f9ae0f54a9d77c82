"""Checkpoints: what is saved comes back bit for bit."""

import zipfile

import equinox as eqx
import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from train.small_trees import names, small

import dngd
from dngd.optimize.baseline import LBFGS, SGD, SOAP, Adam
from dngd.train.checkpoint import CheckpointError, load, save


def sample(seed=0):
    """Every kind of leaf."""
    numbers = np.random.default_rng(seed)
    return {
        "model": eqx.nn.MLP(2, 1, 4, 1, key=jax.random.key(seed)),
        "float64": jnp.asarray(numbers.normal(size=(3, 2))).at[0, 0].set(jnp.nan),
        "float32": jnp.asarray(numbers.normal(size=5), jnp.float32),
        "bfloat16": jnp.asarray(numbers.normal(size=(2, 2)), jnp.bfloat16),
        "float8": jnp.asarray(numbers.normal(size=3), jnp.float8_e4m3fn),
        "scalar": jnp.asarray(numbers.normal(), jnp.bfloat16),
        "bool": jnp.asarray([True, False]),
        "int8": jnp.asarray([-3, 4], jnp.int8),
        "uint32": jnp.asarray([2**32 - 1], jnp.uint32),
        "key": jax.random.key(seed),
        "keys": jax.random.split(jax.random.key(seed, impl="rbg"), 3),
        "raw key": jax.random.PRNGKey(seed),
        "empty": jnp.zeros((0, 3)),
        "numpy": numbers.normal(size=(2, 3)).T,  # not contiguous
        "big endian": numbers.normal(size=2).astype(">f8"),
        "numpy scalar": np.float64(numbers.normal()),
        "complex": jnp.asarray([1 + 2j]),
        "numbers": {1: (seed, float("inf"), True, 0.1 + seed)},
        "1": [None, "text", jnp.tanh],
    }


def bits(leaf):
    if isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        return (str(leaf.dtype), np.asarray(jax.random.key_data(leaf)).tobytes())
    if isinstance(leaf, (jax.Array, np.ndarray, np.generic)):
        return (type(leaf), leaf.dtype, leaf.shape, np.asarray(leaf).tobytes())
    return leaf


def assert_equal(a, b):
    assert jax.tree.structure(a) == jax.tree.structure(b)
    for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True):
        assert bits(x) == bits(y)


def test_every_leaf_comes_back_bit_for_bit(tmp_path):
    tree = sample(0)
    metadata = {"step": 12, "seconds": 3.25, "stage": "main", "history": 456, "best": float("inf")}
    path = save(tmp_path / "new", tree, metadata)
    assert path.name == "checkpoint-000000012.npz"
    restored, returned, notes = load(tmp_path / "new", sample(1))
    assert_equal(eqx.filter(restored, eqx.is_array_like), eqx.filter(tree, eqx.is_array_like))
    assert returned == metadata
    assert notes == []
    assert restored["1"] == [None, "text", jnp.tanh]
    assert jax.random.key_impl(restored["keys"]) == "rbg"
    np.testing.assert_array_equal(restored["model"](jnp.ones(2)), tree["model"](jnp.ones(2)))


def test_a_bare_array_is_a_tree(tmp_path):
    save(tmp_path, jnp.arange(3), {"step": 0})
    np.testing.assert_array_equal(load(tmp_path, jnp.zeros(3, int))[0], [0, 1, 2])


def test_the_file_is_a_plain_npz_without_code(tmp_path):
    path = save(tmp_path, sample(), {"step": 1})
    with np.load(path, allow_pickle=False) as archive:
        np.testing.assert_array_equal(archive["tree['float32']"], sample()["float32"])
        assert archive["tree['bfloat16']"].dtype == np.uint16
        np.testing.assert_array_equal(
            archive["tree['bfloat16']"].view(ml_dtypes.bfloat16), np.asarray(sample()["bfloat16"])
        )
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        assert all(member.compress_type == zipfile.ZIP_STORED for member in archive.infolist())


def test_a_part_can_be_loaded_alone(tmp_path):
    save(tmp_path, {"model": sample(0), "model2": small(1), "state": small(2), "number": 3}, {"step": 1})
    assert_equal(*(eqx.filter(tree, eqx.is_array) for tree in (load(tmp_path, sample(1), "['model']")[0], sample(0))))
    assert int(load(tmp_path, small(0), "['state']")[0]["n"]) == 2
    assert load(tmp_path, 0, "['number']")[0] == 3
    with pytest.raises(CheckpointError, match=r"it lacks tree\['model2'\]\['y'\]"):
        load(tmp_path, small(0) | {"y": jnp.ones(1)}, "['model2']")
    with pytest.raises(CheckpointError, match="it lacks"):
        load(tmp_path, small(0), "['absent']")


class Pair(eqx.Module):
    part: jax.Array
    party: jax.Array


def test_a_part_is_not_mistaken_for_another_whose_name_begins_alike(tmp_path):
    save(tmp_path, Pair(jnp.zeros(2), jnp.ones(3)), {"step": 1})
    np.testing.assert_array_equal(load(tmp_path, jnp.ones(2), ".part")[0], [0, 0])
    np.testing.assert_array_equal(load(tmp_path, jnp.zeros(3), ".party")[0], [1, 1, 1])


def test_an_array_that_stands_twice_is_stored_once(tmp_path):
    once, other = jnp.arange(50_000.0), jnp.ones(50_000)
    twice = save(tmp_path, {"a": once, "b": once, "c": other}, {"step": 1})
    assert 800_000 < twice.stat().st_size < 810_000
    tree, _, _ = load(tmp_path, {"a": other, "b": other, "c": other})
    assert_equal(tree, {"a": once, "b": once, "c": other})
    np.testing.assert_array_equal(load(tmp_path, other, "['b']")[0], once)


def test_objects_are_refused(tmp_path):
    with pytest.raises(CheckpointError, match=r"tree\['x'\] has type object"):
        save(tmp_path, {"x": np.asarray([object()])}, {"step": 0})
    with pytest.raises(CheckpointError, match="cannot be stored as JSON"):
        save(tmp_path, small(0), {"step": 0, "x": object()})
    with pytest.raises(ValueError, match=r"metadata\['step'\]=None"):
        save(tmp_path, small(0), {})
    with pytest.raises(ValueError, match="keep=0 must be a positive whole number"):
        save(tmp_path, small(0), {"step": 0}, keep=0)


def fitting_problem(seed):
    def residual(model, x):
        return model(x)[0] - jnp.sin(3 * x[0])

    keys = jax.random.split(jax.random.key(seed))
    model = eqx.nn.MLP(2, 1, 5, 1, jnp.tanh, key=keys[0])
    return (dngd.Term("fit", residual),), model, {"fit": jax.random.normal(keys[1], (12, 2))}


OPTIMIZERS = [
    dngd.DualNaturalGradient(momentum=dngd.momentum.RisingMomentum()),
    Adam(1e-2),
    SGD(steps=20),
    SOAP(frequency=2),
    LBFGS(history=3),
]


@pytest.mark.parametrize("optimizer", OPTIMIZERS, ids=lambda optimizer: type(optimizer).__name__)
def test_a_run_goes_on_bit_for_bit(tmp_path, optimizer):
    terms, params, batch = fitting_problem(0)

    def run(params, state, steps):
        for _ in range(steps):
            params, state, _ = optimizer.step(params, state, terms, batch)
        return params, state

    halfway = run(params, optimizer.init(params), 4)
    save(tmp_path, halfway, {"step": 4})
    _, other, _ = fitting_problem(5)  # only its structure counts
    restored, _, _ = load(tmp_path, (other, optimizer.init(other)))
    assert_equal(eqx.filter(run(*restored, 4), eqx.is_array), eqx.filter(run(*halfway, 4), eqx.is_array))


# Which files are kept, and which is read


def test_the_last_two_are_kept(tmp_path):
    (tmp_path / "checkpoint-000000001.npz.tmp").write_bytes(b"left by a process that was killed")
    (tmp_path / "notes.txt").write_text("mine")
    for step in (5, 10, 15, 20):
        save(tmp_path, small(step), {"step": step})
    assert names(tmp_path) == ["checkpoint-000000015.npz", "checkpoint-000000020.npz", "notes.txt"]
    assert int(load(tmp_path, small(0))[0]["n"]) == 20


def test_an_abandoned_future_is_removed(tmp_path):
    # Step 20 turned out damaged, the run went on from 10: from then on 15 is the newest.
    for step in (10, 20):
        save(tmp_path, small(step), {"step": step})
    (tmp_path / "checkpoint-000000020.npz").write_bytes(b"")
    save(tmp_path, small(15), {"step": 15})
    assert names(tmp_path) == ["checkpoint-000000010.npz", "checkpoint-000000015.npz"]


def test_steps_beyond_nine_digits(tmp_path):
    for step in (999_999_999, 1_000_000_000):
        save(tmp_path, small(1), {"step": step})
    assert load(tmp_path, small(0))[1]["step"] == 1_000_000_000
