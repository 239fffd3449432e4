# What a developer runs. It needs make and Python 3.11 or newer; the rest is installed into
# .venv (and .venv-oldest) here. Choose another Python with: make test PYTHON=python3.12

.DEFAULT_GOAL := help
ifndef BESIDE_EACH_OTHER
.NOTPARALLEL:
endif
.PHONY: help demo test checks style types compiled oldest environments nightly others bench bench-scale bench-ui screenshots browser calibration clean

VENV := .venv
OLDEST := .venv-oldest
PYTHONS := $(or $(PYTHON),python3.13 python3.12 python3.11 python3 python)
# Those that are supported.
OTHERS := 3.11 3.12 3.13
PIP := -m pip install -q --no-input --disable-pip-version-check
METADATA := pyproject.toml runtime/stageprof_runtime/version.py
RELEASE = $(shell sed -n 's/^ *"distributed>=\([0-9.]*\).*/\1/p' pyproject.toml)
# Tests that measure nothing wait more than they compute; the longest files come first.
BESIDE := -n 4 --dist loadfile --no-loadscope-reorder
# The slow ones compute: with as many at once as above what they see is the crowd.
FEWER := -n 2 --dist loadfile --no-loadscope-reorder
# Hundreds of processes import the same modules: each would compile them anew.
unexport PYTHONDONTWRITEBYTECODE

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-11s %s\n", $$1, $$2 }' Makefile

demo: $(VENV)/.base ## profile a real computation; leaves demo.stageprof and the page demo.html
	@$(VENV)/bin/stageprof demo
	@$(VENV)/bin/stageprof report demo.stageprof -o demo.html --force

test: ## check style, types and imports, then run the quick tests
	@$(MAKE) -s --no-print-directory -j3 BESIDE_EACH_OTHER=1 environments
	@nice -n 5 $(MAKE) -s --no-print-directory types >$(VENV)/types.txt 2>&1 & types=$$!; \
	$(MAKE) -s --no-print-directory -j3 BESIDE_EACH_OTHER=1 style compiled oldest && \
	echo "== quick tests; those marked nightly are LEFT OUT (deselected below): make nightly" && \
	$(VENV)/bin/python -m pytest -q $(BESIDE) -m "not nightly and not alone"; quick=$$?; \
	wait $$types; types=$$?; cat $(VENV)/types.txt; test $$types = 0 && exit $$quick
	@echo "== those that measure time or memory, one by one"
	$(OLDEST)/bin/python -m pytest -q -m "smoke and not nightly and alone"
	$(VENV)/bin/python -m pytest -m "alone and not nightly"

checks: style types

style: $(VENV)/.dev
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/lint-imports --no-logo

# As tests wait for clusters and browsers they leave a third of the processors to spare.
types: $(VENV)/.dev
	@echo "== types"
	$(VENV)/bin/mypy --strict

# What is imported first is compiled: once here, and not by each of the processes that test.
compiled: $(VENV)/.dev
	@$(VENV)/bin/python -m pytest -q --collect-only -m "not nightly" >/dev/null || true

oldest: $(OLDEST)/.smoke
	@echo "== smoke tests on the oldest supported release of dask and distributed; no other test runs there"
	$(OLDEST)/bin/python -m pytest -q $(BESIDE) -m "smoke and not nightly and not alone"

# Here every process of a cluster is a new interpreter, as with users; `make test` forks them.
nightly: export STAGEPROF_TESTS_FRESH = 1
nightly: $(VENV)/.dev browser ## run the tests that are too slow for make test
	@failed=; \
	$(MAKE) -s --no-print-directory others || failed=1; \
	$(VENV)/bin/python -m pytest -q $(FEWER) --timeout=3600 -m "nightly and not alone" || failed=1; \
	echo "== those that measure time or memory, one by one"; \
	$(VENV)/bin/python -m pytest --timeout=3600 -m "nightly and alone" && test -z "$$failed"

# The Python of $(VENV) has had all tests; the others get those that depend on Python and pandas.
others: $(VENV)/.dev ## run the smoke tests on the other Pythons that are installed
	@for version in $(OTHERS); do \
	    if $(VENV)/bin/python -V | grep -q " $$version\."; then continue; fi; \
	    found=; for python in python$$version $$HOME/.pyenv/versions/$$version.*/bin/python; do \
	        $$python -c 'import venv, ensurepip' 2>/dev/null && found=$$python && break; \
	    done; \
	    if [ -z "$$found" ]; then \
	        echo "== NO PYTHON $$version: its smoke tests are SKIPPED; install it to run them"; \
	        continue; \
	    fi; \
	    echo "== smoke tests on Python $$version"; \
	    test -x .venv-$$version/bin/python || $$found -m venv .venv-$$version || exit 1; \
	    .venv-$$version/bin/python $(PIP) -e '.[test]' pytest-xdist || exit 1; \
	    .venv-$$version/bin/python -m pytest -q $(BESIDE) -m "smoke and not nightly and not alone" \
	        || exit 1; \
	done

bench: $(VENV)/.bench ## measure overhead and the reading of a million tasks
	@for script in benchmarks/overhead.py benchmarks/million.py; do \
	    echo "== $$script"; $(VENV)/bin/python "$$script" || exit 1; \
	done

bench-scale: $(VENV)/.dev ## measure cost against size, up to ten million tasks; takes ten minutes and 20 GB
	$(VENV)/bin/python benchmarks/scale.py --write

# All that the tests need.
environments: $(VENV)/.dev $(OLDEST)/.smoke browser

# The tests of the app look at it in Chromium, which Debian packages.
browser:
	@command -v chromium chromium-browser google-chrome >/dev/null && exit 0; \
	if command -v apt-get >/dev/null && [ "$$(id -u)" = 0 ]; then \
	    echo "== installing Chromium for the tests of the app"; \
	    { apt-get install -y -qq chromium || { apt-get update -qq && apt-get install -y -qq chromium; }; } \
	        >/dev/null 2>&1 && exit 0; \
	fi; \
	echo "== NO CHROMIUM: the tests of the app in a browser are SKIPPED; install it to run them"

bench-ui: $(VENV)/.dev browser ## measure how fast the app draws in Chromium
	$(VENV)/bin/python benchmarks/app.py

screenshots: $(VENV)/.dev browser ## write pictures of all pages of the app to docs/screenshots
	$(VENV)/bin/python docs/screenshots.py

calibration: $(VENV)/.dev ## compare predicted savings with measured ones; writes docs/calibration.md
	$(VENV)/bin/python benchmarks/calibration.py --rounds 3 --write docs/calibration.md

clean: ## remove the environments, the caches and the demo's recording
	rm -rf $(VENV) $(OLDEST) $(OTHERS:%=.venv-%) dist build demo.stageprof demo.html
	rm -rf .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Stamps: each says that its environment holds what pyproject.toml asks for.

$(VENV)/.base: $(METADATA)
	$(call environment,$(VENV))
	$(call install,$(VENV),-e '.[ui]')
	@touch $@

$(VENV)/.dev: $(METADATA)
	$(call environment,$(VENV))
	@echo "== installing what the tests and checks need into $(VENV)"
	$(call install,$(VENV),-e '.[dev]')
	@touch $(VENV)/.base $@

# performance_report, one of those compared, draws with bokeh.
$(VENV)/.bench: $(VENV)/.dev
	@echo "== installing what the benchmarks need into $(VENV)"
	$(call install,$(VENV),-e '.[dev,ui]')
	@touch $@

# The release is the lower bound in pyproject.toml, with the pandas and click that its users have.
$(OLDEST)/.smoke: $(METADATA)
	$(call environment,$(OLDEST))
	$(call install,$(OLDEST),-e '.[test]' pytest-xdist 'pandas<3' 'click<8.2' \
	    $(foreach name,dask distributed,$(name)==$(RELEASE)))
	@touch $@

# $(call environment,DIR): a virtual environment in DIR, unless a working one is there. Asking
# each Python to run passes over the stubs that version managers leave for those not installed.
define environment
@$(1)/bin/python -m pip --version >/dev/null 2>&1 && exit 0; \
for python in $(PYTHONS); do \
    if $$python -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; \
    then \
        echo "== making $(1) with $$($$python --version); the first time takes minutes"; \
        exec $$python -m venv --clear $(1); \
    fi; \
done; \
echo "stageprof: found no Python >= 3.11 with venv among: $(PYTHONS). Install one, or name it: make PYTHON=/path/to/python3" >&2; \
exit 1
endef

# $(call install,DIR,WHAT): into the environment in DIR. What takes pip minutes takes uv seconds; but uv
# does not read how pip is set up, so where it cannot, pip does. Modules are compiled as they are imported.
define install
@$(1)/bin/python $(PIP) uv && $(1)/bin/uv pip install -q --python $(1)/bin/python $(2) \
    || { echo "== uv could not; with pip it takes minutes"; $(1)/bin/python $(PIP) --no-compile $(2); }
endef
