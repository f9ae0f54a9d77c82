"""Logs of other tools, written by the tools themselves, without a network."""

import importlib.util
import subprocess
import sys

import pytest
from train import small

import dngd
from dngd.cli import main
from dngd.cli.exit_code import ExitCode
from dngd.train.loggers import scalars

ADAM = {"method": "adam", "quiet": True}
SERVICES = {"wandb": dngd.loggers.WandB, "mlflow": dngd.loggers.MLflow}
PROBLEM = small.make(name="it's ∂u/∂t")  # services are particular about letters


def stop(row, model):
    return row["step"] == 3


def test_scalars_are_numbers_under_names_that_services_take():
    row = {"loss": 0.5, "gain": None, "damping": float("nan"), "rel_l2": 0.1, "terms": {"∂u at rest": 1.0}, "step": 3}
    assert scalars(row) == {"loss": 0.5, "rel_l2": 0.1, "terms/-u at rest": 1.0}


@pytest.mark.parametrize("name", [name for name in SERVICES if importlib.util.find_spec(name) is None])
def test_a_service_that_is_not_installed_is_refused_with_the_remedy(name, capsys):
    with pytest.raises(ImportError, match=rf"pip install 'dngd\[{name}\]'"):
        SERVICES[name]()
    assert main(["solve", "heat", "--log", name]) == ExitCode.USAGE
    assert f"dngd[{name}]" in capsys.readouterr().err


def test_loggers_are_imported_when_they_are_asked_for():
    code = "import sys, dngd.train.loggers, dngd.cli.main; print(*{'wandb', 'mlflow', 'tensorboardX'} & {*sys.modules})"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    assert found.stdout.strip() == ""


@pytest.mark.filterwarnings("ignore")  # theirs
def test_mlflow_has_the_run_in_one_piece(tmp_path, monkeypatch):
    mlflow = pytest.importorskip("mlflow")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    where = (tmp_path / "mlruns").as_uri()
    whole = {"steps": 6, "out": tmp_path / "run", **ADAM}
    dngd.solve(PROBLEM, observers=[dngd.loggers.MLflow("small", where), stop], **whole)
    solution = dngd.resume(tmp_path / "run", PROBLEM, observers=[dngd.loggers.MLflow("small", where)], quiet=True)
    client = mlflow.MlflowClient(where)
    (run,) = client.search_runs([client.get_experiment_by_name("small").experiment_id])
    losses = {one.step: one.value for one in client.get_metric_history(run.info.run_id, "loss")}
    assert losses == pytest.approx({row["step"]: row["loss"] for row in solution.history})
    assert run.data.metrics["end/rel_l2"] == pytest.approx(solution.rel_l2)
    assert (run.data.params["steps"], run.data.params["optimizer.rank"]) == ("6", "None")
    assert (run.info.status, run.data.tags["dngd.outcome"]) == ("FINISHED", "steps")


def wandb_records(path):
    """The records of a log of Weights & Biases, which are in pieces (checksum, length, kind, contents) in blocks."""
    from wandb.proto.wandb_internal_pb2 import Record

    data, at, contents, block = path.read_bytes(), 7, b"", 2**15
    while at < len(data):
        if (left := block - at % block) < 7:
            at += left
            continue
        size, kind = int.from_bytes(data[at + 4 : at + 6], "little"), data[at + 6]
        contents, at = contents + data[at + 7 : at + 7 + size], at + 7 + size
        if kind in (1, 4):  # whole, or the last piece
            record, contents = Record.FromString(contents), b""
            yield record


@pytest.mark.filterwarnings("ignore")
def test_wandb_has_the_run_in_one_piece(tmp_path, monkeypatch):
    wandb = pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_CACHE_DIR", str(tmp_path / "cache"))
    patient = wandb.Settings(x_service_wait=300)  # its process may start slowly on a busy machine; 30 s else
    settings = {"project": "small", "mode": "offline", "dir": str(tmp_path), "settings": patient}
    dngd.solve(PROBLEM, steps=6, out=tmp_path / "run", observers=[dngd.loggers.WandB(**settings), stop], **ADAM)
    solution = dngd.resume(tmp_path / "run", PROBLEM, observers=[dngd.loggers.WandB(**settings)], quiet=True)
    logs = list(tmp_path.glob("wandb/offline-run-*/*.wandb"))
    assert len({path.name for path in logs}) == 1  # one identity, by which `wandb sync` puts them together
    losses, ends = {}, []
    for record in (record for path in logs for record in wandb_records(path)):
        values = {"/".join(one.nested_key) or one.key: one.value_json for one in record.history.item}
        losses |= {int(values["_step"]): float(values["loss"])} if values else {}
        ends.append({"/".join(one.nested_key) or one.key: one.value_json for one in record.summary.update})
    assert losses == pytest.approx({row["step"]: row["loss"] for row in solution.history})
    assert any((end.get("outcome"), end.get("steps")) == ('"steps"', "6") for end in ends)
