# Everything runs in .venv and .forktrail; `make help` lists the targets.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.DEFAULT_GOAL := help
.PHONY: help setup demo test unit kuzu bench chaos lint format generate lock clean

help: ## list the targets
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

setup: $(STAMP) ## make the virtualenv

$(STAMP): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Forktrail needs Python 3.11 or newer; set PYTHON=..." >&2; exit 1; }
	@test -x $(BIN)/python || { echo "making the virtualenv in $(VENV)"; $(PYTHON) -m venv $(VENV); }
	@echo "installing the locked packages into $(VENV)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps -e .
	@touch $@

demo: $(STAMP) ## play the evidence story on a real log, as separate processes
	@$(BIN)/forktrail demo

test: unit ## all tests, on a real broker
	@$(BIN)/python -m pytest -q -m broker

unit: $(STAMP) ## the tests that need no broker
	@$(BIN)/python -m pytest -q -m 'not broker' --numprocesses auto --maxprocesses 4 --dist loadfile

KUZU_TESTS := $(addprefix tests/projectors/test_,$(addsuffix .py,graph_contract graph_cypher graph_random graph_engine graph_declared \
	graph_crash graph_bulk readonly_queries rebuild discovery))

# In one of ten random streams kuzu 0.11.3 gives back another text than was put (23, say); nobody mends it any more.
KUZU_SEED ?= 11

kuzu: $(VENV)/.kuzu ## the graph's tests and the demo on the original engine
	@FORKTRAIL_GRAPH_ENGINE=kuzu FORKTRAIL_TEST_SEED=$(KUZU_SEED) $(BIN)/python -m pytest -q $(KUZU_TESTS)
	@FORKTRAIL_GRAPH_ENGINE=kuzu $(BIN)/forktrail demo

$(VENV)/.kuzu: $(STAMP) requirements-kuzu.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r requirements-kuzu.lock
	@touch $@

bench: $(STAMP) ## the benchmarks, medians of five (ARGS='--quick', '--only fold', '--profile fold')
	@PYTHONPATH=tests $(BIN)/python -m benchmarks $(ARGS)

chaos: $(STAMP) ## 300 kills under load, and what must hold after them (ARGS='--kills 30', '--seed N')
	@PYTHONPATH=tests $(BIN)/python -m chaos $(ARGS)

lint: $(STAMP) ## types, style, import rules, generated files, compatible schemas
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@$(BIN)/python -m forktrail_schemas.generate --check
	@$(BIN)/python -m forktrail_schemas.compatibility --check

format: $(STAMP) ## lay out the code
	@$(BIN)/ruff check --fix --quiet . ; $(BIN)/ruff format --quiet .

generate: $(STAMP) ## write the event classes from the .avsc files
	@$(BIN)/python -m forktrail_schemas.generate

lock: $(STAMP) ## resolve the dependencies anew into requirements.lock (needs uv)
	@uv pip compile pyproject.toml --extra dev --universal --python-version 3.11 --generate-hashes \
		--no-emit-index-url --no-emit-find-links --no-header --quiet --upgrade -o requirements.lock
	@echo kuzu==0.11.3 | uv pip compile - --universal --python-version 3.11 --generate-hashes \
		--no-emit-index-url --no-emit-find-links --no-header --no-annotate --quiet -o requirements-kuzu.lock

clean: ## stop the local broker and remove .forktrail and .venv
	@test ! -x $(BIN)/forktrail || $(BIN)/forktrail broker stop
	@rm -rf .forktrail $(VENV)
