"""The tutorials run to their end in a kernel of their own, and what they say about their results is true."""

from pathlib import Path

import jupytext
import nbclient
import nbformat
import pytest

FOLDER = Path(__file__).parents[1] / "docs" / "notebooks"
NOTEBOOKS = {path.stem: path for path in sorted(FOLDER.glob("*.md")) if path.stem != "index"}
QUICK = {"own_residual", "scaling_out"}  # those that compile little; the others are left to `make test-thorough`
HOLDS = {
    "first_pde": "difference < 1e-3 and solution.estimate < 1e-2",
    "own_residual": "our_losses[-1] < 1e-10 and error['ours'] < 1e-4 < error['Adam']",
    "inverse": """all(
        abs(solution.coefficients[name] - value) < error and 0.5 < solution.standard_errors[name] / error < 2
        for name, value, error in zip(("friction", "stiffness"), best, np.sqrt(np.diag(covariance)))
    )""",
    "geometry": "abs(sum(charges.values())) < 0.05 * charges['flower'] and solution.estimate < 0.05",
    "parameters": "max(one['rel_l2'] for one in solution.error_range) < 1e-2 and abs(peak(eps)) < 1e-6",
    "diagnostics": "solution.rel_l2 < 1e-3 and {plan.solver for plan in plans} == {'dense', 'primal'}",
    "high_dimension": "solution.rel_l2 < 0.05 and solution.estimate < 0.5",
    "scaling_out": "np.allclose(one, four, rtol=1e-6) and len(jax.devices()) == 4",
}


def test_there_are_eight():
    assert NOTEBOOKS.keys() == HOLDS.keys()


@pytest.mark.filterwarnings("ignore")  # of nbclient and its event loop
@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.slow] * (name not in QUICK)) for name in HOLDS])
def test_runs_to_its_end(name, tmp_path, monkeypatch):
    monkeypatch.setenv("MPLBACKEND", "module://matplotlib_inline.backend_inline")
    notebook = jupytext.read(NOTEBOOKS[name])
    notebook.cells.append(nbformat.v4.new_code_cell(f"assert {HOLDS[name]}"))
    client = nbclient.NotebookClient(
        notebook, timeout=600, startup_timeout=300, resources={"metadata": {"path": str(tmp_path)}}
    )
    client.execute()
    shown = [output["data"] for cell in notebook.cells for output in cell.get("outputs", []) if "data" in output]
    assert any("image/png" in data for data in shown), "no figure"
