# Every target does its own set-up: a virtual environment inside the checkout.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: help setup demo test check format bench campaign mutants paper results clean
.DEFAULT_GOAL := help

help:  ## Show this list
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 10

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

setup: $(READY)  ## Install everything into .venv

demo: $(READY)  ## Measure the paper's Omniglot row, sort photographs, show both on a page
	$(BIN)/protorect demo

# One process per core, each with one thread: faster than several threads on such small tensors.
test: $(READY)  ## Run all tests and the examples of the public names
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto

check: $(READY)  ## Lint, formatting and types; edits nothing
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(READY)  ## Format and fix what can be fixed
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(READY)  ## Measure speed and memory; writes results/ and docs/performance.md
	$(BIN)/python -m benchmarks $(SECTIONS)

# Each part ends by itself before its share of the 20 minutes; `timeout` holds if one does not.
campaign: $(READY)  ## Attack the program in all ways for at most 20 minutes; writes docs/reliability.md
	timeout 1200 env OMP_NUM_THREADS=1 $(BIN)/python -m campaign $(PARTS)

mutants: $(READY)  ## Break the core in a hundred small ways; writes results/mutants.json
	OMP_NUM_THREADS=1 $(BIN)/python -m campaign.mutants

paper: $(READY)  ## Measure the paper's tables on the features in features/, then write the documents
	$(BIN)/protorect paper main ablation backbones omniglot cub higher-way robust figures weights --results results/paper
	$(MAKE) results

results: $(READY)  ## Write the tables and figures of the documents from results/
	$(BIN)/python -m benchmarks.documents
	$(BIN)/protorect paper --from-results results/paper --docs docs

clean:  ## Remove the virtual environment and caches
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache
