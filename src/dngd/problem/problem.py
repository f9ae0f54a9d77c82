"""`Problem`: a domain, fields, conditions and what is known about the solution."""

import copy
import dataclasses
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PRNGKeyArray

from dngd import check
from dngd.check import unknown
from dngd.derivative.names import sized
from dngd.network import MLP
from dngd.problem.accuracy import Errors, Evaluator, Reference, predict_many
from dngd.problem.condition import Condition
from dngd.problem.display import problem_html
from dngd.problem.domain import Domain
from dngd.problem.given_points import read_points
from dngd.problem.model import Model
from dngd.problem.parameters import with_parameters
from dngd.problem.preset import check_preset
from dngd.problem.sampling import Sampling
from dngd.problem.sense import check_sense
from dngd.problem.setting import Setting
from dngd.problem.stage import Stage, continued
from dngd.term import Term

DEFAULT_HIDDEN = (50, 50, 50, 50)
"""Layers of the network of a problem that does not bring one."""


@dataclasses.dataclass(frozen=True, eq=False)
class Problem:
    """What is to be solved.

    **Arguments:**

    - `domain`: `dngd.Box`, `dngd.Ball`, or `Box(…).where(…)`.
    - `conditions`: by name: the equation (`dngd.Equation`), boundary and initial conditions, data.
    - `fields`: name or names of the unknown functions, or a mapping from names to sizes for vector fields.
    - `network`: `key -> network`, a callable of one point in the problem's units. If not given, a network is chosen
      that sees coordinates and fields in units of their own, and is periodic where `dngd.Periodic` asks for it.
    - `constants`: numbers that conditions may take by name, and that stages may change.
    - `parameters`: ranges of numbers that conditions may take by name, `{"nu": (0.001, 0.1)}`, or with "log" as a third
      entry where the logarithm counts. One network solves the problem for all values:
      `solution.predict(points, nu=0.01)`. Parameters are inputs of the network, but not of space: Laplacian, normal
      and faces are without them.
    - `coefficients`: unknown numbers of the equation with their first guesses, found along with the solution.
    - `reference`: the true solution if it is known: a function by name, or a `dngd.Reference`.
    - `continuation`: a constant that is taken to its value in steps, from a hundred times as much
      (`"viscosity"`), or from a value that is given (`{"reynolds": 100}`).
    - `stages`: easier versions to train on first, for a continuation of your own.
    - `name`, `description`: for directories, figures and reports.
    - `presets`: by name, mappings of settings of `dngd.Config` to start from: `{"default": {"seconds": 30.0}}`.

    **Example:**

    ```python
    problem = dngd.Problem(
        domain=dngd.Box(t=(0, 1), x=(0, 1)),
        conditions={
            "heat": dngd.Equation(lambda u: u.t - 0.1 * u.xx),
            "ends": dngd.Dirichlet(0.0),
            "start": dngd.Initial(lambda x: jnp.sin(jnp.pi * x)),
        },
    )
    ```
    """

    domain: Domain
    conditions: Mapping[str, Condition]
    fields: Mapping[str, int] | Iterable[str] | str = ("u",)
    network: Callable[[PRNGKeyArray], Callable] | None = None
    constants: Mapping[str, float] = dataclasses.field(default_factory=dict)
    parameters: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    coefficients: Mapping[str, float] = dataclasses.field(default_factory=dict)
    reference: Reference | Callable | None = None
    continuation: str | Mapping[str, float] | None = None
    stages: tuple[Stage, ...] = ()
    presets: Mapping[str, Mapping[str, Any]] = dataclasses.field(default_factory=dict)
    name: str = "problem"
    description: str = ""
    _evaluators: dict[str, Evaluator] = dataclasses.field(default_factory=dict, init=False, repr=False)

    def __post_init__(self):
        if not isinstance(self.domain, Domain):
            raise TypeError(f"domain={self.domain!r} is not a domain; pass dngd.Box(x=(0, 1)) or dngd.Ball(3)")
        self._set(domain=with_parameters(self.domain, self.parameters), fields=self.sizes)
        if not isinstance(self.conditions, Mapping) or not self.conditions:
            raise ValueError("conditions must be a mapping from names to conditions, at least the equation")
        for name, condition in self.conditions.items():
            _check_condition(name, condition)
        _check_distinct(
            coordinate=self.domain.space.coordinates.names,
            parameter=self.parameters,
            field=self.fields,
            constant=self.constants,
            coefficient=self.coefficients,
        )
        if self.continuation is not None:
            if self.stages:
                raise ValueError("continuation and stages are two ways to say the same; give one of them")
            self._set(stages=continued(self.constants, self.continuation))
        for stage in self.stages:
            for name in stage.constants:
                if name not in self.constants:
                    raise ValueError(f"Stage {stage.name!r}: " + unknown("constant", name, self.constants or ["none"]))
        for name, preset in self.presets.items():
            check_preset(name, preset, self.conditions)
        self.terms()  # finds misspelt names now rather than when training starts
        check_sense(self)
        self._set(conditions={name: self._filled(condition) for name, condition in self.conditions.items()})
        _ = self.evaluator

    def _set(self, **parts: Any) -> None:
        """Set fields of the frozen problem while it is being made."""
        for name, value in parts.items():
            object.__setattr__(self, name, value)

    def _repr_html_(self) -> str:
        """Show domain, equations and conditions in a notebook."""
        return problem_html(self)

    def _filled(self, condition: Condition) -> Condition:
        """Fill in what a condition leaves open: the number of points, and how they are drawn."""
        parts: dict[str, Any] = {}
        if condition.points is None:
            parts["points"] = condition.default_points(self.setting())
        if condition.sampling is None:
            parts["sampling"] = condition.default_sampling(self.domain) if self.network is None else Sampling()
        return dataclasses.replace(condition, **parts) if parts else condition

    @property
    def sizes(self) -> dict[str, int]:
        """Number of components of each field."""
        return sized((self.fields,) if isinstance(self.fields, str) else self.fields, "field")

    @property
    def output_names(self) -> list[str]:
        """One name for each output of the network."""
        return [name if size == 1 else f"{name}{i}" for name, size in self.sizes.items() for i in range(size)]

    def setting(self, constants: Mapping[str, float] | None = None) -> Setting:
        """Collect what conditions need to know; `constants` replace the problem's."""
        values = dict(self.constants) | dict(constants or {})
        return Setting(self.domain, self.sizes, _arrays(values), _arrays(self.coefficients))

    def init(self, key: PRNGKeyArray) -> Model:
        """Make a new network, with the first guesses of the coefficients."""
        dimension, size = self.domain.dimension, sum(self.sizes.values())
        # Ours is for loops of one's own; dngd.solve takes another (dngd.problem.formulation).
        network = MLP((dimension, *DEFAULT_HIDDEN, size), key=key) if self.network is None else self.network(key)
        try:
            shape = jax.eval_shape(network, jax.ShapeDtypeStruct((dimension,), jnp.result_type(float))).shape
        except (ValueError, TypeError) as error:
            names = ", ".join(self.domain.coordinates.axes)
            raise _about(f"network, whose input is a point of {dimension} coordinates ({names})", error) from error
        if shape != (size,) and not (size == 1 and shape == ()):
            raise ValueError(
                f"the network returns shape {shape} for a point of {dimension} coordinates, but the "
                f"fields {', '.join(self.fields)} need ({size},)"
            )
        return Model(network, _arrays(self.coefficients))

    def terms(
        self, constants: Mapping[str, float] | None = None, weights: Mapping[str, Any] | None = None
    ) -> tuple[Term, ...]:
        """Make one term for each condition."""
        setting = self.setting(constants)
        terms = []
        for name, condition in self.conditions.items():
            try:
                residual = condition.residual(setting)
            except (ValueError, TypeError, AttributeError, ArithmeticError) as error:
                raise _about(f"condition {name!r}", error) from error
            weight = condition.weight if weights is None else weights[name]
            terms.append(Term(name, residual, weight))
        return tuple(terms)

    def sample(self, key: PRNGKeyArray, step: int | Array = 0) -> dict[str, Any]:
        """Draw the points of a step for every condition; adaptive ones as if the residual were constant."""
        return {name: self.draw(name, key, step, condition.count) for name, condition in self.conditions.items()}

    def draw(self, name: str, key: PRNGKeyArray, step: int | Array, count: int) -> Any:
        """Draw `count` points of one condition; steps of the same draw get the same ones."""
        condition = self.conditions[name]
        place = list(self.conditions).index(name)
        number = condition.drawing.draw_number(step)
        try:
            return condition.draw_in_turn(jax.random.fold_in(key, place), number, self.domain, count)
        except ValueError as error:
            raise ValueError(f"condition {name!r}: {error}") from error

    @property
    def evaluator(self) -> Evaluator | None:
        """What measures errors; None without a reference."""
        if self.reference is None:
            return None
        reference = self.reference if isinstance(self.reference, Reference) else Reference(self.reference)
        # One for each precision: it holds constants and true values as arrays.
        precision = jnp.result_type(float).name
        if precision not in self._evaluators:
            try:
                self._evaluators[precision] = Evaluator(reference, self.setting())
            except (ValueError, TypeError) as error:
                raise _about("reference", error) from error
        return self._evaluators[precision]

    def errors(self, model: Callable, quick: bool = False) -> Errors:
        """Compute relative errors on the test points."""
        if self.evaluator is None:
            raise ValueError(f"problem {self.name!r} has no reference; give it one to measure errors")
        return self.evaluator.errors(model, quick)

    def predict(self, model: Callable, points: Any, **parameters: Any) -> np.ndarray:
        """Evaluate the fields at points: `(N, fields)`. Points are an array `(N, d)`, or coordinates by name; give
        parameters by name, or as further columns."""
        return predict_many(model, read_points(self.domain, points, parameters))

    def with_points(self, counts: Mapping[str, int]) -> "Problem":
        """Return the problem with other numbers of points."""
        conditions = dict(self.conditions)
        for name, count in counts.items():
            if name not in conditions:
                raise ValueError("points: " + unknown("condition", name, conditions))
            check.count(f"points[{name!r}]", count)
            conditions[name] = dataclasses.replace(conditions[name], points=count)
        return self.replaced(conditions=conditions)

    def replaced(self, **parts: Any) -> "Problem":
        """Return the problem with other parts, which are not checked again."""
        other = copy.copy(self)
        other._set(**parts)
        return other


def _about(what: str, error: Exception) -> Exception:
    """Return the error with a word on where it happened; errors of JAX, whose constructors differ, are reworded."""
    if isinstance(error, jax.errors.JAXTypeError):
        return TypeError(
            f"{what}: its function is traced by JAX, which does not know numbers yet; write jnp.where instead of "
            f"if, and jax.numpy instead of numpy or math ({_first_line(error)})"
        )
    kind = next((kind for kind in (AttributeError, TypeError) if isinstance(error, kind)), ValueError)
    return kind(f"{what}: {error}")


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0].strip()


def _check_condition(name: str, condition: Condition) -> None:
    if not isinstance(name, str) or not name:
        raise TypeError(f"the condition name {name!r} must be a non-empty string")
    if not isinstance(condition, Condition):
        raise TypeError(
            f"condition {name!r} is {condition!r}; pass dngd.Equation, Dirichlet, Neumann, Robin, Periodic, Initial "
            "or Data"
        )
    if condition.points is not None:
        check.count(f"condition {name!r}: points", condition.points, hint="or leave it out")
    if condition.drawing.adaptive is not None and condition.given is not None:
        raise ValueError(
            f"condition {name!r}: adaptive points are chosen among new ones, and these are given; leave adaptive out"
        )
    if np.ndim(condition.weight):
        raise ValueError(
            f"condition {name!r}: weight of shape {np.shape(condition.weight)} must be one number, since points change "
            "from step to step; multiply the equation by the root of a function of the coordinates instead"
        )
    Term(name, lambda params, point: point, condition.weight)  # checks the weight


def _check_distinct(**kinds: Iterable[str]) -> None:
    seen: dict[str, str] = {}
    for kind, names in kinds.items():
        for name in names:
            if name in seen:
                raise ValueError(f"{name!r} is both a {seen[name]} and a {kind}; rename one")
            seen[name] = kind


def _arrays(values: Mapping[str, float]) -> dict[str, Array]:
    read = {name: value if isinstance(value, jax.Array) else check.array(name, value) for name, value in values.items()}
    return {name: jnp.asarray(value, float) for name, value in read.items()}
