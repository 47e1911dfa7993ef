# Usage: make new OP=my_op DEST=../my_ops   or   make verify
PYTHON ?= python3
VENV ?= .venv
BIN = $(abspath $(VENV))/bin
OP ?=
DEST ?=
NEW ?=
ARCH ?= sm_90

.DEFAULT_GOAL := help
.PHONY: help new verify lint types layers test releases operators reference bench clean

help:  ## list the targets
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

new: $(VENV)/.ready  ## add operator OP to the repository DEST and verify it; further options of `tilewright new` in NEW
	@test -n "$(OP)" -a -n "$(DEST)" || { echo "make new needs a name and a folder: make new OP=my_op DEST=../my_ops" >&2; exit 2; }
	mkdir -p $(DEST)
	cd $(DEST) && $(BIN)/tilewright new $(OP) $(NEW)
	cd $(DEST) && $(BIN)/tilewright verify $(OP)

verify: lint types layers operators test  ## everything that continuous integration checks

lint: $(VENV)/.ready  ## ruff
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.ready  ## mypy
	$(BIN)/mypy

layers: $(VENV)/.ready  ## import-linter
	$(BIN)/lint-imports

test: $(VENV)/.ready  ## the tests of this repository; those of the reference operators are part of `make operators`
	$(BIN)/python -m pytest -q -m "not slow" -n auto --dist worksteal --ignore=tests/ops tests

releases: $(VENV)/.ready  ## the tests of the interpreter, and of what rules say, on older releases of cuda-tile
	for release in 1.5.0 1.6.0; do \
	  older=$(abspath $(VENV))/cuda-tile-$$release; \
	  $(BIN)/python -m pip install -q --no-deps --upgrade --target $$older cuda-tile==$$release && \
	  PYTHONPATH=$$older $(BIN)/python -m pytest -q -n auto tests/cutile tests/interpret tests/rules/test_*snippets*.py || exit 1; \
	done

# Its hundred processes compile the same files once, also where a container would have each compile them anew; those of
# the tests find them compiled. What tests write and change within a second may not be kept: its time would not tell.
operators: $(VENV)/.ready  ## verify every reference operator, compiled for ARCH; with ARCH= for all architectures
	PYTHONDONTWRITEBYTECODE= $(BIN)/tilewright verify $(addprefix --arch ,$(ARCH))

reference: $(VENV)/.ready  ## render the reference operators anew from their recorded answers
	for answers in .tilewright/ops/*.yml; do $(BIN)/copier copy -q -f --data-file $$answers template . || exit 1; done

bench: $(VENV)/.ready  ## time the reference operators beside their peers (needs a GPU)
	$(BIN)/tilewright bench

clean:  ## remove the environment and caches
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache

$(VENV)/.ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q -c constraints.txt -e ".[dev]"
	$(BIN)/python -m pip install -q --no-deps tilegym
	touch $@
