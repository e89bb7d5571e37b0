# Everything starts from python3 and make: each target brings its own environment.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
JOBS   ?= 2
# A file stays in one process: what it compiles, caches and sets up is made once. Their order is in conftest.py.
PYTEST := $(BIN)/python -m pytest -n $(JOBS) --dist loadfile --no-loadscope-reorder

.DEFAULT_GOAL := help
.PHONY: help env reproduce test test-slow lint types imports check format bench clean

help:  ## Show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

env: $(VENV)/.ready  ## Create the environment and install the package with its tools

$(VENV)/.ready: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	@touch $@

reproduce: env  ## Run the paper's experiments and write results/paper/index.html (a few minutes; can be interrupted)
	$(BIN)/thalweg reproduce --out results/paper

test: env  ## Run the tests (a few minutes)
	$(PYTEST)

test-slow: env  ## Run the slow tests too
	$(PYTEST) -m ''

lint: env  ## Style
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: env  ## Types
	$(BIN)/mypy

imports: env  ## Imports go one way
	$(BIN)/lint-imports

check: lint types imports test  ## All that CI checks

format: env  ## Rewrite the code in the project's style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: env  ## Speed against a C loop, side by side
	$(BIN)/python benchmarks/bench.py

clean:  ## Remove the environment and all caches
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
