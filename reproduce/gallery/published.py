"""The smallest published errors that we know of for problems of the gallery, and how far we trust them."""

from typing import NamedTuple


class Published(NamedTuple):
    """A relative L² error, who reached it, in how many seconds, and where we have it from.

    `trust` is P where we read the code, the log or the text ourselves, and S where we saw it quoted in a summary.
    """

    error: float
    by: str
    seconds: float | None
    trust: str
    note: str = ""

    def __str__(self):
        time = "" if self.seconds is None else f", {self.seconds:,.0f} s"
        note = f", {self.note}" if self.note else ""
        return f"{self.error:.1e} ({self.by}{time}{note}; {self.trust})"


BEST: dict[str, Published] = {
    "transport100": Published(6.9e-4, "JAX-PI", None, "P"),
    "wave": Published(1e-15, "DSGNAR", 635, "S"),
    "kdv": Published(8e-11, "DSGNAR", 1210, "S", "H100"),
    "burgers_plain": Published(1.6e-8, "SSBroyden", 2900, "S"),
    "burgers_wide": Published(1.9e-12, "DSGNAR", 144, "P", "H100"),
    "burgers_front": Published(5.8e-7, "natural gradient", 75, "S"),
    "allen_cahn_plain": Published(9.4e-7, "SSBroyden", None, "S"),
    "gray_scott": Published(8.4e-4, "Scale-PINN", 678, "P"),
    "kuramoto_sivashinsky": Published(5e-7, "DSGNAR", 5200, "S", "eight time slabs"),
    "kovasznay_plain": Published(5.2e-7, "D-NGD", 3000, "P", "A100"),
    "cavity3200": Published(1.7e-2, "Scale-PINN", 85, "P"),
    "cavity7500": Published(3.0e-2, "Scale-PINN", 146, "P"),
    "helmholtz14": Published(2e-9, "SPRING", 540, "S"),
    "multiscale": Published(4e-14, "DSGNAR", 281, "S", "modes 4 to 16"),
}
"""By the name of the problem; those without an entry have none that is known to us."""
