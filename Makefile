# Everything starts from python3 and make: each target brings its own environment.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
OLDEST := .venv-oldest
JOBS   ?= 2
# A file stays in one process: what it compiles, caches and sets up is made once. Their order is in conftest.py.
PYTEST := $(BIN)/python -m pytest -n $(JOBS) --dist loadfile --no-loadscope-reorder

.DEFAULT_GOAL := help
.PHONY: help env kernels reproduce test test-slow lint types imports check docs oldest wheel format bench clean

help:  ## Show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

env: $(VENV)/.ready  ## Create the environment and install the package with its tools

$(VENV)/.ready: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	@touch $@

kernels: env  ## Renew the library of kernels after sources were edited (seconds; minutes from nothing)
	$(BIN)/python -m thalweg._build

reproduce: env  ## Run the paper's experiments and write results/paper/index.html (a few minutes; can be interrupted)
	$(BIN)/thalweg reproduce --out results/paper

test: kernels  ## Run the tests (a few minutes)
	$(PYTEST)

test-slow: kernels  ## Run the slow tests too
	$(PYTEST) -m ''

lint: env  ## Style
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: env  ## Types
	$(BIN)/mypy

imports: env  ## Imports go one way
	$(BIN)/lint-imports

check: lint types imports test  ## All that CI checks

docs: env  ## Build the documentation site, site/index.html; warnings are errors, and nothing is fetched
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict

# Every direct requirement at its lowest bound, on Python 3.11 or 3.12; what those require is the newest that goes with
# them, and may warn. A sample stands for all tests: import, rounds, sets, data, commands, engines, a study, and what
# scikit-learn, river and sktime ask of estimators.
SAMPLE := README.md tests/domains/test_domains.py tests/lab/test_tables.py tests/lab/test_streams.py \
          tests/lab/test_jobs.py tests/lab/test_study.py tests/test_cli.py \
          tests/test_files.py::test_a_file_of_a_release_is_read_by_every_later_one \
          tests/estimators/test_frames.py tests/estimators/test_sklearn_checks.py tests/estimators/test_river.py \
          tests/estimators/test_river_forecaster.py tests/estimators/test_sktime.py tests/lab/test_forecast.py \
          -k 'not bench and not marker and not ctrl_c_ends and not long_runs and not progress_doubles and not over_seeds'
oldest: $(OLDEST)/.ready  ## Try the oldest versions that pyproject.toml allows
	$(OLDEST)/bin/python -m pytest -n $(JOBS) --dist loadfile -W default $(SAMPLE)

$(OLDEST)/.ready: pyproject.toml .ci/oldest.py
	$(PYTHON) -m venv --clear $(OLDEST)
	$(PYTHON) .ci/oldest.py > $(OLDEST)/requirements.txt
	$(OLDEST)/bin/python -m pip install --quiet --requirement $(OLDEST)/requirements.txt --editable .
	@touch $@

wheel:  ## Build a wheel and try it as users get it: no Numba, no compiler, read-only, no home
	PYTHON=$(PYTHON) .ci/wheel.sh

format: env  ## Rewrite the code in the project's style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: kernels  ## Speed against a C loop, side by side
	$(BIN)/python benchmarks/bench.py

clean:  ## Remove the environment and all caches
	rm -rf $(VENV) $(OLDEST) site .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
