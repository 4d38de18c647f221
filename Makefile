# HOST, PORT and DATA_DIR are honoured by `make run`, as in `make run PORT=9000`.
PYTHON ?= $(shell command -v python3.11 || echo python3)
BIN := .venv/bin
LOCK := $(BIN)/pip-compile --quiet --generate-hashes --strip-extras --allow-unsafe --no-header \
	--no-emit-index-url --no-emit-find-links --no-emit-trusted-host --no-emit-options

.DEFAULT_GOAL := help
.PHONY: help setup run test lint format lock clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: .venv/.runtime engine/node_modules/.installed ## Install what the server needs, into .venv and engine/

run: setup ## Run the server, with its own DynamoDB engine, on http://127.0.0.1:8000/
	@$(BIN)/python manage.py serve

test: setup .venv/.development ## Run the linters and every test (ARGS="-k join" picks some)
	@$(call install_packages,redis-server chromium)
	@$(MAKE) --no-print-directory lint
	@$(BIN)/pytest $(ARGS)

lint: setup .venv/.development ## Check format, style, types and the direction of imports
	@$(BIN)/ruff format --check --quiet .
	@$(BIN)/ruff check --quiet .
	@$(BIN)/mypy
	@said=$$($(BIN)/lint-imports --no-logo 2>&1) || { echo "$$said" >&2; exit 1; }

format: .venv/.development ## Format the code and mend what can be mended
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

lock: .venv/.development ## Compile requirements*.in into requirements*.txt, with hashes
	@$(LOCK) --output-file requirements.txt requirements.in
	@$(LOCK) --output-file requirements-dev.txt requirements-dev.in

clean: ## Remove everything that was installed or cached, but no data
	@rm -rf .venv engine/node_modules .mypy_cache .pytest_cache .ruff_cache .import_linter_cache
	@rm -rf .hypothesis .schemathesis
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

.venv/bin/python:
	@command -v $(PYTHON) >/dev/null || { echo "Python 3.11 is missing: install it first." >&2; exit 1; }
	@$(PYTHON) -m venv .venv

.venv/.runtime: requirements.txt | .venv/bin/python
	@echo "Installing packages into .venv ..."
	@$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements.txt
	@touch $@

.venv/.development: requirements-dev.txt .venv/.runtime
	@echo "Installing development tools into .venv ..."
	@$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.txt
	@touch $@

engine/node_modules/.installed: engine/package-lock.json
	@command -v npm >/dev/null || { echo "npm is missing: install Node.js with npm first (Debian: apt-get install npm)." >&2; exit 1; }
	@echo "Installing the embedded engine into engine/ ..."
	@cd engine && npm ci --silent
	@touch $@

# Debian packages whose command is missing: installed where we may, named where we may not.
define install_packages
missing=""; for name in $(1); do command -v $$name >/dev/null || missing="$$missing $$name"; done; \
[ -z "$$missing" ] && exit 0; \
if [ "$$(id -u)" = 0 ]; then become=""; elif sudo -n true 2>/dev/null; then become="sudo"; \
else echo "The tests need these Debian packages:$$missing" >&2; exit 1; fi; \
echo "Installing$$missing ..."; \
$$become apt-get update -qq && \
$$become env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends $$missing >/dev/null
endef
