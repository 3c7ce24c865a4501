# Everything a person or CI does with taskq, one word each. Bare `make` prints what there is.
# Each target makes the virtual environment if it is missing; it needs Python 3.11 or newer with pip, nothing else.

PYTHON ?= python3
VENV   ?= .venv
PY     := $(VENV)/bin/python
PYTEST := $(PY) -m pytest
STAMP  := $(VENV)/.installed-for-taskq
COMPOSE = $(shell if docker compose version >/dev/null 2>&1; then echo docker compose; else echo docker-compose; fi)

.DEFAULT_GOAL := help
.PHONY: help setup demo test check bench bench-scripts soak bench-peers matrix cluster cluster-scripts cluster-guide \
        cluster-servers cluster-long sim chaos zones long up down

help: ## Print this
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(STAMP) ## Make the virtual environment and install taskq in it, editable

# Made again when what is to be installed changes; code changes need no reinstall.
$(STAMP): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit("taskq needs Python 3.11 or newer: make PYTHON=python3.12 ..." if sys.version_info < (3, 11) else 0)'
	@echo "Installing into $(VENV) (once)"
	@$(PYTHON) -m venv $(VENV)
	@$(PY) -m pip install --quiet --disable-pip-version-check --editable '.[dev,embedded,uvloop]'
	@touch $@

demo: $(STAMP) ## Watch thousands of real jobs run, fail, retry and survive a kill
	@$(VENV)/bin/taskq demo

# Chaos kills processes and measures how soon others take over, so it runs alone, after the others (which may fail).
test: $(STAMP) ## Run the tests (a server of its own for each test process)
	@$(PYTEST) --numprocesses 2 -m "not bench and not long and not chaos and not cluster"; others=$$?; \
	$(PYTEST) -m "chaos and not long" && exit $$others

check: $(STAMP) ## Lint, formatting, types, rooms, Lua, and the rules of the house
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy
	$(VENV)/bin/pyright --pythonpath $(PY)
	$(VENV)/bin/lint-imports
	@if command -v luacheck >/dev/null; then \
	    scripts=$$(mktemp -d) && trap 'rm -r "$$scripts"' EXIT && \
	    $(PY) -m taskq.scripts "$$scripts" && luacheck --quiet "$$scripts"; \
	elif [ "$${CI:-}" = true ]; then echo "luacheck is missing" >&2; exit 1; \
	else echo "luacheck is not installed here: the Lua scripts were not checked (Debian: apt install lua-check)"; fi
	$(PYTEST) --quiet tests/unit/test_tidy.py tests/lua/test_headers.py

bench: $(STAMP) ## Measure, each row beside its reference from the same run
	$(PY) -m tests.bench

bench-scripts: $(STAMP) ## Measure every script beside a million waiting and a million scheduled jobs (JOBS=100000 for fewer)
	$(PY) -m tests.bench.every_script --jobs $(or $(JOBS),1000000)

bench-peers: $(STAMP) ## Measure other task libraries on the same server (each is installed in .venv-peers/ at the first run)
	$(PY) -m tests.bench.peers $(PEERS)

soak: $(STAMP) ## Half an hour of mixed load, and whether anybody's memory grows (MINUTES=5 for less, RATE=200 jobs a second)
	$(PY) -m tests.bench.soak --minutes $(or $(MINUTES),30) --rate $(or $(RATE),200)

matrix: $(STAMP) ## Run the tests on Redis 6.2 to 8.2 and Valkey 8.1 and 9.1, with both ends of redis-py, on other Pythons (ROWS=redis-6.2 for one)
	$(PY) -m tests.matrix $(ROWS)

cluster: cluster-scripts cluster-guide cluster-servers ## Run what depends on the servers' arrangement: scripts in cluster mode, three shards, sentinels

# Each script, on servers of a single shard that refuse keys of two slots.
cluster-scripts: $(STAMP)
	TASKQ_TEST_CLUSTER=1 $(PYTEST) --numprocesses 2 tests/lua tests/simulation

cluster-guide: $(STAMP)
	TASKQ_TEST_CLUSTER=3 $(PYTEST) tests/guide

# Two at a time: each of these starts a dozen processes, and then waits for most of its time.
cluster-servers: $(STAMP)
	$(PYTEST) --numprocesses 2 tests/cluster tests/sentinel

cluster-long: $(STAMP) ## The long runs on three shards and on sentinels: leaders killed for minutes, 30 rounds of lost nodes
	$(PYTEST) tests/cluster tests/sentinel --timeout 0 -m "cluster and long"

sim: $(STAMP) ## Compare the scripts with the model over long random histories
	$(PYTEST) tests/simulation --timeout 0 -m "long or not long"

chaos: $(STAMP) ## Strike real processes, servers and connections, the long runs too; prints the table of faults
	$(PYTEST) tests/chaos --timeout 0 -m "chaos"

zones: $(STAMP) ## Rules of every kind through each change of every zone's clocks, 2020 to 2030, minute by minute
	$(PYTEST) tests/unit --timeout 0 -m "long"

long: zones ## What else takes long: every zone (zones), then tens of thousands of jobs, locks, cancels and rounds
	$(PYTEST) --ignore tests/unit --ignore tests/simulation --timeout 0 -m "long and not chaos and not cluster and not bench"

up: ## Start Redis and a worker in containers
	$(COMPOSE) up --build --detach

down: ## Stop the containers; the data stays in its volume
	$(COMPOSE) down
