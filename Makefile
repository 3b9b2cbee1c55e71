# The commands of this repository. `make` lists them.
SHELL := /bin/sh
.DEFAULT_GOAL := help
.PHONY: help setup build agent agent-arm release release-check packages-test run test test-order check check-prices terraform fuzz keep-version newcomer upgrade-test advisories bench-agent bench-costs bench-detect bench-fleet bench-gpu bench-prices bench-sweep bench-truth mutants picture

export PATH := $(CURDIR)/.setup/bin:$(PATH)
host = $(shell rustc -vV | sed -n 's/^host: //p')
target = $(or $(CARGO_TARGET_DIR),target)
# The agent runs on every machine, so that it is optimised over the borders of its crates, too.
agent_build = cargo build --locked --release --config 'profile.release.lto="thin"' --package

help: ## List the commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## Install what is missing to build and to test, saying what
	@tests/lab/setup.sh test

run: ## Build, then watch this very host: sweeper and agent in the foreground, Ctrl-C ends both
	@tests/lab/setup.sh build
	@sweeper/run-here.sh

# The whole workspace in one call: cargo unites the features of what it builds together, so that naming single
# packages here would build the same dependencies a second time for `cargo test --workspace`.
build: agent ## Build the sweeper (debug) and the node agent (static, release)
	cargo build --locked --workspace

# The GPU helper loads the driver's library, which a static binary cannot: it is linked with this machine's own C library.
agent: ## Build the node agent as one static binary that starts on any kernel, and its GPU helper beside it
	RUSTFLAGS="-C target-feature=+crt-static" $(agent_build) node-agent --target $(host)
	$(agent_build) node-agent-gpu
	install -m 755 $(target)/release/node-agent-gpu $(target)/$(host)/release/

agent-arm: ## Build the node agent for 64-bit Arm (Graviton, Axion), on any machine
	RUSTFLAGS="-C target-feature=+crt-static" CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc \
	    $(agent_build) node-agent --target aarch64-unknown-linux-gnu

# The same for one commit, wherever and whenever it is made; docs/releases.md.
release: ## Make all that a release has, into target/release-VERSION (RELEASE_KEY=FILE signs it, RELEASE_PARTS=agent for the agent alone)
	@tests/lab/setup.sh release
	@packaging/release/release.sh

release-check: ## Make the release of this commit in two folders, and compare them byte by byte (RELEASE_PARTS=agent)
	@tests/lab/setup.sh release
	@packaging/release/check.sh $(RELEASE_PARTS)

packages-test: ## Install, upgrade and remove .deb and .rpm of both programs on a whole Debian 12 in a micro-VM, and check them by lintian and rpmlint (PACKAGES=node-agent.deb for some alone)
	@tests/lab/setup.sh test
	@tests/lab/setup.sh release
	cargo build --locked --workspace --bin sweeper --bin command-pages --bin packages-test
	@packaging/release/try.sh $(PACKAGES)

upgrade-test: build ## Upgrade sweepers and an agent from another commit to this one under load, one after the other, and back again (FROM=COMMIT; a quarter of an hour, mostly builds)
	@tests/lab/setup.sh test
	target/debug/upgrade-test "$$(tests/upgrade/build.sh $(FROM))"

keep-version: build ## Keep a database of this version, and what is said of it, for upgrade tests of later ones (NAME=0.1.0)
	@tests/lab/setup.sh test
	target/debug/record-version tests/data/versions/$(NAME)

newcomer: ## Follow the README in a bare Debian 12 up to the first finding, with times (as root; half an hour on two cores that have nothing else to do)
	@tests/lab/setup.sh test
	cargo build --locked --workspace --bin newcomer-machine
	@tests/newcomer/path.sh $(CURDIR)/target/newcomer

test: ## Everything that CI runs: set-up, checks, and all tests
	@tests/lab/gate.sh

test-order: ## Tell 10,000 histories of a node in disorder, over each database (7 minutes; ORDER_CASES=1000)
	@tests/lab/setup.sh test
	ORDER_CASES=$${ORDER_CASES:-10000} cargo test --locked --workspace --test store heartbeats_in_any_order

# The cheap ones first: a gate that fails should fail soon.
check: ## Format, licences, unused dependencies, lints, documentation
	cargo fmt --all --check
	cargo deny --locked check licenses bans sources
	cargo machete
	cargo clippy --locked --workspace --all-targets -- --deny warnings
	RUSTDOCFLAGS="--deny warnings" cargo doc --locked --workspace --no-deps

terraform: ## Check the Terraform modules without a cloud (2 minutes)
	@tests/lab/setup.sh terraform
	@tests/lab/terraform/check.sh

# Coverage by LLVM's own passes, which the stable compiler has behind RUSTC_BOOTSTRAP; libFuzzer comes with libfuzzer-sys. What was
# found is in target/fuzz/findings, what was learnt in target/fuzz/corpus: both stay for the next run.
FUZZ_SECONDS ?= 60
fuzz_flags = --cfg fuzzing -Zsanitizer=address -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares
fuzz: ## Throw bytes at each parser of strangers' files, FUZZ_SECONDS (60) each (no part of the gate)
	RUSTC_BOOTSTRAP=1 RUSTFLAGS="$(fuzz_flags)" CARGO_TARGET_DIR=target/fuzz cargo build --locked --release --manifest-path fuzz/Cargo.toml --target $(host)
	@set -e; for target in fuzz/fuzz_targets/*.rs; do \
	    name=$$(basename $$target .rs); mkdir -p target/fuzz/corpus/$$name target/fuzz/findings fuzz/seeds/$$name; \
	    echo "fuzzing $$name for $(FUZZ_SECONDS) s"; \
	    target/fuzz/$(host)/release/$$name -max_total_time=$(FUZZ_SECONDS) -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 \
	        $$(test ! -f fuzz/seeds/$$name.dict || echo -dict=fuzz/seeds/$$name.dict) -artifact_prefix=target/fuzz/findings/$$name- target/fuzz/corpus/$$name fuzz/seeds/$$name; \
	done

advisories: ## Compare the dependencies with the RustSec database (needs the network; no part of the gate)
	cargo deny --locked check advisories

bench-agent: agent ## Measure what the agent costs, beside bpftrace and psutil (root, 20 minutes; ARGS="--rounds 3")
	@tests/lab/setup.sh bench
	cargo build --locked --workspace --bin bench-agent
	target/debug/bench-agent $(ARGS)

bench-costs: ## Measure costs by pairs of dimensions, and recommendations, over 500 machines and 30 days, on one core (ARGS="--database postgresql")
	@tests/lab/setup.sh bench
	cargo build --locked --release --workspace --bin sweeper
	cargo build --locked --release --workspace --bin bench-costs
	target/release/bench-costs $(ARGS)

bench-detect: ## Measure all detectors over a snapshot of 50,000 machines, as many volumes, 10,000 jobs (ARGS="--instances 5000")
	cargo build --locked --release --workspace --bin bench-detect
	target/release/bench-detect $(ARGS)

bench-fleet: ## Measure 50,000 nodes with agents: ingest beside a bare driver, answers, sweeps (50 minutes; ARGS="--nodes 2000 --paced-minutes 1")
	@tests/lab/setup.sh bench
	cargo build --locked --release --workspace --bin sweeper
	cargo build --locked --release --workspace --bin bench-fleet
	target/release/bench-fleet $(ARGS)

bench-gpu: agent ## Hold what the agent says of an NVIDIA GPU to what ran there (root, a GPU that nobody else uses, 4 minutes; ARGS=10 for shorter intervals)
	cc -O1 -Wall -Wextra -Werror -o $(target)/$(host)/release/gpu_load tests/lab/gpu_load.c -ldl
	tests/lab/gpu.sh $(target)/$(host)/release $(ARGS)

bench-prices: ## Measure how an offer file of 4 GB is read, and that it needs less than 200 MB of memory (ARGS="--megabytes 200")
	cargo build --locked --release --workspace --bin bench-prices
	target/release/bench-prices $(ARGS)

bench-sweep: ## Measure a sweep of 50,000 machines, beside a bare reader and Cloud Custodian (40 minutes; ARGS="--instances 5000")
	@tests/lab/setup.sh bench
	cargo build --locked --release --workspace --bin sweeper
	cargo build --locked --workspace --bin bench-sweep
	target/debug/bench-sweep $(ARGS)

bench-truth: agent ## Find out how often the verdicts are wrong, ours and others': labelled machines (root, an hour; ARGS="--only terminal")
	@tests/lab/setup.sh test
	cargo build --locked --workspace --bin sweeper --bin bench-truth
	target/debug/bench-truth $(ARGS)

check-prices: ## Hold prices to an independent catalogue, as far as price lists are in its folder (CATALOGUE=DIR; no part of the gate)
	cargo build --locked --workspace --bin check-prices
	target/debug/check-prices $(CATALOGUE)

mutants: ## Change the guards' code, as it is committed, in every way in turn, and see that a test fails each time (15 minutes)
	[ -x .setup/bin/cargo-mutants ] || cargo install cargo-mutants --quiet --locked --version 27.1.0 --root .setup
	rm -rf target/mutants && git worktree prune && git worktree add --quiet --detach target/mutants HEAD
	cd target/mutants && cargo mutants --package guards --output .. $(ARGS)
	git worktree remove --force target/mutants

picture: setup build ## Draw the README's picture anew, from what two machines and a sweeper show (3 minutes)
	SHOWN=$(CURDIR)/target/shown.txt cargo test --locked --workspace --test idle_machine
	.setup/engines/bin/python tests/lab/picture.py target/shown.txt docs/images/sweep.svg
