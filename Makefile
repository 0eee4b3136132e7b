# Thin names over cargo, pip and npm: no logic here.
SHELL := /bin/bash
.DEFAULT_GOAL := help
VENV := .venv
PY := $(VENV)/bin/python
EXPLICATE := $(VENV)/bin/explicate

help: ## Lists the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 18

$(VENV)/ready: requirements-test.txt
	python3 -m venv $(VENV)
	$(VENV)/bin/pip install --quiet --disable-pip-version-check -r requirements-test.txt
	touch $@

install: $(VENV)/ready ## Builds everything in release mode: .venv/bin/explicate
	$(VENV)/bin/maturin develop --release --quiet

demo: install ## Runs XCP against NewReno and CUBIC on a long fat pipe and writes a report
	$(EXPLICATE) compare scenarios/long-fat-pipe.toml --protocols xcp,newreno,cubic -o out/demo
	$(EXPLICATE) report out/demo

.PHONY: help install demo
