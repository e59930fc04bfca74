# Everything here needs Python 3.11 or newer and make, and the kubernetes targets Go; nothing else.
# `make help` lists the targets.

VENV ?= .venv
DOCS_BUILD ?= docs/_build
EXAMPLE := docs/examples/congested.json

# The first interpreter that is new enough and can make environments.
PROBE := import ensurepip, sys; sys.exit(sys.version_info < (3, 11))
PYTHON ?= $(shell for name in python3.11 python3 python; do \
  "$$name" -c '$(PROBE)' >/dev/null 2>&1 && { echo "$$name"; break; }; done)

# What builds images and pushes them: the first that is there.
ENGINE ?= $(shell for name in podman docker buildah; do command -v "$$name" && break; done)

BIN := $(VENV)/bin
# A test that hangs is ended with its stack and fails, so that the others are still told of.
HANGING := --timeout 900 --timeout-method thread
# Python compiles what is imported, once; pip would compile all that is installed, tests of libraries too.
INSTALL := -m pip --quiet --disable-pip-version-check install --no-compile --editable

.PHONY: help example test test-portable nightly kubernetes-build kubernetes-test kubernetes-demo kubernetes-kueue kubernetes-train \
  kubernetes-figures image mutants bench check lint types imports spelling docs release-check clean
.NOTPARALLEL:
.DEFAULT_GOAL := help

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/make \1@\2/p' $(firstword $(MAKEFILE_LIST)) | \
	  awk -F@ '{ printf "%-21s %s\n", $$1, $$2 }'

example: $(VENV)/all.stamp ## install, then the competitive ratio on the shipped example
	$(BIN)/oasis ratio $(EXAMPLE)

test: $(VENV)/test.stamp ## install, then run the tests on all cores
	$(BIN)/python -m pytest -n auto $(HANGING) --durations=10 --durations-min=5

test-portable: $(VENV)/test.stamp ## the tests of OASiS, without the widest vector instructions of the processor
	$(BIN)/python -m tests.portable -n auto $(HANGING) tests/paper tests/unit/online \
	  tests/properties/test_online_contract.py tests/recorded tests/oracle/test_equal_is_equal.py

nightly: $(VENV)/test.stamp ## the tests, with long searches
	$(BIN)/python -m pytest -n auto --nightly

kubernetes-build: | $(BIN)/python ## build the control plane that the next one needs (ten minutes, once)
	@$(BIN)/python -m tests.kubernetes.controlplane.build

kubernetes-test: kubernetes-build $(VENV)/test.stamp ## the tests on a real control plane; NIGHTLY=1 adds the long ones
	$(BIN)/python -m pytest tests/kubernetes --kubernetes $(if $(NIGHTLY),--nightly,$(HANGING))

kubernetes-demo: kubernetes-build $(VENV)/test.stamp ## the shipped example on a real control plane, beside the simulator; POLICY=
	$(BIN)/python -m tests.kubernetes.demo $(if $(POLICY),--policy $(POLICY))

kubernetes-kueue: kubernetes-build $(VENV)/test.stamp ## twelve jobs on a real Kueue, beside the simulator (it is built once, ten minutes); NIGHTLY=1 adds the rest
	$(BIN)/python -m tests.kubernetes.controlplane.build kueue
	$(BIN)/python -m pytest -v --kubernetes --nightly tests/kubernetes/test_kueue.py $(if $(NIGHTLY),,-k twelve)

kubernetes-train: kubernetes-build $(VENV)/$(if $(NIGHTLY),frameworks,test).stamp ## real trainings on it, as root; NIGHTLY=1 adds JAX, PyTorch, TensorFlow
	$(BIN)/python -m pytest --kubernetes -v tests/kubernetes/test_training.py \
	  $(if $(NIGHTLY),--nightly tests/kubernetes/test_real_frameworks.py)

kubernetes-figures: kubernetes-build $(VENV)/test.stamp ## the paper's experiment on a real control plane: Figs. 8 and 9; SEEDS=
	$(BIN)/python -m tests.kubernetes.paper $(if $(SEEDS),--seeds $(SEEDS))

image: ## build the controller's image and push it, with podman, docker or buildah; IMAGE=
	@test -n "$(IMAGE)" || { echo "make: expected IMAGE=registry/name:tag" >&2; exit 1; }
	@test -n "$(ENGINE)" || { echo "make: expected podman, docker or buildah" >&2; exit 1; }
	"$(ENGINE)" build --file deploy/Containerfile --tag "$(IMAGE)" .
	"$(ENGINE)" push "$(IMAGE)"

mutants: $(VENV)/mutants.stamp ## mutate the core at 150 random places; SEED= repeats, SAMPLE= shortens
	$(BIN)/python -m tests.mutation $(if $(SEED),--seed $(SEED)) $(if $(SAMPLE),--sample $(SAMPLE))

bench: $(VENV)/bench.stamp ## time decisions beside a compiled textbook DP and a MILP
	$(BIN)/python -m pytest tests/unit/benchmarks/bench_search.py
	$(BIN)/python -m tests.unit.benchmarks.search

check: lint types imports spelling ## lint, format, types, import directions, spelling

lint: $(VENV)/lint.stamp
	$(BIN)/ruff check
	$(BIN)/ruff format --check

types: $(VENV)/lint.stamp
	$(BIN)/mypy --strict

imports: $(VENV)/lint.stamp
	$(BIN)/lint-imports

spelling: $(VENV)/lint.stamp
	$(BIN)/codespell

docs: $(VENV)/docs.stamp ## build the pages, running every code block; warnings are errors
	$(BIN)/sphinx-build --jobs auto --nitpicky --fail-on-warning --keep-going --quiet \
	  -d $(DOCS_BUILD)/doctrees docs $(DOCS_BUILD)/html
	@echo "$(DOCS_BUILD)/html/index.html"

release-check: $(VENV)-release.stamp ## build a release, install it where nothing else is, run the main job there
	$(VENV)-release/bin/python -m tests.release

clean: ## remove the environment and everything generated
	rm -rf $(VENV) $(VENV)-release $(VENV)-release.stamp docs/_build docs/api build dist *.egg-info
	rm -rf .pytest_cache .hypothesis .mypy_cache .ruff_cache .import_linter_cache

# One stamp an extra: installed again when the project's metadata change.
$(VENV)/all.stamp: EXTRAS = all
$(VENV)/test.stamp: EXTRAS = test
$(VENV)/frameworks.stamp: EXTRAS = frameworks
$(VENV)/mutants.stamp: EXTRAS = mutants
$(VENV)/bench.stamp: EXTRAS = bench
$(VENV)/lint.stamp: EXTRAS = all,lint
$(VENV)/docs.stamp: EXTRAS = all,dask,docs
$(VENV)/%.stamp: pyproject.toml | $(BIN)/python
	$(BIN)/python $(INSTALL) '.[$(EXTRAS)]'
	@touch $@

# An environment of its own: what validates citations wants an older jsonschema than the tests.
$(VENV)-release.stamp: pyproject.toml | $(BIN)/python
	$(BIN)/python -m venv $(VENV)-release
	$(VENV)-release/bin/python $(INSTALL) '.[release]'
	@touch $@

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "make: expected Python 3.11 or newer, with venv, as python3.11" \
	  "or python3; or name it: make PYTHON=/path/to/python" >&2; exit 1; }
	"$(PYTHON)" -m venv "$(VENV)"
