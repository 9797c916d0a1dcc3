# Two commands: `make demo` shows what Laconic does, `make test` checks all of it. Both set up .venv first.
# While working: `make check`, which leaves out what takes long.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
CORE := CMakeLists.txt $(wildcard core/*.hpp core/*.cpp bindings/*.hpp bindings/*.cpp)
# Whoever asks Python to keep nothing that it has compiled: hundreds of processes would compile it again.
unexport PYTHONDONTWRITEBYTECODE
# A file's tests stay in one process, which sets up what they share once; tests/conftest.py decides which files begin.
# Three keep two processors busy: many tests wait for others.
TOGETHER := -n 3 --dist loadfile --no-loadscope-reorder
CXX := $(wildcard core/*.hpp core/*.cpp core/tests/*.hpp core/tests/*.cpp bindings/*.hpp bindings/*.cpp)

.PHONY: help demo check test checked-python test-lowest lint types layers core-test python-test quick-test bench torture docs stubs format clean
help:
	@echo "make demo    install, compress the bundled samples, train on one of them, write a report"
	@echo "make test    install, then lint, types, layers, C++ and Python tests"
	@echo "make check   lint, types, layers and the quick Python tests, under two minutes"
	@echo "make bench   measure against zlib, zstd and tokenizers; LACONIC_DATA names a folder of real data"
	@echo "make torture MINUTES=60   fuzz, damage, kill, race, fill the disk, change inputs, let S3 fail, in turns; SEED=1, KEEP=--keep for the docs"
	@echo "make docs    write the tables and pictures that are made from results, then build the documentation: site/index.html"
	@echo "make stubs   write src/laconic/_core.pyi, the types of the compiled core"
	@echo "make format  format the code;   make clean  remove everything that was made"

demo: $(VENV)/installed
	@$(BIN)/python examples/demo.py

# What pip and mypy do takes one processor: meanwhile another one compiles.
test:
	@$(MAKE) --no-print-directory -j 2 core-test checked-python

checked-python: lint types layers
	@MAKEFLAGS= $(MAKE) --no-print-directory python-test

check: lint types layers quick-test

# Only the tests that install the lowest versions that pyproject.toml allows (constraints-lowest.txt).
test-lowest: $(VENV)/installed-dev
	$(BIN)/pytest tests/packaging -k lowest

lint: $(VENV)/installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	@$(BIN)/clang-format --dry-run --Werror $(CXX)

types: $(VENV)/installed-dev
	$(BIN)/mypy

layers: $(VENV)/installed-dev
	$(BIN)/lint-imports

core-test: $(VENV)/created
	$(BIN)/cmake -S . -B build/core-test -G Ninja -DCMAKE_MAKE_PROGRAM=$(abspath $(BIN))/ninja \
	  -DLACONIC_BINDINGS=OFF -DLACONIC_TESTS=ON -DLACONIC_FEWER_HEADERS=ON > /dev/null
	MAKEFLAGS= $(BIN)/cmake --build build/core-test
	$(BIN)/ctest --test-dir build/core-test --output-on-failure -j 2

python-test: $(VENV)/installed-dev
	$(BIN)/pytest $(TOGETHER)

quick-test: $(VENV)/installed-dev
	HYPOTHESIS_PROFILE=quick $(BIN)/pytest $(TOGETHER) -m "not slow and not engine and not browser" \
	  $(addprefix --ignore=tests/,benchmarks cli docs engines experiments inference packaging tools)

bench: $(VENV)/installed-dev
	$(BIN)/python -m benchmarks.compress
	$(BIN)/python -m benchmarks.corpus
	$(BIN)/python -m benchmarks.explore
	$(BIN)/python -m benchmarks.model
	$(BIN)/python -m benchmarks.ngrams
	$(BIN)/python -m benchmarks.rulebook
	$(BIN)/python -m benchmarks.zipped

MINUTES ?= 60
SEED ?= 0
torture: $(VENV)/installed-dev
	$(BIN)/python tools/torture.py --minutes $(MINUTES) --seed $(SEED) $(KEEP)

docs: $(VENV)/installed-dev
	$(BIN)/python tools/index_files.py
	$(BIN)/python tools/reliability_page.py
	$(BIN)/python tools/draw_pictures.py
	$(BIN)/python tools/draw_how.py
	$(BIN)/python -m benchmarks.report
	$(BIN)/python -m experiments.choose decide
	$(BIN)/python -m experiments.counted report
	$(BIN)/python -m experiments.blended report
	$(BIN)/python -m experiments.paper report
	$(BIN)/python -m experiments.converged_page
	$(BIN)/python -m experiments.automatic_page
	$(BIN)/python -m experiments.when_page
	$(BIN)/python -m experiments.accurate report
	$(BIN)/python -m experiments.first_minute report
	$(BIN)/python -m experiments.summary
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict
	@echo "site/index.html"

stubs: $(VENV)/installed-dev
	$(BIN)/python tools/make_stubs.py

format: $(VENV)/installed-dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .
	$(BIN)/clang-format -i $(CXX)

clean:
	rm -rf $(VENV) build dist site .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache

$(VENV)/created: constraints.txt
	@echo "Setting up $(VENV) …"
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) install --quiet --no-compile --constraint constraints.txt pip scikit-build-core nanobind cmake ninja setuptools
	@touch $@

# Editable, so that only a change of C++ or of the packaging needs another build; and without build isolation,
# so that such a build compiles just the files that changed. Of what is installed, Python compiles the small part
# that is imported. PySpark comes as source, which setuptools packs.
INSTALL := PATH="$(abspath $(BIN)):$$PATH" $(PIP) install --quiet --no-compile --constraint constraints.txt \
  --no-build-isolation --editable
INSTALLED_FROM := $(VENV)/created pyproject.toml $(CORE)

$(VENV)/installed: $(INSTALLED_FROM)
	@echo "Building the core, about 20 seconds …"
	@$(INSTALL) ".[dna,report,sklearn]"
	@touch $@

# All in one go: `installed` has nothing that this has not.
$(VENV)/installed-dev: $(INSTALLED_FROM)
	@echo "Building the core and installing what the tests need …"
	@$(INSTALL) ".[dna,ray,report,sklearn,spark,url]" --group dev
	@touch $(VENV)/installed $@
