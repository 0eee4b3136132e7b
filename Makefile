# Thin names over cargo, pip and apt: no logic here.
SHELL := /bin/bash
.DEFAULT_GOAL := help
VENV := .venv
# For `maturin develop`, which does not pass on that it is to be quiet.
export PIP_QUIET := 1
PY := $(VENV)/bin/python
EXPLICATE := $(VENV)/bin/explicate
SECONDS_EACH ?= 10
# What is not possible on this machine: scripts/parts.py gives each part a file of its own.
NOT_RUN ?= target/not-run
PORTABLE := -p explicate-core -p explicate-laws -p explicate-scenario -p explicate-build -p explicate-sim -p explicate-fluid -p explicate-py
COVERED := -p explicate-core -p explicate-laws -p explicate-scenario -p explicate-build -p explicate-sim

help: ## Lists the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*##/\t/' | expand -t 12

$(VENV)/ready: requirements-test.txt
	@scripts/needs
	python3 -m venv $(VENV)
	$(VENV)/bin/pip install --quiet --disable-pip-version-check -r requirements-test.txt
	touch $@

# Of the tests' environment what the command itself needs, at the same versions: 4 packages with theirs, not 90.
$(VENV)/runs: requirements-test.txt
	@scripts/needs
	python3 -m venv $(VENV)
	$(VENV)/bin/pip install --quiet --disable-pip-version-check --constraint requirements-test.txt maturin polars rich shtab
	touch $@

install: $(VENV)/ready ## Builds everything in release mode; leaves .venv/bin/explicate
	scripts/fetch_uplot
	$(VENV)/bin/maturin develop --release --quiet
	$(VENV)/bin/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable papers

demo: $(VENV)/runs ## Builds, runs XCP against NewReno and CUBIC on a long fat pipe, and writes a report
	scripts/fetch_uplot
	$(VENV)/bin/maturin develop --release
	$(EXPLICATE) demo -o out/demo

# The order, what is made once for several parts, and which parts take turns: scripts/parts.toml.
test: ## Everything that needs no root; ends with what each part took, and what could not run here
	@scripts/needs
	python3 scripts/parts.py test

rest: ## What needs root, other toolchains or packages: costs, fuzzing, papers, packages, site, playground
	@scripts/needs
	python3 scripts/parts.py rest

ci: ## What decides whether a change lands: `test`, and of `rest` what the change touches and what has its turn
	.ci/run

test-all: ## All of both; fills the table of docs/development.md, and records in tests/parts.json that this tree passed
	@scripts/needs
	python3 scripts/parts.py test rest --resume --strict --markdown docs/development.md --record

# `make measure ARGS="--only gateway soak"` measures a part; `ARGS=--record` replaces the recorded figures.
measure: install compiled browser playground ## What depends on how fast this machine is today, beside what is recorded: needs root
	scripts/packages $(LINUX) ethtool:ethtool curl:curl ss:iproute2
	cargo build --release -p explicate-net
	EXPLICATED=target/debug/explicated $(PY) scripts/measure.py $(ARGS)

# MODES of `scripts/stress.py`: busy, core, stops.
stress: install compiled ## The tests where their processes get little time; goes on where it was
	$(PY) scripts/stress.py $(ARGS)

compiled: # The Rust tests, for `rust`, `lab` and `root`
	env -u MAKEFLAGS cargo test --no-run

lint: lint-rust lint-python ## Formatting, clippy, Rust documentation, types and style of the Python

lint-rust:
	cargo fmt --all --check
	rustfmt --edition 2024 --check crates/explicate-core/src/{protocols,recovery,qdisc,channel,medium}/*.rs
	cargo clippy --workspace --all-targets --quiet -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --quiet

lint-python: $(VENV)/ready
	$(VENV)/bin/ruff check
	$(VENV)/bin/ruff format --check
	$(VENV)/bin/mypy

# Without make's job server, which is not open to this recipe: rustdoc would warn.
rust: compiled ## Rust tests: no root, no network, no Python
	env -u MAKEFLAGS cargo test

long-runs: compiled ## Runs of the simulator that take minutes: the guard beside all protocols, all combinations of three
	cargo test --test runs -- --ignored

# With `explicate-py`, whose libraries `install` has built.
repeat: ## A release build computes what a debug build computes
	cargo test --release -p explicate-sim -p explicate-py --test repeatability --test reference

# Tests are named without `-p`: another choice of packages has other features, and would be built again.
lab: compiled ## Programs in network namespaces of a user's own, where the kernel allows that
	@if ! scripts/in_namespace --possible; then \
		mkdir -p $(dir $(NOT_RUN)); \
		echo "programs in namespaces (crates/explicate-net/tests/linux): as root, make linux" >$(NOT_RUN); \
	else \
		scripts/in_namespace cargo test --offline --test linux -- --ignored --test-threads=4 --skip timed:: --skip root::; \
	fi

LINUX := ip:iproute2 ping:iputils-ping sysctl:procps tshark:tshark nft:nftables faketime:faketime

linux: root ## Programs and laboratory in network namespaces: needs root, and fails without
	cargo test --test linux -- --ignored --test-threads=4 --skip timed:: --skip root::

root: install compiled ## Of these only what `lab` leaves out, for a user's own namespace cannot do it
	scripts/packages $(LINUX)
	cargo test --test linux -- --ignored root::
	EXPLICATED=target/debug/explicated $(PY) -m pytest -q python/tests/linux_worlds.py python/tests/linux_gateway.py

hostile: ## Ten million hostile frames and datagrams, through a router and through sockets
	cargo test --test hostile --test loopback -- --ignored --test-threads=1 ten_million

MINUTES ?= 30
soak: compiled ## Connections through two gateways beside faults by chance, for MINUTES; needs root
	scripts/packages ip:iproute2 sysctl:procps nft:nftables
	SOAK_MINUTES=$(MINUTES) cargo test --test linux -- --ignored --nocapture timed::soak::

gateway-bench: $(VENV)/ready ## Transfers through two gateways beside kernel TCP; needs root; fills docs/gateway.md
	scripts/packages ip:iproute2 ping:iputils-ping sysctl:procps nft:nftables ethtool:ethtool curl:curl haproxy:haproxy kcptun-client:kcptun ssh:openssh-client sshd:openssh-server ss:iproute2
	cargo build --release -p explicate-net
	PYTHONPATH=bench nice -n -15 $(PY) -m gateway_bench target/release/explicated --markdown docs/gateway.md
	$(MAKE) gateway-connections

gateway-connections: $(VENV)/ready ## The gateway alone with 1, 10 and 100 connections, 15 minutes; needs root; fills docs/gateway.md
	scripts/packages ip:iproute2 ping:iputils-ping sysctl:procps nft:nftables ethtool:ethtool curl:curl ssh:openssh-client sshd:openssh-server ss:iproute2
	cargo build --release -p explicate-net
	PYTHONPATH=bench nice -n -15 $(PY) -m gateway_bench target/release/explicated --connections --runs 3 --markdown docs/gateway.md

browser:
	scripts/packages chromium:chromium npm:npm tshark:tshark tc:iproute2
	scripts/fetch_uplot --required

packages: ## Debian packages that the tests use, if they are missing
	scripts/packages chromium:chromium valgrind:valgrind

python: install browser ## Python tests, the report in a real browser, the tutorial notebook
	$(PY) -m pytest --require-native -m "not papers" --numprocesses=2 --dist=worksteal
	$(PY) -m pytest -q --numprocesses=2 --dist=loadfile -c /dev/null --rootdir . -p no:cacheprovider tests bench validation

pages: install browser ## The documentation is as the sources are, and its commands print what it shows
	$(PY) scripts/make_docs.py --check
	$(PY) scripts/run_pages.py --check
	$(PY) scripts/frictions.py --check

coverage: $(VENV)/ready ## Which lines of the crates the Rust tests reach; fills docs/development.md
	rustup component add llvm-tools
	cargo llvm-cov --version >/dev/null 2>&1 || cargo install --locked cargo-llvm-cov@0.9.1
	cargo llvm-cov --html $(COVERED)
	cargo llvm-cov report --json --summary-only --output-path target/coverage.json
	$(PY) scripts/coverage_table.py target/coverage.json docs/development.md

coverage-python: install browser ## Which statements of the Python packages their tests reach; fills docs/development.md
	$(PY) -m coverage run --data-file=target/coverage --source=python/explicate,papers/explicate_papers -m pytest --require-native -q
	$(PY) -m coverage json --data-file=target/coverage -q -o target/coverage-python.json
	$(PY) scripts/coverage_table.py target/coverage-python.json docs/development.md

PAPERS := N I Y D K

papers: papers-frozen $(PAPERS:%=papers-%) ## Repeats a fixed shard of the papers' experiments; fails if a verdict or a frozen judge changed

papers-frozen: install
	$(PY) scripts/freeze_papers.py --check

# The tests use the runs of the shard. Their ids begin with the letter of a paper.
$(PAPERS:%=papers-%): papers-%: install
	rm -rf target/papers/$*
	$(PY) scripts/papers_record.py --paper $* --store target/papers/$*
	EXPLICATE_PAPERS_STORE=$(CURDIR)/target/papers/$* $(PY) -m pytest -q --require-native -m papers -k "[$*:" -p no:cacheprovider

gallery: install ## Repeats all experiments of the papers; leaves out/papers/index.html
	-$(EXPLICATE) reproduce all --quick --controls -o out/papers >/dev/null
	$(PY) scripts/make_reproduction.py out/papers

multiverse: install ## Replaces each choice of the papers by each alternative; hours, resumable; leaves tests/multiverse.json and its tables in docs
	mkdir -p out/papers
	test -f out/papers/multiverse.json || cp tests/multiverse.json out/papers
	$(EXPLICATE) reproduce --multiverse all -o out/papers
	cp out/papers/multiverse.json tests/multiverse.json
	$(PY) scripts/make_reproduction.py

joint: install ## Compares joint settings of a paper with its numbers: PAPER=N, HOURS=3 at most, resumable; leaves tests/joint.json and its page
	mkdir -p out/papers
	test -f out/papers/multiverse.json || cp tests/multiverse.json out/papers
	test -f out/papers/joint.json || test ! -f tests/joint.json || cp tests/joint.json out/papers
	$(EXPLICATE) reproduce --joint $(or $(PAPER),all) --hours $(or $(HOURS),3) -o out/papers
	cp out/papers/joint.json tests/joint.json
	$(PY) scripts/make_joint.py

bits: install ## Runs what is missing of the study of bits, its quick form; leaves tests/study-bits.json, docs/study-bits.md and its figures
	$(EXPLICATE) study bits --quick --store out/study -o tests/study-bits.json
	$(PY) scripts/make_bits.py

modern: install ## Runs what is missing of the modern verdict on the papers, its quick form; leaves tests/study-papers.json, docs/study-papers.md and its figures
	$(EXPLICATE) study papers --quick --store out/study -o tests/study-papers.json
	$(PY) scripts/make_modern.py

capacity: install ## Runs what is missing of the study of measured capacities, its quick form; leaves tests/study-capacity.json, its page and its figure
	$(EXPLICATE) study capacity --quick --store out/study-capacity -o tests/study-capacity.json
	$(PY) scripts/make_capacity.py

l4s: install ## Runs what is missing of the study of what may share the queues of L4S, its quick form; leaves tests/study-l4s.json and its page
	$(EXPLICATE) study l4s --quick --store out/study-l4s -o tests/study-l4s.json
	$(PY) scripts/make_l4s.py

wheel: $(VENV)/ready ## Builds the abi3 wheel and that of the papers, and tries both in an empty environment without Rust
	scripts/packages npm:npm
	scripts/fetch_uplot --required
	$(VENV)/bin/maturin build --release --quiet --out dist
	$(VENV)/bin/pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation --wheel-dir dist ./papers
	scripts/try_wheel dist
	scripts/try_newcomer dist

elsewhere: ## What is not `explicated` compiles for Windows, macOS and musl (where rustup can install their libraries)
	rustup target add x86_64-pc-windows-gnu aarch64-apple-darwin x86_64-unknown-linux-musl
	cargo check --quiet --target x86_64-unknown-linux-musl --package explicate-sim
	cargo check --quiet --target x86_64-pc-windows-gnu $(PORTABLE)
	cargo check --quiet --target aarch64-apple-darwin $(PORTABLE)

windows: install ## The Rust tests for Windows, but for `explicated`, under Wine; with WINDOWS_PYTHON=FOLDER the package too
	scripts/packages /usr/lib/wine/wine64:wine64 x86_64-w64-mingw32-gcc:gcc-mingw-w64-x86-64-posix unzip:unzip
	rustup target add x86_64-pc-windows-gnu
	scripts/try_windows $(subst -p explicate-py,,$(PORTABLE))

workflows: ## The workflows of .github are valid
	scripts/packages go:golang-go
	go run github.com/rhysd/actionlint/cmd/actionlint@v1.7.7

$(VENV)/dist: $(VENV)/ready requirements-dist.txt
	$(VENV)/bin/pip install --quiet --disable-pip-version-check -r requirements-dist.txt
	touch $@

dist: $(VENV)/dist ## All that a release uploads, in dist/: 19 minutes of processor time
	scripts/packages npm:npm
	scripts/fetch_uplot --required
	PATH=$(CURDIR)/$(VENV)/bin:$$PATH $(PY) scripts/dist.py

dist-part: $(VENV)/dist ## The part of `make dist` that CI builds: static program, Debian package, bills of materials; tries them
	rm -rf dist
	PATH=$(CURDIR)/$(VENV)/bin:$$PATH $(PY) scripts/dist.py daemon deb sbom sums --arch $$(uname -m)
	scripts/try_dist dist

dist-try: ## Tries what `make dist` left, each in an empty environment: needs root
	scripts/try_dist dist

man: $(VENV)/ready ## Makes the man page of explicate from its parser
	$(PY) scripts/make_man.py

playground: ## Builds the simulator for browsers and its page; leaves playground/dist
	scripts/packages npm:npm
	playground/build

playground-test: playground-equal playground-page ## Tables equal to native ones, and the page in a real browser

playground-equal: playground compiled
	cd playground && npm test --silent -- test/build.test.mjs test/equal.test.mjs

playground-page: playground browser
	cd playground && npm test --silent -- test/page.test.mjs

playground-speed: playground ## A browser's speed beside that of a native release build
	cd playground && npm test --silent -- test/timed/speed.test.mjs

extend: extend-tree extend-crate ## One file and one line make a protocol, and so does a crate of its own or a Python class

extend-tree: $(VENV)/ready
	$(PY) tests/one_file_one_line.py

extend-crate: $(VENV)/ready
	$(PY) tests/own_protocol.py

# As `cargo test` has built it, with checks of overflows.
fuzz-short:
	cargo run --quiet --bin explicate-fuzz -- all --seconds $(SECONDS_EACH)

fuzz: ## Fuzzes the parsers for minutes
	cargo run --release --quiet -p explicate-fuzz -- all --seconds 300

cost: cost-engine cost-entries ## Instructions per packet-hop against their limit

cost-engine: install packages
	$(PY) bench/cost.py
	$(PY) bench/cost_million.py --judge
	$(PY) bench/cost_queue.py --judge
	$(PY) bench/scone_cost.py --judge

cost-entries: install packages
	$(PY) bench/cost_rows.py --judge

cost-rows: install packages ## What every entry of the registry costs; fills docs/performance.md
	$(PY) bench/cost_rows.py --markdown docs/performance.md

cost-profile: install packages ## Which functions the instructions go to, and the floor; fills docs/performance.md
	$(PY) bench/profile_cost.py --markdown docs/performance.md
	$(EXPLICATE) bench --floor --json | $(PY) bench/floor_table.py docs/performance.md

cost-scaling: install packages ## Cost against flows, bandwidth-delay product and links; fills docs/performance.md
	$(PY) bench/cost_scaling.py --markdown docs/performance.md

cost-million: install packages ## Cost with up to a million flows over 100 links; fills docs/performance.md
	$(PY) bench/cost_million.py --markdown docs/performance.md

cost-queue: install packages ## What the event queue costs where times are bad for it; fills docs/performance.md
	$(PY) bench/cost_queue.py --markdown docs/performance.md

cost-scone: install packages ## What a SCONE element adds to a frame at a router; fills docs/performance.md
	$(PY) bench/scone_cost.py --markdown docs/performance.md

cost-accept: install packages ## Makes today's counts the ones that `make cost` judges by
	$(PY) bench/cost_rows.py --accept --markdown docs/performance.md

bench: install packages ## What the engine costs; fills docs/performance.md
	$(PY) bench/cost.py --markdown docs/performance.md

peers: install ## ns-2, ns-3 and Explicate side by side; installs them; fills the tables in docs
	$(PY) validation/peers/peers.py --install
	$(PY) validation/peers/peers.py --markdown docs/ --bench-binary bench/bench_once
	$(PY) validation/peers/compared.py --jobs 2 --markdown docs/validation.md

kernel-tcp: install ## The simulator's TCP beside the recorded kernel's: bounds, and a cause for each cell outside
	$(PY) validation/kernel_tcp.py --set stack=linux --check

kernel-peers: $(VENV)/ready ## The kernel's TCP on the scenes of validation/kernel_scenes.py: needs root and hours; goes on where it stopped
	scripts/packages ip:iproute2 sysctl:procps
	cargo build --release -p explicate-net
	$(PY) validation/kernel_record.py

sweep-cost: install ## What a sweep costs, and what a second core brings; fills docs/sweeps.md
	$(PY) bench/sweep_cost.py --markdown docs/sweeps.md

validation: install ## Recomputes docs/validation.md
	$(PY) validation/make.py

docs: install ## Recomputes docs/reference and the outputs that the pages show
	$(PY) scripts/make_docs.py
	$(PY) scripts/run_pages.py

site: install browser ## Builds the documentation site, checks it and tries it in a browser; leaves out/site/index.html
	scripts/packages npm:npm
	$(PY) scripts/make_site.py
	$(PY) -m pytest -q -p no:cacheprovider python/tests/site_pages.py

clean: ## Removes what was built
	rm -rf target .venv dist out

.PHONY: compiled long-runs measure stress root help install demo test coverage coverage-python rest test-all lint lint-rust lint-python rust repeat lab hostile linux browser packages python pages papers gallery multiverse joint bits modern capacity l4s wheel extend fuzz-short fuzz cost cost-engine cost-entries cost-rows cost-profile cost-scaling cost-million cost-queue cost-scone cost-accept bench peers kernel-peers kernel-tcp sweep-cost validation docs site clean elsewhere windows workflows dist dist-part dist-try man playground playground-test playground-equal playground-page playground-speed gateway-bench gateway-connections soak ci papers-frozen $(PAPERS:%=papers-%) extend-tree extend-crate
