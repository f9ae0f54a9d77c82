# `make demo` and `make test` work from a bare clone with Python 3.11 or newer.
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/installed

.PHONY: install demo test test-thorough test-cluster attack lint bench docs dist

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	@touch $(STAMP)

install: $(STAMP)

demo: install
	$(BIN)/dngd solve kovasznay --seconds 60

test: install
	$(BIN)/python -m pytest

test-thorough: install
	DNGD_EXAMPLES=20 $(BIN)/python -m pytest -m 'not cluster'

# Starts a Slurm of one node for itself: apt-get install slurm-wlm. A quarter of an hour on a busy core
test-cluster: install
	$(BIN)/python -m pytest -n 0 -m cluster tests/cluster

# Hundreds of bad inputs and damaged run directories, then runs that are killed at random: ten minutes on a free core
attack: install
	$(BIN)/python benchmarks/attack
	$(BIN)/python benchmarks/kills.py

lint: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/basedpyright --project pyproject.toml

bench: install
	$(BIN)/python benchmarks/gram.py
	$(BIN)/python benchmarks/large_network.py
	$(BIN)/python benchmarks/derivative.py
	$(BIN)/python benchmarks/pcg.py
	$(BIN)/python benchmarks/trainer.py
	$(BIN)/python benchmarks/compile.py
	$(BIN)/python benchmarks/step.py
	$(BIN)/python benchmarks/time_to_error.py

.venv/docs: $(STAMP)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[docs]'
	@touch .venv/docs

docs: .venv/docs
	$(BIN)/sphinx-build --quiet --fail-on-warning --keep-going --fresh-env docs site  # tutorials run once, then come from .cache
	@echo "open site/index.html"

dist: install
	$(BIN)/python -m build --outdir dist
