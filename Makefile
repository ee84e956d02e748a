# Everything a developer runs. `make help` lists it.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
# Test processes: many tests wait for others more than they compute.
TESTERS ?= $(shell echo $$(( 2 * $$(nproc) )))
# Real processes may miss a test's deadline on a busy machine: what fails in company must pass alone.
LOWEST := tests/unit tests/cli tests/daemon tests/aws/test_cloud_adapter.py tests/aws/test_associations_command.py
ALONE  := --last-failed --last-failed-no-failures none

.DEFAULT_GOAL := help
.PHONY: help setup check test test-lowest bench bench-daemon bench-window crash slurm simulate simulate-defects demo

help: ## Show this list
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(VENV)/.ready ## Make the virtual environment with everything in it

$(VENV)/.ready: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --upgrade 'pip>=25.1'
	$(BIN)/pip install --quiet --editable . --group test
	touch $@

check: setup ## Lint, types and floors
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

test: check ## The whole test suite
	$(BIN)/pytest -n $(TESTERS) || $(BIN)/pytest $(ALONE)

test-lowest: ## The test suite with the oldest versions that pyproject.toml allows
	$(PYTHON) -m venv $(VENV)-lowest
	$(VENV)-lowest/bin/pip install --quiet --upgrade 'pip>=25.1' uv
	VIRTUAL_ENV=$(VENV)-lowest $(VENV)-lowest/bin/uv pip install --quiet --resolution lowest-direct --editable . --group test
	$(VENV)-lowest/bin/pytest -n $(TESTERS) $(LOWEST) || $(VENV)-lowest/bin/pytest $(ALONE) $(LOWEST)

slurm: setup ## Measure on a real Slurm: delay, 200 jobs for one dataset, kill -9 at 30 points (as root)
	$(BIN)/python tests/slurm/measure.py

crash: setup ## Kill the daemon's core 200 times over a simulated FSx
	$(BIN)/python tests/crash/run.py

SEEDS ?= 10000

simulate: setup ## Simulate hours of warming, seed after seed: all promises are kept (SEEDS=10000)
	$(BIN)/python tests/dst/simulate.py --seeds $(SEEDS)

simulate-defects: setup ## Show that the simulation can fail: each planted defect, and the first seed that catches it
	$(BIN)/python tests/dst/defects.py

bench: setup ## Measure: processes, memory, speed, time against the lower bound (and write bench.json)
	$(BIN)/python tests/bench/run.py --json bench.json

bench-daemon: setup ## Measure what the daemon bears: waiting clients, submissions, many jobs for the same files, rest
	$(BIN)/python tests/bench/daemon.py

bench-window: setup ## Measure the adaptive window against the best fixed one
	$(BIN)/python tests/bench/window.py

demo: setup ## Show it on a simulated FSx, beside the usual one-liner, and what a training gains
	$(BIN)/python -m fsxwarm.sim.demo
	$(BIN)/python tests/bench/epochs.py
