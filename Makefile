# Two commands do everything: `make fly` and `make test`. `make check` adds the long checks.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# More than cores: some tests wait in real time.
JOBS ?= 3
INSTRUCTION ?= turn around, pass the barrel on its left and stop in front of the boat
SEED ?= 38

.DEFAULT_GOAL := help
.PHONY: help setup fly test test-cuda lint check images pictures licences audit bench clean

help:
	@echo "make fly     set up, fly one instruction on the CPU, print where the video is"
	@echo "             (make fly INSTRUCTION=\"go to the pumpkin\" SEED=3 for your own sentence)"
	@echo "make test    set up, then ruff, mypy and the tests: about 8 minutes on two cores"
	@echo "             (make test JOBS=8 on more cores)"
	@echo "make check   make test and the long checks"
	@echo "make test-cuda  the tests that need CUDA, with the packages that are installed"
	@echo "make images  render the images in docs/ again"
	@echo "make licences  write docs/licences.md again"
	@echo "make audit   look up known vulnerabilities of dependencies"
	@echo "make clean   remove the environment and build outputs"

setup: $(READY)

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "wordwing needs Python 3.11 or newer; try: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 2; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	@touch $@

fly: export SAY := $(INSTRUCTION)
fly: $(READY)
	@$(BIN)/wordwing fly "$$SAY" --seed $(SEED)

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# Also where the environment says otherwise, compiled modules are kept: a hundred processes import them.
PYTEST = PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 $(BIN)/pytest -n $(JOBS) --dist loadfile --no-loadscope-reorder

test: lint
	$(PYTEST) -m "not long"

check: lint
	$(PYTEST)

# With the Python and the torch that are there; installs nothing.
test-cuda:
	PYTHONPATH=src $(PYTHON) -m pytest -m cuda $$(grep -rl "mark.cuda" tests --include "test_*.py")

pictures: images  # its old name
images: $(READY)
	$(BIN)/wordwing data show landmarks --out docs/landmarks
	$(BIN)/wordwing data show frames --domain sim --corpus field --out docs/frames-sim.png
	$(BIN)/wordwing data show frames --domain lab --corpus cage --out docs/frames-lab.png
	$(BIN)/wordwing fly "turn around, pass the barrel on its left and stop in front of the boat" --seed 38 --out out/picture
	cp out/picture/filmstrip.png docs/flight.png
	$(BIN)/python experiments/own_sentences/own_sentences.py pvn2-sureal docs/own-sentences.webp
	$(BIN)/python scripts/studio_screenshots.py
	$(BIN)/python scripts/report_screenshot.py docs/report.webp results/cage-dev-sim results/cage-dev-sim-bc results/cage-dev-sim-pvn
	$(BIN)/python experiments/first_look/first_look.py plot experiments/first_look/first-look-calibration.jsonl docs/calibration.png
	$(BIN)/wordwing data show examples --corpus field --out docs/examples-field.webp
	$(BIN)/wordwing data show examples --corpus cage --out docs/examples-cage.webp
	$(BIN)/wordwing data show examples --corpus written --out docs/examples-written.webp

licences: $(READY)
	$(BIN)/python scripts/licences.py > docs/licences.md

# Strictly: a package that could not be looked up is an error.
audit:
	$(PYTHON) -m venv $(VENV)-audit
	$(VENV)-audit/bin/python -m pip install --quiet pip-audit
	$(VENV)-audit/bin/pip-audit --strict --no-deps --disable-pip --requirement constraints.txt

bench: $(READY)
	$(BIN)/wordwing bench sim

clean:
	rm -rf $(VENV) $(VENV)-audit out build dist
