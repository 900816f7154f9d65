# On a fresh machine with git, make and Python 3.11+, every target sets up what it needs in .venv from the lock files.

PYTHON ?= $(shell for python in python3 python3.14 python3.13 python3.12 python3.11; do \
	"$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo "$$python"; exit; }; \
	done; echo python3)
BIN := .venv/bin
WORKERS ?= auto
PYTEST := -m pytest --numprocesses=$(WORKERS) --dist=worksteal

# What Python has compiled it keeps, whatever the environment says: the tests start it some hundred times.
unexport PYTHONDONTWRITEBYTECODE

# Suites that are slow as a whole are not even imported by `make check`.
SLOW = $(shell grep -l '^pytestmark = .*pytest\.mark\.slow' tests/*.py)

# .venv is environment "a". Each other environment NAME has requirements/env-NAME.txt, lives in .venv-NAME, and runs
# the tests of TESTS_NAME.
ENVIRONMENTS := lowest
TESTS_lowest := tests/test_smoke.py tests/test_circle.py

# What reads, writes, matches and redacts without any I/O is tested whole.
PURE := src/spanreel/protocols/*,src/spanreel/redaction.py,src/spanreel/walk.py,src/spanreel/concealing.py,src/spanreel/policy.py,$(strip \
	src/spanreel/rules.py,src/spanreel/places.py,src/spanreel/tool_places.py,src/spanreel/replay/matching/*,src/spanreel/replay/comparing/*)
PURE_COVERAGE := 97

# In the order in which they are resolved: each keeps to the versions of those before it (see the -c lines).
LOCKS := uv test env-a dev
COMPILE = UV_CUSTOM_COMPILE_COMMAND="make lock" $(BIN)/uv pip compile --quiet --universal --python-version 3.11 \
	--generate-hashes --no-emit-index-url --no-emit-find-links $(UPGRADE)

.DEFAULT_GOAL := help
.PHONY: help demo test check fast lint fix bench bench-ingest collector docs-contract docs-foreign lock clean test-environments

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: .venv/installed ## record an agent into the service, show, replay it: PASS, then FAIL with what changed
	@$(BIN)/python examples/demo.py

test: .venv/installed lint test-environments ## everything, as CI runs it
	$(BIN)/python $(PYTEST) --cov --cov-report=term
	$(BIN)/coverage report --include='$(PURE)' --fail-under=$(PURE_COVERAGE)

check: .venv/installed ## format, lint, types, import contracts, fast tests: about a minute
	@$(MAKE) --no-print-directory --jobs=2 lint fast

fast: .venv/installed
	$(BIN)/python $(PYTEST) -q -m "not slow" --hypothesis-profile=check $(addprefix --ignore=,tests/contract $(SLOW))

lint: .venv/installed
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

test-environments: $(ENVIRONMENTS:%=.venv-%/installed)
	$(foreach name,$(ENVIRONMENTS),.venv-$(name)/bin/python -m pytest $(TESTS_$(name)) &&) true

fix: .venv/installed ## format, and mend what ruff can mend
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: .venv-bench/installed ## measure, beside the peers; prints tables
	@for file in $(filter-out benchmarks/ingest.py,$(wildcard benchmarks/[a-z]*.py)); do \
		.venv-bench/bin/python "$$file" || exit; done

bench-ingest: .venv-ingest/installed ## measure the service, beside Phoenix and MLflow (1 GB of them, half an hour)
	@$(BIN)/python benchmarks/ingest.py --peers .venv-ingest/bin

collector: .collector/otelcol-spanreel ## build the OpenTelemetry Collector that the tests run (Go; minutes at first)

docs-contract: .venv/installed ## run the contract suite, and write what it says to docs/contract.md
	CONTRACT_TABLE=docs/contract.md $(BIN)/python -m pytest -q tests/contract/test_contract.py

docs-foreign: .venv/installed ## replay what others recorded, and write what comes of it to docs/foreign-recordings.md
	FOREIGN_TABLE=docs/foreign-recordings.md $(BIN)/python -m pytest -q -n0 tests/test_foreign_replays.py

lock: .venv/installed ## resolve the lock files again (UPGRADE=--upgrade for today's versions)
	$(COMPILE) requirements/uv.in -o requirements/uv.txt
	$(COMPILE) requirements/test.in -o requirements/test.txt
	$(COMPILE) pyproject.toml requirements/env-a.in -o requirements/env-a.txt
	$(COMPILE) requirements/dev.in -o requirements/dev.txt
	$(COMPILE) pyproject.toml requirements/bench.in -o requirements/bench.txt
	$(COMPILE) --extra collector pyproject.toml requirements/service.in -o requirements/service.txt
	$(COMPILE) requirements/ingest.in -o requirements/ingest.txt
	@# --upgrade: what is locked already would be kept, though lower has been permitted since.
	$(COMPILE) --upgrade --resolution lowest-direct pyproject.toml requirements/env-lowest.in -o requirements/env-lowest.txt

clean: ## remove what the other targets made
	rm -rf .venv .venv-* .collector .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis .coverage* \
		build dist demo-out service-out
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# What Go has compiled once it keeps in caches of its own, for the next time.
.collector/otelcol-spanreel: collector/builder.yaml
	GOFLAGS="$$GOFLAGS -buildvcs=false" go run go.opentelemetry.io/collector/cmd/builder@$$(awk '/^  version:/ { print "v" $$2 }' $<) --config $<

# -- environments ------------------------------------------------------------------------------------------------------

.venv/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "spanreel needs Python 3.11 or newer, and " \
		+ sys.executable + " is " + sys.version.split()[0] + "; name another one: make PYTHON=/path/to/python3.12")'
	$(PYTHON) -m venv --clear .venv
	@touch $@

.venv/installed: .venv/python pyproject.toml $(LOCKS:%=requirements/%.txt)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/uv.txt
	$(BIN)/uv pip sync --quiet --python $(BIN)/python --require-hashes $(LOCKS:%=requirements/%.txt)
	$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --build-constraints requirements/dev.txt --editable .
	@touch $@

# The peers of the benchmarks, apart: some record as soon as they are installed.
.venv-bench/installed: .venv/installed requirements/bench.txt
	$(BIN)/uv venv --quiet --clear --python $(BIN)/python .venv-bench
	$(BIN)/uv pip sync --quiet --python .venv-bench/bin/python --require-hashes requirements/bench.txt
	$(BIN)/uv pip install --quiet --python .venv-bench/bin/python --no-deps --build-constraints requirements/dev.txt \
		--editable .
	@touch $@

# What the service is measured beside; nothing of ours is in it.
.venv-ingest/installed: .venv/installed requirements/ingest.txt
	$(BIN)/uv venv --quiet --clear --python $(BIN)/python .venv-ingest
	$(BIN)/uv pip sync --quiet --python .venv-ingest/bin/python --require-hashes requirements/ingest.txt
	@touch $@

.venv-%/installed: .venv/installed requirements/env-%.txt requirements/test.txt
	$(BIN)/uv venv --quiet --clear --python $(BIN)/python .venv-$*
	$(BIN)/uv pip sync --quiet --python .venv-$*/bin/python --require-hashes requirements/test.txt requirements/env-$*.txt
	$(BIN)/uv pip install --quiet --python .venv-$*/bin/python --no-deps --build-constraints requirements/dev.txt --editable .
	@touch $@
