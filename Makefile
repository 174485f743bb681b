# Everything runs in .venv, which the first target that needs it sets up.

PYTHON ?= python3
BIN := .venv/bin
STAMPS := .venv/.stamps

.PHONY: help setup compile demo test test-fast check docs tutorials quick format bench fuzz mutants random-mutants release-check clean

# The paper's data, in the layout of its authors' repository.
DATA ?= ../shared/paper-data
# Tables of ADBench, for the experiment on anomalies.
ANOMALIES ?= ../shared/anomaly-data
# Mixed tables, in the layout of the authors' repository on hybrid networks.
HYBRID ?= ../shared/hybrid-data

help:
	@echo "make setup   install all that the other targets need, but the benchmarks' peers, into .venv"
	@echo "make compile have most of the machine code compiled, which the first run of the tests does otherwise"
	@echo "make demo    learn the paper's synthetic network, compare it with the published figures, write a report"
	@echo "make test    run the tests"
	@echo "make test-fast run those that are not slow and need no browser or workers"
	@echo "make check   lint, check the format and the types"
	@echo "make docs    build the documentation into site/"
	@echo "make tutorials run the tutorials, and keep what their cells show"
	@echo "make quick   run a few cells of every experiment; DATA=..., ANOMALIES=... and HYBRID=... say where data is"
	@echo "make format  format the code as 'make check' requires"
	@echo "make bench   run the benchmarks against other libraries (minutes to hours)"
	@echo "make fuzz    try odd tables, damaged files, questions and streams for a minute; SECONDS=... and SEED=... change that"
	@echo "make mutants break the library in many places, and check that the tests notice; ONLY=... selects some"
	@echo "make release-check build wheel and sdist, install each into an empty environment, and try it there"
	@echo "make random-mutants change operators, numbers and arguments at random; NUMBER=... and SEED=... change that"
	@echo "make clean   remove .venv and everything else that was built"

setup: $(STAMPS)/docs

# Searches of all kinds and saved models need most of the machine code, which is kept beside the modules.
compile: $(STAMPS)/dev
	$(BIN)/python -m pytest tests/frozen -k "search or bytes"

demo: $(STAMPS)/demo
	$(BIN)/spbn demo

test: $(STAMPS)/dev
	$(BIN)/python -m pytest --numprocesses auto --dist worksteal

test-fast: $(STAMPS)/dev
	$(BIN)/python -m pytest --numprocesses auto --dist worksteal -m "not slow and not browser and not cluster"

check: $(STAMPS)/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

docs: $(STAMPS)/docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

tutorials: $(STAMPS)/dev
	$(BIN)/python docs/tutorials.py

quick: $(STAMPS)/dev
	$(BIN)/python -m experiments all --data $(DATA) --quick --jobs 2
	$(BIN)/python -m experiments anomalies --data $(ANOMALIES) --quick --jobs 2
	$(BIN)/python -m experiments hybrid --data $(HYBRID) --quick --jobs 2

format: $(STAMPS)/dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(STAMPS)/bench
	$(BIN)/python benchmarks/kernels.py
	$(BIN)/python benchmarks/hill_climbing.py
	$(BIN)/python benchmarks/pc.py
	$(BIN)/python benchmarks/independence.py
	$(BIN)/python benchmarks/blend.py
	$(BIN)/python benchmarks/curve.py
	$(BIN)/python benchmarks/local_lines.py --only searches
	$(BIN)/python benchmarks/compact.py
	$(BIN)/python benchmarks/hybrid.py
	$(BIN)/python benchmarks/queries.py
	$(BIN)/python benchmarks/exact_inference.py
	$(BIN)/python benchmarks/calibration.py
	$(BIN)/python benchmarks/missing.py
	$(BIN)/python benchmarks/confidence.py
	$(BIN)/python benchmarks/monitoring.py
	$(BIN)/python benchmarks/forecasts.py
	$(BIN)/python benchmarks/scorer.py
	$(BIN)/python benchmarks/report.py
	$(BIN)/python benchmarks/large.py
	$(BIN)/python benchmarks/nonuniform.py

SECONDS ?= 60
SEED ?= 0
fuzz: $(STAMPS)/dev
	$(BIN)/python tools/fuzz.py --seconds $(SECONDS) --seed $(SEED)

mutants: $(STAMPS)/dev
	$(BIN)/python tools/mutants.py $(ONLY)

# Needs the package index, and nothing of .venv.
release-check:
	$(PYTHON) tools/release_check.py

NUMBER ?= 20
random-mutants: $(STAMPS)/dev
	$(BIN)/python tools/random_mutants.py --number $(NUMBER) --seed $(SEED)

# The stamps are newer than what they depend on, so nothing is installed twice.
$(BIN)/python:
	$(PYTHON) -m venv .venv

# The demo needs what a user needs, but no developer tools.
$(STAMPS)/demo: pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[cli,plot]"
	mkdir -p $(STAMPS) && touch $@

$(STAMPS)/dev: pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[dev,plot]"
	mkdir -p $(STAMPS) && touch $@

# With the docs come the developer tools, in one go.
$(STAMPS)/docs: pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[dev,plot,docs]"
	mkdir -p $(STAMPS) && touch $(STAMPS)/dev $@

# PyBNesian reaches the processor through OpenCL: Debian has a driver in pocl-opencl-icd.
$(STAMPS)/bench: $(STAMPS)/dev
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[dev,plot,bench]"
	touch $@

clean:
	rm -rf .venv site .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
