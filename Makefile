# Every command of the course. `make` alone lists them; GNU make 3.81 (macOS) and later will do.

PYTHON ?= python3
TORCH_INDEX ?=
LAB_ARGS ?=
REPO ?=

VENV := .venv
PY := $(VENV)/$(if $(filter Windows_NT,$(OS)),Scripts,bin)/python
FIRST_LESSON := $(firstword $(sort $(wildcard notebooks/[0-9]*.ipynb)) notebooks)
INSTALL = $(PY) -m pip install --disable-pip-version-check --quiet --constraint constraints.txt $(EXTRA_INDEX)
# The extra index stands beside the default one: it may hold PyTorch and nothing else. Of two equal versions pip takes
# the one with a local label (2.13.0+cpu), so PyTorch comes from there and the rest from where it always comes from.
EXTRA_INDEX = $(if $(strip $(TORCH_INDEX)),--extra-index-url "$(strip $(TORCH_INDEX))")
PYTEST := $(PY) -m pytest --quiet
NBMAKE := $(PYTEST) --override-ini="addopts=--import-mode=importlib -ra" --nbmake --nbmake-timeout=120

# .venv holds the path of this folder and the PyTorch build that was asked for, so a moved folder or another
# TORCH_INDEX makes it anew.
MADE_IN := $(shell cat $(VENV)/made-in 2>/dev/null)
MADE_FROM := $(shell cat $(VENV)/made-from 2>/dev/null)
ifneq ($(MADE_IN),)
ifneq ($(MADE_IN),$(CURDIR))
STALE := this folder was moved
endif
ifneq ($(strip $(TORCH_INDEX)),)
ifneq ($(MADE_FROM),$(strip $(TORCH_INDEX)))
STALE := PyTorch is to come from another index
endif
endif
endif

.NOTPARALLEL:
.DELETE_ON_ERROR:
.PHONY: help lab test lint unit style notebooks colab-test browser bench solutions colab pins clean FORCE
.DEFAULT_GOAL := help

help:  ## list the commands
	@echo "Usage: make COMMAND"
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-11s %s\n", $$1, $$2 }' Makefile
	@echo "Settings: PYTHON=python3.12 picks the Python, TORCH_INDEX=url where PyTorch comes from,"
	@echo "          LAB_ARGS=\"--no-browser\" goes to JupyterLab, REPO=owner/name to make colab."

# --- the environment ---------------------------------------------------------------------------------------------

$(VENV)/made-in: $(if $(STALE),FORCE)
	@$(PYTHON) -c "" 2>/dev/null || { echo "There is no '$(PYTHON)' here. Install Python 3.11 or newer, or name yours: make $(MAKECMDGOALS) PYTHON=/path/to/python"; exit 1; }
	@$(PYTHON) -c "import sys; sys.exit(sys.version_info < (3, 11))" || { echo "This course needs Python 3.11 or newer; '$(PYTHON)' is $$($(PYTHON) --version). Name a newer one: make $(MAKECMDGOALS) PYTHON=python3.12"; exit 1; }
	@$(PYTHON) -c "import ensurepip, venv" 2>/dev/null || { echo "This Python has no venv module. On Debian or Ubuntu: sudo apt install python3-venv; then run make again."; exit 1; }
	@echo "Creating $(VENV) with $$($(PYTHON) --version)$(if $(STALE), anew: $(STALE))"
	@$(PYTHON) -m venv --clear $(VENV)
	@echo "$(strip $(TORCH_INDEX))" > $(VENV)/made-from
	@echo "$(CURDIR)" > $@

# A later run must not leave the index that the environment was made from: PyTorch would come twice.
$(VENV)/lab-ready $(VENV)/test-ready: TORCH_INDEX := $(or $(strip $(TORCH_INDEX)),$(MADE_FROM))

$(VENV)/lab-ready: $(VENV)/made-in pyproject.toml constraints.txt tools/jupyterlab_settings.json
	@echo "Installing labkit, PyTorch and JupyterLab into $(VENV) (the first time: 1.5 GB or more, some minutes)"
	@$(INSTALL) --editable ".[lab]"
	@mkdir -p $(VENV)/share/jupyter/lab/settings
	@cp tools/jupyterlab_settings.json $(VENV)/share/jupyter/lab/settings/overrides.json
	@touch $@

$(VENV)/test-ready: $(VENV)/lab-ready
	@echo "Installing what the tests need into $(VENV)"
	@$(INSTALL) --editable ".[lab,test]"
	@touch $@

# --- for students ------------------------------------------------------------------------------------------------

lab: $(VENV)/lab-ready  ## open the lessons in JupyterLab
	@echo "Opening $(FIRST_LESSON) in JupyterLab; Ctrl-C twice in this window stops it"
	@JUPYTER_PREFER_ENV_PATH=1 $(PY) -m jupyterlab --ServerApp.log_level=ERROR --LabApp.log_level=ERROR \
		--KernelManager.transport_encryption=auto \
		--ServerApp.root_dir="$(CURDIR)" --LabApp.default_url=/lab/tree/$(FIRST_LESSON) \
		$(if $(filter 0,$(shell id -u)),--allow-root) $(LAB_ARGS)

# --- for those who change something ------------------------------------------------------------------------------

# The tests share a machine with whatever else runs. By default torch's threads spin while they wait for each other, and
# where another program holds a core each operation then takes a hundred times as long; asleep, they give way.
unit notebooks colab-test browser: export OMP_WAIT_POLICY := passive

test: lint unit style notebooks colab-test browser  ## run all checks, in this order; the first that fails stops it

lint: $(VENV)/test-ready  ## check style and format of code and notebooks
	@echo "Lint: ruff on code and notebooks"
	@$(PY) -m ruff check --quiet .
	@$(PY) -m ruff format --check --quiet . || { echo "Some files are not formatted: $(PY) -m ruff format ."; exit 1; }

unit: $(VENV)/test-ready  ## run the unit tests and the examples in docstrings
	@echo "Unit tests and docstring examples"
	@$(PYTEST) src tests --ignore=tests/browser --ignore=tests/colab --ignore=tests/test_notebook_style.py

style: $(VENV)/test-ready  ## check that the notebooks keep to the rules of a lesson
	@echo "Notebook style"
	@$(PYTEST) tests/test_notebook_style.py

notebooks: $(VENV)/test-ready  ## execute every notebook, as handed out and solved
	@echo "Notebooks as handed out, quick profile"
	@$(NBMAKE) notebooks
	@$(MAKE) --no-print-directory solutions
	@echo "Notebooks with solutions, quick profile"
	@$(NBMAKE) build/solutions

colab-test: $(VENV)/test-ready  ## execute the notebooks for Colab, without labkit, on its ipywidgets
	@echo "Notebooks for Google Colab, where labkit is missing and ipywidgets is 7.7.1"
	@$(PYTEST) tests/colab

browser: $(VENV)/test-ready  ## drive every notebook in JupyterLab under Chromium
	@echo "Lessons in JupyterLab under a headless browser"
	@$(PYTEST) tests/browser

bench: $(VENV)/test-ready  ## measure labkit itself against plain torch
	@echo "Benchmarks (some minutes; leave the machine alone meanwhile)"
	@$(PY) -m bench

solutions: $(VENV)/test-ready  ## write the solved notebooks to build/solutions/
	@echo "Writing the solved notebooks to build/solutions/"
	@$(PY) -m labkit solutions

colab: $(VENV)/test-ready  ## write notebooks for Google Colab to build/colab/
	@echo "Writing notebooks for Google Colab to build/colab/"
	@$(PY) -m labkit colab $(if $(REPO),--repo "$(REPO)")

pins: $(VENV)/made-in  ## renew constraints.txt from a clean environment (TORCH=2.13.0)
	@echo "Resolving all dependencies anew in build/pins"
	@$(PY) tools/renew_pins.py $(if $(TORCH),--torch "$(TORCH)") $(EXTRA_INDEX)

clean:  ## remove all that make created; your results/ stay
	@echo "Removing $(VENV), build, dist and caches"
	@rm -rf $(VENV) build dist .pytest_cache .ruff_cache
