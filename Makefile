# Everything a person or CI does with this project. Targets find what is there and do the rest:
# run them again at any time. Without anything missing none of them needs a network.

.DEFAULT_GOAL := help
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
MAKEFLAGS += --no-print-directory

# An empty environment is enough.
export PATH := $(if $(PATH),$(PATH):,)/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export LC_ALL := C.UTF-8
export PIP_DISABLE_PIP_VERSION_CHECK := 1

BIN       := .venv/bin
DEMO      := .venv/.installed-demo
DEMO_RMQ  := .venv/.installed-demo-rocketmq
DEV       := .venv/.installed-dev
WORKERS   ?= 2

.PHONY: help
help: ## Print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: install
install: $(DEMO) ## Make .venv with everything that the demo needs
	@echo "Ready. Next: make demo"

.PHONY: demo
demo: $(DEMO) ## The whole path on this machine, with a page in the browser
	@exec $(BIN)/aivedio up

.PHONY: demo-rocketmq
demo-rocketmq: $(DEMO_RMQ) ## The same over a real RocketMQ; needs Java and Maven
	@exec $(BIN)/python -m deploy.rocketmq run -- $(BIN)/aivedio up

.PHONY: check
check: lint test ## Everything CI runs, in CI's order

.PHONY: lint
lint: $(DEV) ## Formatting, ruff, mypy --strict, SQL
	@$(BIN)/ruff format --check --quiet . || { $(BIN)/ruff format --diff .; exit 1; }
	@$(BIN)/ruff check --quiet .
	@$(BIN)/mypy
	@$(BIN)/sqlfluff lint --disable-progress-bar --nocolor db

.PHONY: test
test: test-sql test-py ## All tests but the long ones; nothing is skipped

.PHONY: test-sql
test-sql: $(DEV) packages ## pgTAP on PostgreSQL 15 and 18, in the order of the path
	@$(BIN)/python -m tests.py.support.prove

.PHONY: test-py
test-py: $(DEV) packages ## pytest: processes, races with real sessions, the whole path, a browser
	@$(BIN)/python -m pytest --numprocesses $(WORKERS) --dist loadgroup

.PHONY: test-long
test-long: $(DEV) packages ## The tests that take minutes each
	@$(BIN)/python -m pytest --long -m long

.PHONY: bench
bench: $(DEV) packages ## Rates and latencies on this machine, as ratios, into bench.json
	@$(BIN)/python -m tests.bench

.PHONY: docs
docs: $(DEV) ## Make docs/sql.md again from the catalog
	@$(BIN)/python -m tests.py.support.docs

.PHONY: lock
lock: $(DEV) ## Pin what .venv holds now into constraints.txt
	@$(BIN)/python deploy/lock.py $(BIN)/python > constraints.new && mv constraints.new constraints.txt

.PHONY: packages
packages: $(DEV)
	@tests/install_packages.sh
	@$(BIN)/python -m deploy.rocketmq fetch

.PHONY: clean
clean: ## Remove .venv and every cache
	@rm -rf .venv .cache .mypy_cache .ruff_cache .pytest_cache .hypothesis

$(DEMO): pyproject.toml constraints.txt deploy/venv.sh
	@deploy/venv.sh embedded
	@touch $@

$(DEMO_RMQ): pyproject.toml constraints.txt deploy/venv.sh
	@deploy/venv.sh embedded,rocketmq
	@touch $(DEMO) $@

$(DEV): pyproject.toml constraints.txt deploy/venv.sh
	@deploy/venv.sh dev
	@touch $(DEMO) $(DEMO_RMQ) $@
