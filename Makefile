# Two commands do all the set-up: `make demo` (the main job) and `make test` (tests, linter, type checker).
PYTHON ?= python3
BIN := .venv/bin
DEMO := examples/tickets/tickets.skill

.PHONY: demo test lint types pytest test-lark bench format clean

demo: .venv/installed
	@rm -rf build/demo && mkdir -p build
	@$(BIN)/skillc compile $(DEMO) --offline --output build/demo

test: .venv/installed
	$(BIN)/ruff check --no-cache .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -n auto --maxprocesses 4

# The package itself is linked, its dependencies are pinned.
.venv/installed: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "skillc needs Python 3.11 or newer; say which one with PYTHON=python3.12"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv || { echo "no virtual environment could be made; on Debian: apt-get install python3-venv"; exit 1; }
	@echo "installing into .venv, once (about a minute)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	@touch $@

# The oldest supported lark, in an environment of its own.
test-lark: .venv/installed
	$(PYTHON) -m venv build/lark
	build/lark/bin/python -m pip install --quiet --constraint constraints.txt --editable ".[dev]"
	build/lark/bin/python -m pip install --quiet "lark==1.2.2"
	SKILLC_LARK=1.2.2 build/lark/bin/python -m pytest -n auto tests/language

bench: .venv/installed
	@for f in "check.py" "overhead.py" "resume.py --kills 10"; do echo "== $$f"; $(BIN)/python benchmarks/$$f || exit 1; done
	$(BIN)/python -m benchmarks.client --quick

format: .venv/installed
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf .venv build dist .skillc .mypy_cache .ruff_cache .pytest_cache .hypothesis
