# `make` alone lists the targets. Another interpreter: PYTHON=python3.12 make test

PYTHON ?= python3
VENV ?= .venv
WORKERS ?= 3

VERSION := $(shell $(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null)
INSTALLED := $(VENV)/.installed-$(VERSION)
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install -qq --disable-pip-version-check -c constraints.txt

.PHONY: help install lab test test-long tour notebooks bench kernels map lint

help:
	@echo "make install    install into $(VENV)"
	@echo "make lab        open JupyterLab on the tour"
	@echo "make test       lint, check types and run every test"
	@echo "make test-long  the same with ten times the examples or more"
	@echo "make tour       run the tour and write build/tour.html"
	@echo "make notebooks  run the notebooks and strip what changes from run to run"
	@echo "make bench      measure, beside the libraries that are installed"
	@echo "make kernels    compare the kernels of the benchmark's models with the last commit's"
	@echo "make map        print every module with a sentence; ROOM=ir/opt for one folder"

install: $(INSTALLED)

lab: $(INSTALLED)
	$(BIN)/workbench lab

test: lint
	$(BIN)/python -m pytest -n $(WORKERS)

test-long: lint
	WORKBENCH_TEST_PROFILE=long $(BIN)/python -m pytest -n $(WORKERS) --timeout=1800

lint: $(INSTALLED)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/python scripts/check_page.py

tour: $(INSTALLED)
	$(BIN)/workbench tour --html build/tour.html

notebooks: $(INSTALLED)
	$(BIN)/python scripts/run_notebooks.py

bench: $(INSTALLED)
	$(BIN)/workbench bench --quick
	$(BIN)/workbench bench
	@for script in bench/*.py; do $(BIN)/python "$$script" || exit 1; done

kernels: $(INSTALLED)
	$(BIN)/python scripts/kernel_changes.py $(COMMIT)

map: $(INSTALLED)
	@$(BIN)/python scripts/code_map.py $(ROOM)

# The virtual environment is kept while it has the asked-for Python. hatchling comes
# first, so that the build of this package uses the pinned one and no other.
$(INSTALLED): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "$(PYTHON) is missing or older than Python 3.11." \
	    "Install a newer one, or name it: PYTHON=python3.12 make $(MAKECMDGOALS)" >&2; \
	  exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || { \
	  echo "$(PYTHON) has no venv module." \
	    "On Debian and Ubuntu: apt-get install python$(VERSION)-venv" >&2; \
	  exit 1; }
	@echo "installing into $(VENV): about a minute"
	@[ "$$($(BIN)/python -c 'import sys; print("%d.%d" % sys.version_info[:2])' \
	  2>/dev/null)" = "$(VERSION)" ] || $(PYTHON) -m venv --clear $(VENV)
	@$(PIP) hatchling
	@$(PIP) --no-build-isolation -e '.[dev]'
	@touch $@
