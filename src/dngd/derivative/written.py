"""Expressions as people write them, in HTML: `u_t − 0.1 u_xx` with subscripts, brackets only where they are needed."""

import html
import math
from dataclasses import dataclass

SUM, QUOTIENT, PRODUCT, POWER, ATOM = range(5)
"""How tightly the outermost operation binds."""

GREEK = {
    "alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "epsilon": "ε", "zeta": "ζ", "eta": "η", "theta": "θ",
    "kappa": "κ", "lambda": "λ", "mu": "μ", "nu": "ν", "xi": "ξ", "pi": "π", "rho": "ρ", "sigma": "σ", "tau": "τ",
    "phi": "φ", "chi": "χ", "psi": "ψ", "omega": "ω", "lam": "λ",
}  # fmt: skip

DIGITS = 6
"""Of numbers that are none of those that people write."""


@dataclass(frozen=True)
class Written:
    """An expression: its HTML without a leading minus, how tightly it binds, and its value if it is a number."""

    text: str
    level: int = ATOM
    negative: bool = False
    value: float | None = None

    @classmethod
    def of(cls, value: "Written | float") -> "Written":
        return value if isinstance(value, Written) else number(float(value))

    @property
    def html(self) -> str:
        return f"−{self.text}" if self.negative else self.text

    def inside(self, level: int) -> str:
        """As an operand of something that binds this tightly."""
        alone = self.level >= level and not self.negative
        return self.html if alone else f"({self.html})"

    def __neg__(self):
        if self.value is not None:
            return number(-self.value)
        if self.level == SUM:  # which has no sign of its own
            return Written(f"({self.text})", PRODUCT, True)
        return Written(self.text, self.level, not self.negative)

    def __add__(self, other):
        other = Written.of(other)
        if self.value is not None and other.value is not None:
            return number(self.value + other.value)
        if self.value == 0 or other.value == 0:
            return other if self.value == 0 else self
        return Written(f"{self.html} {'−' if other.negative else '+'} {other.text}", SUM)

    def __radd__(self, other):
        return Written.of(other) + self

    def __sub__(self, other):
        return self + -Written.of(other)

    def __mul__(self, other):
        first, second = self, Written.of(other)
        if first.value is not None and second.value is not None:
            return number(first.value * second.value)
        if second.value is not None:
            first, second = second, first
        if first.value is not None and abs(first.value) in (0, 1):
            return number(0.0) if first.value == 0 else second if first.value == 1 else -second
        if second.text[:1].isdigit() and second.level >= PRODUCT and not first.text[:1].isdigit():
            first, second = second, first
        texts = [part.text if part.level >= PRODUCT else f"({part.text})" for part in (first, second)]
        if first.text == second.text and first.level == ATOM:
            text, level = f"{first.text}<sup>2</sup>", POWER
        else:
            text, level = (" · " if texts[1][:1].isdigit() else " ").join(texts), PRODUCT
        return Written(text, level, first.negative != second.negative)

    def __rmul__(self, other):
        return Written.of(other) * self

    def __truediv__(self, other):
        other = Written.of(other)
        if other.value == 1:
            return self
        if self.value is not None and other.value:
            return number(self.value / other.value)
        upper = self.text if self.level >= PRODUCT else f"({self.text})"
        lower = other.text if other.level >= POWER else f"({other.text})"
        return Written(f"{upper} / {lower}", QUOTIENT, self.negative != other.negative)

    def __pow__(self, other):
        other = Written.of(other)
        if self.value is not None and other.value is not None:
            return number(self.value**other.value)
        if other.value == 1:
            return self
        return Written(f"{self.inside(ATOM)}<sup>{other.html}</sup>", POWER)


def name(text: str) -> Written:
    """A coordinate, field or constant."""
    return Written(f"<i>{_letters(text)}</i>")


def derivative(field: str, axes: tuple[str, ...]) -> Written:
    """A field with its derivatives as subscripts."""
    if not axes:
        return name(field)
    between = "" if all(len(_letters(axis)) == 1 for axis in axes) else ","
    return Written(f"<i>{_letters(field)}</i><sub>{between.join(_letters(axis) for axis in axes)}</sub>")


def laplacian(field: str) -> Written:
    return Written(f"Δ<i>{_letters(field)}</i>", POWER)


def function(named: str, *arguments: Written) -> Written:
    """A function of expressions; of numbers, the number."""
    exact = getattr(math, {"√": "sqrt"}.get(named, named), None)
    if exact is not None and all(one.value is not None for one in arguments):
        return number(float(exact(*(one.value for one in arguments))))
    return Written(f"{named}({', '.join(Written.of(one).html for one in arguments)})")


def relation(sign: str, left: Written, right: Written) -> Written:
    return Written(f"{left.html} {sign} {right.html}", SUM)


def number(value: float) -> Written:
    """As people write it: with π where it is a plain multiple of a power of it."""
    size, negative = abs(value), value < 0
    for power in (0, 1, 2, -1, -2):
        factor = size / math.pi**power
        plain = float(f"{factor:.4g}") if math.isfinite(factor) else factor
        if power and (not 1e-4 <= plain <= 1e4 or plain != float(f"{plain:.3g}")):
            continue
        if size and abs(plain - factor) <= 4e-16 * factor:
            pi = "" if not power else "π" if abs(power) == 1 else "π<sup>2</sup>"
            if power < 0:
                return Written(f"{_decimal(plain)} / {pi}", QUOTIENT, negative, value)
            if power and plain == 1:
                return Written(pi, ATOM if power == 1 else POWER, negative, value)
            return Written(f"{_decimal(plain)} {pi}".strip(), PRODUCT if power else ATOM, negative, value)
    rounded = float(f"{size:.{DIGITS}g}") != size
    return Written(_decimal(size, "…" * rounded), ATOM, negative, value)


def _decimal(value: float, after: str = "") -> str:
    mantissa, _, exponent = f"{value:.{DIGITS}g}".partition("e")
    if not exponent:
        return mantissa + after
    power = f"10<sup>{str(int(exponent)).replace('-', '−')}</sup>"
    return power if mantissa + after == "1" else f"{mantissa}{after}·{power}"


def _letters(text: str) -> str:
    """A name, Greek where it is that of a Greek letter, with its number below."""
    base, digits = text.rstrip("0123456789"), text[len(text.rstrip("0123456789")) :]
    return GREEK.get(base, html.escape(base)) + (digits and digits.translate(str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")))
