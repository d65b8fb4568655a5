# Needs Python 3.11 or later and a C compiler; everything else goes into .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# no byte code for whole packages: it takes longer than compiling what is imported of them; wheels
# only: what would have to be built is refused by name
PIP_INSTALL := $(BIN)/python -m pip --disable-pip-version-check install --quiet --no-compile \
	--only-binary :all:
SOURCES := pyproject.toml meson.build $(shell find src -type f -not -path '*/__pycache__/*')

# the tests' matrices are small: BLAS threads would only wait for each other
export OPENBLAS_NUM_THREADS ?= 1
# nothing is byte-compiled at installation: where Python is told to write none, every process of the
# tests would compile what it imports anew, for seconds
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test test-slow test-browser test-oldest test-wheel test-interop sanitize lint docs check-site clean

demo: $(VENV)/demo.stamp
	$(BIN)/python -m tausvm.demo

# in as many processes as there are cores
test: lint
	$(BIN)/python -m pytest -n auto

test-slow: $(VENV)/test.stamp
	$(BIN)/python -m pytest -m slow

# the oldest declared dependencies, in .venv-oldest; some minutes
test-oldest:
	PYTHON=$(PYTHON) .ci/oldest -n auto

# a wheel, judged by auditwheel, installed without a compiler and tested there, in .wheel; some minutes
test-wheel:
	PYTHON=$(PYTHON) .ci/wheel

# what is skipped elsewhere: examples and displays that show large packages of others
test-interop: $(VENV)/test.stamp
	$(BUILD_AND_INSTALL) '.[plot,test,docs,interop]'
	$(BIN)/python -m pytest -k "conformal or frames or polars or reliability or diagonal"

# report pages in chromium, at three widths, light and dark; needs chromium and chromedriver
test-browser: $(VENV)/test.stamp
	$(BIN)/python -m pytest -m browser

# the cores under address and undefined-behaviour sanitizers, by both compilers; some minutes
sanitize: $(VENV)/test.stamp
	PYTEST_ADDOPTS="-n auto" .ci/sanitize gcc clang

lint: $(VENV)/test.stamp
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

# warnings are errors; examples that did not change are not run again
docs: $(VENV)/docs.stamp
	$(BIN)/python -m sphinx -W -q -b html docs docs/_build/html

# every page of the site in chromium: links, console, width, on a phone and a desk, light and dark
check-site: docs
	$(BIN)/python -m tests.site docs/_build/html

clean:
	rm -rf $(VENV) .venv-oldest .wheel .sanitize dist demo docs/_build docs/generated docs/examples docs/portraits .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find src tests -type d -name __pycache__ -exec rm -rf {} +

# The build's own requirements go into .venv too: no second copy of them is fetched for an
# isolated build, and the build folder is kept, so only what changed is compiled again.
$(VENV)/build.stamp: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "tausvm needs Python 3.11 or later; make PYTHON=<path> names one" >&2; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -c 'import tomllib; project = tomllib.load(open("pyproject.toml", "rb")); \
		print(*project["build-system"]["requires"], "ninja", sep="\n")' > $(VENV)/build.txt
	$(PIP_INSTALL) -r $(VENV)/build.txt
	touch $@

BUILD_AND_INSTALL = PATH="$(abspath $(BIN)):$$PATH" $(PIP_INSTALL) --no-build-isolation \
	--config-settings=build-dir=$(VENV)/build

$(VENV)/demo.stamp: $(VENV)/build.stamp $(SOURCES)
	$(BUILD_AND_INSTALL) '.[plot]'
	touch $@

# what the tests need includes what the demo needs
$(VENV)/test.stamp: $(VENV)/build.stamp $(SOURCES)
	$(BUILD_AND_INSTALL) '.[plot,test,docs]'
	touch $(VENV)/demo.stamp $@

# the site's examples show packages of others, too
$(VENV)/docs.stamp: $(VENV)/test.stamp
	$(BUILD_AND_INSTALL) '.[plot,test,docs,interop]'
	touch $@
