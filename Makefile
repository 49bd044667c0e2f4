# Two commands do everything: `make demo` and `make test`.
# PIP_ARGS is handed to pip, so that you pick the build of torch (for example an index of CPU wheels).

PYTHON   ?= python3
VENV     ?= .venv
PIP_ARGS ?=
BIN      := $(VENV)/bin

.PHONY: demo test lint docs bench coverage simulate mutations clean

demo: $(VENV)/.user
	$(BIN)/medground demo

test: $(VENV)/.dev
	$(BIN)/pytest -n auto --dist loadfile
	$(BIN)/pytest --doctest-modules src/medground -q

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# The documentation as a site in `site/`: nothing is loaded from the network, and a dead link is an error.
docs: $(VENV)/.docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

bench: $(VENV)/.dev
	$(BIN)/pytest perf --benchmark-enable --benchmark-only --benchmark-disable-gc -q -s

# Coverage of the intervals and false alarms of the tests, on simulated data: under half an hour on two cores.
simulate: $(VENV)/.dev
	$(BIN)/python -m simulations --sets 2000 --workers 2 --out simulations.json

# Break each rule of decision in a copy of the source: do the tests notice?
mutations: $(VENV)/.dev
	$(BIN)/python -m simulations.mutations

# Runs of three benchmarks, killed 200 times each: predictions, rows and summaries must not differ by a byte.
# Damaged files of 16 kinds, 5,000 of each: every one is read, or refused with a sentence.
torture: $(VENV)/.dev
	$(BIN)/python -m torture --kills 200 --damage 5000

# The kernels run as plain Python here, so that coverage sees their lines.
coverage: $(VENV)/.dev
	NUMBA_DISABLE_JIT=1 $(BIN)/pytest -n auto --dist loadfile tests/imaging tests/metrics tests/running \
	  --cov=medground.imaging --cov=medground.metrics --cov=medground.running \
	  --cov-branch --cov-report=term-missing:skip-covered --cov-fail-under=95

$(VENV)/.user: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet -c constraints.txt $(PIP_ARGS) -e '.[dicom]'
	touch $@

$(VENV)/.dev: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet -c constraints.txt $(PIP_ARGS) -e '.[dev]'
	touch $@ $(VENV)/.user

$(VENV)/.docs: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet -c constraints.txt $(PIP_ARGS) -e '.[docs]'
	touch $@

clean:
	rm -rf $(VENV) site .mypy_cache .ruff_cache .pytest_cache .hypothesis
