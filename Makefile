# `make train` and `make test` each do the whole set-up on first use: a virtual environment in .venv, nothing outside it.
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.ready
# One thread a process: two stall at random on shared machines, and results are bit for bit the same for one thread count.
export OMP_NUM_THREADS ?= 1
export MKL_NUM_THREADS ?= 1

.PHONY: setup train test test-slow lint docs gpu-site clean

setup: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	touch $@

train: $(STAMP)
	$(BIN)/omegagnn train

test: $(STAMP)
	$(BIN)/python -m pytest -m "not slow" $(PYTEST_ARGS)

test-slow: $(STAMP)
	$(BIN)/python -m pytest -m slow $(PYTEST_ARGS)

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: $(STAMP)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

# Pure and small wheels for machines whose Python 3.12 has torch and Triton but not these: `PYTHONPATH=src:.gpu-site` there.
gpu-site: $(STAMP)
	rm -rf .gpu-site && mkdir -p .gpu-site
	$(BIN)/python -m pip download --quiet --disable-pip-version-check --dest .gpu-site --python-version 312 --only-binary :all: pydantic
	cd .gpu-site && for wheel in *.whl; do ../$(BIN)/python -m zipfile -e $$wheel . && rm $$wheel; done

clean:
	rm -rf site .venv .pytest_cache .mypy_cache .ruff_cache .import_linter_cache dist build
