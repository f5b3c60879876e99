# `make` lists the targets. Everything runs in .venv, which `make install` builds from hashed files.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
OUTPUT := $(VENV)/.pytest_output
SEED ?= 1
UV ?= uv
COMPILE = $(UV) pip compile --universal --generate-hashes --no-emit-index-url --no-header --python-version 3.11

# Decisions without I/O: every branch of these is tested.
PURE := src/outlast/errors.py,src/outlast/model/*,src/outlast/protocols/*,src/outlast/routing/*,src/outlast/resilience/*

.DEFAULT_GOAL := help
.PHONY: help install run test check fmt sim bench lock ci clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-9s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

install: $(STAMP) ## Build .venv with every dependency, hashes checked

$(STAMP): requirements/runtime.txt requirements/dev.txt pyproject.toml
	$(BIN)/python -m pip --version > /dev/null 2>&1 || $(PYTHON) -m venv --clear $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-build-isolation --no-deps -e .
	touch $(STAMP)

run: install ## Start the gateway (outlast.yaml, or your keys, or simulated providers)
	$(BIN)/outlast serve

test: install ## Run every test; the pure packages must be covered to the last branch
	@rm -f .coverage .coverage.*
	@COVERAGE_PROCESS_START=$(CURDIR)/pyproject.toml COVERAGE_FILE=$(CURDIR)/.coverage \
		$(BIN)/coverage run -m pytest -q -n 2 --dist loadfile > $(OUTPUT) 2>&1 \
		|| { cat $(OUTPUT); exit 1; }
	@cat $(OUTPUT)
	@$(BIN)/coverage combine -q
	@$(BIN)/coverage report
	@$(BIN)/coverage report --include='$(PURE)' --fail-under=100
	@tail -n 1 $(OUTPUT)

check: install ## Lint, formatting, types and import contracts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

fmt: install ## Format, and fix what can be fixed by itself
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

sim: install ## Replay one simulated world: make sim SEED=42
	SEED=$(SEED) $(BIN)/python -m outlast.sim.world

bench: install ## Measure the gateway beside a bare relay
	$(BIN)/python -m bench

lock: ## Compile requirements/*.txt anew from pyproject.toml (needs uv)
	@command -v $(UV) > /dev/null || { echo "make lock needs uv: pip install uv, or set UV"; exit 1; }
	$(COMPILE) pyproject.toml -o requirements/runtime.txt
	$(COMPILE) pyproject.toml --group dev -c requirements/runtime.txt -o requirements/dev.txt

ci: check test ## What must pass before a change is merged

clean: ## Remove everything that can be built again
	rm -rf $(VENV) .coverage .coverage.* .mypy_cache .ruff_cache .pytest_cache .hypothesis
