# Tritone: `make demo` answers a question on this machine, `make test` proves the tree. Both do all their set-up.
SHELL := /bin/bash
.DEFAULT_GOAL := help
export TRITONE_PORT ?= 8091

VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready-to-serve
TEST_READY := $(VENV)/.ready-to-test
REQUIREMENTS := pyproject.toml constraints.txt tools/setup_venv.sh

.PHONY: help demo test serve bench check gpu-test clean

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):[^#]*## /  make \1\t/' | expand -t 18

# Rebuilt when the requirements change, left alone otherwise.
$(READY): $(REQUIREMENTS)
	@bash tools/setup_venv.sh $(VENV) serve
	@touch $@

$(TEST_READY): $(READY)
	@bash tools/setup_venv.sh $(VENV) test
	@touch $@

demo: $(READY)  ## start a real server with a real model, ask it a question, print the streamed answer
	@$(BIN)/tritone demo

serve: $(READY)  ## serve the demo pipelines in the foreground on TRITONE_PORT (default 8091)
	@$(BIN)/tritone serve

check: $(TEST_READY)  ## formatting, lints and types
	$(BIN)/ruff check .
	$(BIN)/mypy

test: check  ## lints, types and every test that needs no GPU
	$(BIN)/python -m pytest -m "not gpu" -q

gpu-test: $(TEST_READY)  ## the tests that need an NVIDIA GPU
	$(BIN)/python -m pytest -m gpu -q

# transformers, which it measures against, reads GGUF with packages of the test tools.
bench: $(TEST_READY)  ## measure the chat pipeline on this machine
	@$(BIN)/tritone bench chat

clean:  ## remove the environment, run directories and caches
	rm -rf $(VENV) .tritone build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
