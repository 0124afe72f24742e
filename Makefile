# Front door. Every target is a few commands that can be typed by hand.
VENV ?= .venv
PY := $(VENV)/bin/python
PIP := $(PY) -m pip install -q --disable-pip-version-check
export PATH := $(abspath $(VENV))/bin:$(PATH)
NATIVE_SOURCES := CMakeLists.txt $(shell find cpp cuda -type f 2>/dev/null)
# Passed on to pytest, for example: make test ARGS="-k topk"
ARGS ?=
SEED ?= 7

.DEFAULT_GOAL := help
.PHONY: help demo test native-test sanitize lint format bench scorecard soak wheel clean

help: ## Show the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

# A stamp a dependency set, so that the demo does not wait for the test tools.
$(VENV)/.build-tools: pyproject.toml
	test -x $(PY) || python3 -m venv $(VENV)
	$(PIP) -U 'pip>=25.1'
	$(PIP) --group build
	@touch $@

$(VENV)/.native: $(VENV)/.build-tools $(NATIVE_SOURCES)
	$(PIP) --no-build-isolation -e '.[cli]'
	@touch $@

$(VENV)/.test-tools: $(VENV)/.build-tools pyproject.toml
	$(PIP) --group test
	@touch $@

$(VENV)/.lint-tools: $(VENV)/.build-tools pyproject.toml
	$(PIP) --group lint
	@touch $@

demo: $(VENV)/.native ## Build if needed, then watch depth follow lent capacity (at most 60 s)
	$(VENV)/bin/elastic-rank demo --seed $(SEED) $(ARGS)

test: $(VENV)/.native $(VENV)/.test-tools ## Build if needed, then run the Python tests
	$(PY) -m pytest -q $(ARGS)

native-test: $(VENV)/.build-tools ## Native tests (needs Debian's doctest-dev)
	cmake --workflow --preset dev

sanitize: $(VENV)/.native $(VENV)/.test-tools ## Native tests under ASan+UBSan and TSan; the extension under ASan+UBSan
	cmake --workflow --preset asan
	cmake --workflow --preset tsan
	tests/sanitized_extension.sh $(PY)

lint: $(VENV)/.native $(VENV)/.test-tools $(VENV)/.lint-tools ## Formatting, types, stub and layer rules
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	git ls-files 'cpp/*.?pp' 'tests/cpp/*.cpp' 'cuda/*.cu' 'cuda/*.hpp' | xargs $(VENV)/bin/clang-format --dry-run -Werror
	$(PY) -m mypy
	$(PY) -m mypy.stubtest elastic_rank._native --allowlist tests/typing/stubtest_allowlist.txt
	$(PY) -m mypy --strict tests/typing
	$(VENV)/bin/lint-imports

format: $(VENV)/.lint-tools ## Format everything
	$(PY) -m ruff check --fix-only -q .
	$(PY) -m ruff format .
	git ls-files 'cpp/*.?pp' 'tests/cpp/*.cpp' 'cuda/*.cu' 'cuda/*.hpp' | xargs $(VENV)/bin/clang-format -i

bench: $(VENV)/.native $(VENV)/.test-tools ## Our own microbenchmarks (pytest-benchmark)
	$(PY) -m pytest -q bench --benchmark-only -o testpaths=bench -o python_files='bench_*.py' $(ARGS)

PART ?= all
scorecard: wheel ## Ratios to peers, in an environment of its own: make scorecard PART=topk
	bench/scorecard.sh $(PART)

soak: $(VENV)/.native $(VENV)/.test-tools ## Scorecard rows that take longer than a minute
	$(PY) -m bench.soak

wheel: $(VENV)/.build-tools ## Build the wheel into dist/
	rm -rf dist
	$(PY) -m pip wheel -q --no-deps --no-build-isolation -w dist .

clean: ## Remove build products, keep the environment
	rm -rf build dist
