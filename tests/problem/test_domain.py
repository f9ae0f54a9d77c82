"""Regions and samplers: points lie where they should, evenly."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dngd
from dngd import Adaptive, Ball, Box, Curve, PointSet, Sampling
from dngd.problem.sampling import METHODS
from dngd.problem.view import view

KEY = jax.random.key(0)
BOX = Box(t=(0, 2), x=(-1, 1), y=(0, 4))


@pytest.mark.parametrize("method", METHODS)
def test_points_fill_the_box_evenly(method):
    points = Sampling(method).points(KEY, BOX, 4096)
    assert points.shape == (4096, 3)
    low, high = np.array(BOX.low), np.array(BOX.high)
    assert (points >= low).all()
    assert (points <= high).all()
    assert np.allclose(points.mean(axis=0), (low + high) / 2, atol=0.1)
    assert np.allclose(points.std(axis=0), (high - low) / 12**0.5, rtol=0.05)


@pytest.mark.parametrize("x64", [True, False])
def test_uniform_points_in_many_dimensions(x64):
    """Drawn another way there: single precision, two numbers from one word, in a loop over points."""
    with jax.enable_x64(x64):
        points = np.asarray(METHODS["uniform"](KEY, 23, 10_001), np.float64)  # odd, and no multiple of the loop's batch
    numbers = points.size
    assert points.shape == (23, 10_001)
    assert points.min() >= 0
    assert points.max() < 1
    for power in (1, 2, 3, 4):
        spread = (1 / (2 * power + 1) - 1 / (power + 1) ** 2) ** 0.5
        assert abs(np.mean(points**power) - 1 / (power + 1)) < 5 * spread / numbers**0.5
    for one, other in ((points[:, :-1], points[:, 1:]), (points[:-1], points[1:])):  # neighbours, and the next point
        assert abs(np.corrcoef(one.ravel(), other.ravel())[0, 1]) < 5 / numbers**0.5
    assert len(np.unique(points)) > 0.99 * numbers


@pytest.mark.parametrize("method", METHODS)
def test_clustered_points_are_dense_at_the_walls(method):
    """The distribution function of Chebyshev nodes along every axis, and on every face."""
    walls = Sampling(method, clustered=True)
    box = Box(x=(-1, 1), y=(-1, 1))
    for levels in (0.1, 0.5, 0.9):
        place = -np.cos(np.pi * levels)
        assert np.allclose((walls.points(KEY, box, 4096) < place).mean(axis=0), levels, atol=0.03)
    on_faces = np.asarray(walls.points(KEY, box.boundary(), 4096))
    for axis in (0, 1):
        for end in (-1, 1):
            face = on_faces[on_faces[:, axis] == end]
            assert abs(len(face) / 4096 - 0.25) < 0.03
            assert abs((face[:, 1 - axis] < -np.cos(np.pi * 0.1)).mean() - 0.1) < 0.04


def test_points_cluster_at_the_faces_that_are_named():
    """Half of the distribution of Chebyshev nodes at one end; other coordinates as before; faces stay faces."""
    box = Box(t=(1, 3), x=[(-1, 1)] * 2)
    plain, early = (np.asarray(Sampling(clustered=faces).points(KEY, box, 4096)) for faces in (False, "t-"))
    np.testing.assert_array_equal(early[:, 1:], plain[:, 1:])
    for level in (0.1, 0.5, 0.9):
        assert abs((early[:, 0] < 3 - 2 * np.cos(np.pi / 2 * level)).mean() - level) < 0.03
    late = np.asarray(Sampling(clustered=("t+", "x0")).points(KEY, box, 4096))
    assert abs((late[:, 0] < 1 + 2 * np.sin(np.pi / 2 * 0.1)).mean() - 0.1) < 0.03
    assert abs((late[:, 1] < -np.cos(np.pi * 0.1)).mean() - 0.1) < 0.03
    on_faces = np.asarray(Sampling(clustered="t-").points(KEY, Box(t=(0, 1), x=(0.1, 0.7)).boundary(), 1000))
    assert set(on_faces[:, 1]) == {0.1, 0.7}
    assert abs((on_faces[:, 0] < 1 - np.cos(np.pi / 4)).mean() - 0.5) < 0.05


@pytest.mark.parametrize(
    "region", [Ball(3), PointSet(np.zeros((10, 2))), Ball(3).boundary(), BOX.where(lambda x: x > 0)]
)
def test_only_boxes_have_walls_to_cluster_at(region):
    with pytest.raises(ValueError, match="clustered points are for a Box and its faces, not for a"):
        Sampling(clustered=True).points(KEY, region, 5)


def test_latin_hypercube_has_one_point_in_every_slice():
    points = Sampling("latin_hypercube").points(KEY, Box(x=(0, 1), y=(0, 1)), 64)
    for column in points.T:
        assert sorted((column * 64).astype(int).tolist()) == list(range(64))


def test_sobol_points_are_more_even_than_random_ones():
    """Error of the mean of a smooth function: about 1/N against 1/√N."""

    def error(method, key):
        points = Sampling(method).points(key, Box(x=(0, 1), y=(0, 1)), 1024)
        return abs(float(jnp.mean(jnp.prod(points, axis=1))) - 0.25)

    keys = jax.random.split(KEY, 20)
    assert np.mean([error("sobol", key) for key in keys]) < 0.1 * np.mean([error("uniform", key) for key in keys])


def test_faces_are_filled_in_proportion_to_their_area():
    faces = BOX.boundary()  # of x (2 × 4 each) and y (2 × 2 each), not of t
    points = Sampling().points(KEY, faces, 6000)
    on = {"x-": points[:, 1] == -1, "x+": points[:, 1] == 1, "y-": points[:, 2] == 0, "y+": points[:, 2] == 4}
    assert (sum(on.values()) == 1).all()
    for name, share in {"x-": 8, "x+": 8, "y-": 4, "y+": 4}.items():
        assert np.mean(on[name]) == pytest.approx(share / 24, abs=0.03)
        inside = points[on[name]]
        assert np.std(inside[:, 0]) == pytest.approx(2 / 12**0.5, rel=0.1)


@pytest.mark.parametrize(("name", "axis", "value"), [("t-", 0, 0.0), ("y+", 2, 4.0)])
def test_a_face_by_name(name, axis, value):
    points = Sampling().points(KEY, BOX.boundary((name,)), 50)
    assert (points[:, axis] == value).all()
    assert np.unique(points[:, axis - 1]).size == 50


def test_normals_point_outward():
    faces = BOX.boundary()
    for point in Sampling().points(KEY, faces, 20):
        normal = faces.normal(point)
        assert jnp.linalg.norm(normal) == 1
        outside = point + 1e-6 * normal
        assert ((outside < np.array(BOX.low)) | (outside > np.array(BOX.high))).any()
    ball = Ball(3, radius=2.0)
    point = Sampling().points(KEY, ball.boundary(), 1)[0]
    assert jnp.allclose(ball.boundary().normal(point), point / 2)


def test_one_dimensional_box_has_two_end_points():
    points = Sampling().points(KEY, Box(x=(0, 3)).boundary(), 100)
    assert set(points[:, 0].tolist()) == {0.0, 3.0}


def test_ball_is_filled_uniformly_or_along_radii():
    radii = jnp.linalg.norm(Sampling().points(KEY, Ball(3), 4000), axis=1)
    assert jnp.mean(radii**3) == pytest.approx(0.5, abs=0.02)  # uniform in volume
    radii = jnp.linalg.norm(Sampling().points(KEY, Ball(1000, radial=True), 2000), axis=1)
    assert jnp.mean(radii) == pytest.approx(0.5, abs=0.02)
    surface = Sampling().points(KEY, Ball(3, radius=2.0).boundary(), 100)
    assert jnp.allclose(jnp.linalg.norm(surface, axis=1), 2.0)


def test_mask_keeps_shape_and_evenness():
    ring = Box(x=(-1, 1), y=(-1, 1)).where(lambda x, y: (x**2 + y**2 < 1) & (x**2 + y**2 > 0.25))
    for method in METHODS:
        points = Sampling(method).points(KEY, ring, 2000)
        assert points.shape == (2000, 2)
        radii = np.hypot(*points.T)
        assert (radii < 1).all()
        assert (radii > 0.5).all()
        assert np.mean(radii**2) == pytest.approx(0.625, abs=0.02)
        assert np.unique(points, axis=0).shape == (2000, 2)  # none used twice


def test_curve_is_a_boundary_of_ones_own():
    circle = Curve(
        lambda s: jnp.array([jnp.cos(2 * jnp.pi * s[0]), jnp.sin(2 * jnp.pi * s[0])]), outward=lambda point: point
    )
    points = Sampling().points(KEY, circle, 10)
    assert jnp.allclose(jnp.linalg.norm(points, axis=1), 1.0)
    assert jnp.allclose(circle.normal(points[0]), points[0])


def test_points_of_ones_own_are_drawn_without_replacement():
    nodes = np.arange(20.0).reshape(10, 2)
    drawn = Sampling().points(KEY, PointSet(nodes), 10)
    assert sorted(map(tuple, drawn.tolist())) == sorted(map(tuple, nodes.tolist()))
    assert np.unique(Sampling().points(KEY, PointSet(nodes), 6), axis=0).shape == (6, 2)
    problem = dngd.Problem(
        domain=Box(x=(0, 20), y=(0, 20)),
        conditions={"it": dngd.Equation(lambda u: u.laplacian, points=4, on=PointSet(nodes))},
    )
    assert all(tuple(point) in set(map(tuple, nodes.tolist())) for point in problem.sample(KEY)["it"].tolist())


def test_adaptive_points_follow_the_residual():
    points = jnp.linspace(0, 1, 1000)[:, None]
    chosen, weights = Adaptive(power=2.0, floor=0.0, weighted=False).choose(KEY, points, points[:, 0], 100)
    assert chosen.shape == (100, 1)
    assert np.unique(chosen).size == 100
    assert jnp.mean(chosen) > 0.65  # ∝ x²: mean ¾; uniform: ½
    np.testing.assert_array_equal(weights, 1.0)
    even, _ = Adaptive(power=1.0, floor=1e6).choose(KEY, points, points[:, 0], 100)
    assert jnp.mean(even) == pytest.approx(0.5, abs=0.1)


def test_weights_of_adaptive_points_leave_the_loss_as_it_is():
    """On average over draws the weighted mean square is that of all candidates, and varies less than a plain one."""
    points = jax.random.uniform(jax.random.key(1), (1000, 1))
    residual = 0.01 + jnp.exp(-((points[:, 0] - 0.5) ** 2) / 2e-4)  # most of it in a fortieth of the interval
    squares = residual**2

    def adaptive(key):
        chosen, weights = Adaptive().choose(key, points, residual, 100)
        places = jnp.argmin(jnp.abs(points - chosen[:, 0]), axis=0)
        return jnp.mean(weights * squares[places])

    keys = jax.random.split(KEY, 2000)
    found = jax.lax.map(adaptive, keys)
    plain = jax.lax.map(lambda key: jnp.mean(jax.random.choice(key, squares, (100,), replace=False)), keys)
    truth, error = float(jnp.mean(squares)), float(jnp.std(found)) / math.sqrt(len(keys))
    assert float(jnp.mean(found)) == pytest.approx(truth, abs=4 * error)
    assert jnp.std(found) < 0.4 * jnp.std(plain)


@pytest.mark.usefixtures("as_users_run_it")
@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Box(), "no coordinates"),
        (lambda: Box(x=(1, 0)), "low end comes first"),
        (lambda: Box(x=[(0, 1, 2)]), "neither an interval"),
        (lambda: BOX.boundary(("z-",)), "unknown coordinate 'z'"),
        (lambda: BOX.boundary(("x*",)), "face 'x\\*'"),
        (lambda: Ball(0), "dimension=0"),
        (lambda: Ball(3).boundary(("x-",)), "one boundary"),
        (lambda: Ball(3).pair("x"), "a Ball has none"),
        (lambda: BOX.where(lambda z: z > 0), "unknown name 'z'"),
        (lambda: BOX.where(lambda x: x > 5), "0.00% of the box"),
        (lambda: BOX.where(lambda x: x > 0).boundary(), "boundary of a masked box"),
        (lambda: BOX.where(lambda x: x > 0).pair("x"), "masked"),
        (lambda: BOX.where(lambda x: x > 0).boundary(("x-",)), "0.00% of the faces x-; .* write >="),
        (lambda: Sampling("sobolev"), "did you mean 'sobol'"),
        (lambda: Sampling(every=0), "every=0"),
        (lambda: Sampling(clustered="z-").points(KEY, BOX, 5), "face 'z-': unknown coordinate 'z'"),
        (lambda: Adaptive(candidates=1), "candidates=1"),
        (lambda: Adaptive(power=0.0), "ignores the residual"),
        (lambda: Sampling("sobol").points(KEY, Ball(30_000), 2), "Sobol points exist"),
        (lambda: BOX.normal(jnp.zeros(3)), "no outward normal"),
        (lambda: Curve(lambda s: s).normal(jnp.zeros(1)), "no outward normal"),
        (lambda: PointSet(np.zeros(3)), "must have shape"),
        (lambda: PointSet([[np.nan]]), "not finite"),
        (lambda: Sampling().points(KEY, PointSet([[1.0]]), 2), "points=2 exceeds the 1"),
    ],
)
def test_bad_regions_are_refused(make, message):
    with pytest.raises((ValueError, TypeError), match=message):
        make()


def test_group_of_coordinates():
    box = dngd.Box(t=(0, 1), x=[(0, 1)] * 3)
    assert box.coordinates.axes == ("t", "x0", "x1", "x2")
    assert len(box.boundary().faces) == 6


@pytest.mark.parametrize(
    ("domain", "inside"),
    [
        (Box(x=(-1, 1), y=(-1, 1)), lambda x, y: np.ones_like(x, bool)),
        (Box(x=(-1, 1), y=(-1, 1)).where(lambda x, y: x**2 + y**2 > 0.1), lambda x, y: x**2 + y**2 > 0.1),
        (Ball(2), lambda x, y: x**2 + y**2 <= 1),
    ],
)
def test_views_show_the_domain_and_nothing_else(domain, inside):
    problem = dngd.Problem(
        domain=domain,
        conditions={"it": dngd.Equation(lambda u: u.laplacian)},
        reference=dngd.Reference(lambda points: points[:, 0] ** 2, batched=True),
    )
    seen = view(problem, lambda point: point[:1], sizes=(20, 30))  # no point lies on the rim
    expected = inside(*np.meshgrid(*seen.axes, indexing="ij"))
    for values in (seen.prediction, seen.reference):
        assert (np.isfinite(values[..., 0]) == expected).all()


def test_faces_of_a_masked_box_are_masked():
    cylinder = Box(t=(0, 1), x=(-1, 1), y=(-1, 1)).where(lambda x, y: x**2 + y**2 < 1)
    start = jax.jit(lambda key: dngd.Initial(0.0, sampling=Sampling()).draw(key, cylinder, 2000))(KEY)
    assert (start[:, 0] == 0).all()
    assert (np.hypot(*start[:, 1:].T) < 1).all()
    assert np.mean(start[:, 1] ** 2) == pytest.approx(0.25, abs=0.02)  # evenly in the disc
    corner = Box(x=(-1, 1), y=(-1, 1)).where(lambda x, y: (x > 0) | (y > 0)).boundary(("x-",))
    points = Sampling().points(KEY, corner, 500)
    assert (points[:, 1] > 0).all()
    assert jnp.allclose(corner.normal(points[0]), jnp.array([-1.0, 0.0]))


@pytest.mark.parametrize("region", [Box(x=[(0, 1)] * 1000), Box(x=[(0, 1)] * 1000).boundary()])
def test_points_in_many_dimensions_have_the_working_precision(region):
    assert Sampling().points(KEY, region, 3).dtype == jnp.float64


def test_what_stays_as_it_is_along_a_coordinate_is_known():
    def circle(angle):
        return 0.3 * jnp.cos(2 * jnp.pi * angle), 0.3 * jnp.sin(2 * jnp.pi * angle)

    box = dngd.Box(t=(0, 2), x=(-1, 1), y=(-1, 1))
    stays = {
        "the box": (box, True),
        "its walls": (box.boundary(("x", "y-")), True),
        "its start": (box.boundary(("t-",)), False),
        "a hole": (box.where(lambda x, y: x**2 + y**2 > 0.09), True),
        "a hole that grows": (box.where(lambda t, x, y: x**2 + y**2 > 0.01 * t), False),
        "walls beside a hole": (box.where(lambda x, y: x + y < 1.5).boundary(("x",)), True),
        "its rim": (dngd.Curve(lambda s: jnp.stack([2 * s[1], *circle(s[0])]), dimension=2), True),
        "a rim that moves": (dngd.Curve(lambda s: jnp.stack([2 * s[1], s[1], s[0]]), dimension=2), False),
        "a rim at one time": (dngd.Curve(lambda s: jnp.stack([0 * s[0], *circle(s[0])])), False),
        "points": (dngd.PointSet(np.zeros((3, 3))), False),
    }
    assert {name: region.extends_along(0) for name, (region, _) in stays.items()} == {
        name: expected for name, (_, expected) in stays.items()
    }
