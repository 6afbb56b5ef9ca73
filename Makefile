# Needs make and Python 3.11 or newer, nothing else. `make` alone lists the targets.

SHELL := /bin/sh
PYTHON ?= $(shell for python in python3.13 python3.12 python3.11 python3.14 python3; do \
  if $$python -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; \
  then echo $$python; break; fi; done)

BIN := .venv/bin
# Keep compiled Python files regardless of the environment: the tests start Python many times.
unexport PYTHONDONTWRITEBYTECODE
PIP := $(BIN)/python -m pip --quiet --quiet --no-input --disable-pip-version-check

# The server programs of PostgreSQL 15, where they are installed.
PG15_BIN ?= $(shell for bin in /usr/lib/postgresql/15/bin /usr/pgsql-15/bin \
  /opt/homebrew/opt/postgresql@15/bin /usr/local/opt/postgresql@15/bin \
  $$(pg_config --bindir 2>/dev/null); do \
  case "$$($$bin/postgres --version 2>/dev/null)" in (*" 15."*) echo $$bin; break;; esac; done)

# Arguments for pytest, for example: make test ARGS="tests/behaviour -x"
ARGS ?=
# Number of test processes, each with its own server; many tests mostly wait.
JOBS ?= 3
JOBS_15 ?= $(JOBS)
PYTEST := $(BIN)/python -m pytest --dist loadfile --numprocesses

.DEFAULT_GOAL := help
.PHONY: help venv demo dev test mutants test-pg15 check format bench requirements sql \
  cli-reference http-reference vendor clean

help: ## list the targets
	@sed -n 's/^\([a-z0-9-]*\):[^#]*## \(.*\)/  make \1|\2/p' Makefile \
	| while IFS='|' read -r name text; do printf '%-20s %s\n' "$$name" "$$text"; done

venv: .venv/.installed ## create .venv with treadle and its tools

.venv/.installed: pyproject.toml
	@if [ -z "$(PYTHON)" ]; then \
	  echo "error: no Python 3.11 or newer with its venv module found; set PYTHON=..." >&2; exit 1; \
	fi
	@echo "making .venv with $$($(PYTHON) --version) ..."
	@$(PYTHON) -m venv .venv
	@echo "installing treadle and its tools into .venv ..."
	@# An older pip works too, but slower. Most dependencies are never imported; the others are
	@# compiled on first import.
	@$(PIP) install --upgrade pip || true
	@$(PIP) install --no-compile --editable '.[dev]'
	@$(BIN)/python -c 'import treadle.api.app'
	@touch $@

demo: venv ## run the demo: embedded PostgreSQL, workers, a crash, the recovery
	@$(BIN)/treadle demo

dev: venv ## run database, server, worker and all services in the foreground
	@$(BIN)/treadle dev

test: venv ## run the tests on real PostgreSQL
	@$(PYTEST) $(JOBS) -m 'not mutant' $(ARGS)

# SINCE=HEAD~3 runs only those whose function has changed since that commit.
mutants: venv ## break each guard on purpose and check that a test notices
	@MUTANTS_SINCE="$(SINCE)" $(PYTEST) $(JOBS) -m mutant $(or $(ARGS),tests/mutants)

test-pg15: venv ## run the tests on PostgreSQL 15, where it is installed
	@if [ -n "$(PG15_BIN)" ]; then \
	  echo "testing on $$($(PG15_BIN)/postgres --version)"; \
	  TREADLE_TEST_PG_BIN="$(PG15_BIN)" $(PYTEST) $(JOBS_15) -m 'not mutant' $(or $(ARGS),$(ON_15)); \
	else echo "skipped: PostgreSQL 15 is not installed; set PG15_BIN=..."; fi

check: venv ## formatting, lint, types, SQL lint, import direction
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/sqlfluff lint --disable-progress-bar sql
	@$(BIN)/lint-imports --no-cache --no-logo

format: venv ## format Python and SQL
	@$(BIN)/ruff check --fix-only .
	@$(BIN)/ruff format .
	@$(BIN)/sqlfluff fix --disable-progress-bar sql

bench: venv ## measure treadle, and the peers that are installed
	@$(BIN)/python -m bench $(ARGS)

requirements: venv ## print which tests cover which requirement
	@$(BIN)/python tests/requirements.py

sql: venv ## regenerate sql/install.sql, the schema snapshot and the state machine diagram
	@$(BIN)/python -m treadle.db.generate

cli-reference: venv ## write docs/reference/cli.md from the help of the commands
	@$(BIN)/python tests/cli_reference.py

http-reference: venv ## write the tables of docs/reference/http-api.md from the OpenAPI document
	@$(BIN)/python tests/http_reference.py

vendor: venv ## fetch the browser files of vendor.lock again
	@$(BIN)/python tests/vendor.py $(ARGS)

clean: ## remove .venv and caches
	@rm -rf .venv build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
