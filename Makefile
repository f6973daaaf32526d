# Everything a developer runs. `.ci/run` runs the same targets, in order.

# An import that Package.swift does not declare is an error: Package.swift lists every dependency between modules.
# Colours are an option of the compiler. If they depended on the terminal, a build in a terminal and a build into a file would each
# rebuild everything.
strict := --explicit-target-dependency-import-check error --no-color-diagnostics

.PHONY: help setup build release demo deb test test-trixie soak simulate whole many fleet rolling floods deploy-check deploy-test install-test lint format bench fuzz mutants nightly clean
.DEFAULT_GOAL := help

help: ## shows this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## installs what a Debian 12 or 13 machine with a Swift toolchain lacks (deploy/debian-packages.txt)
	@deploy/setup.sh

build: setup ## builds the product and its tests; warnings are errors
	swift build --build-tests $(strict)

release: ## builds .build/release/perennial, which needs no Swift runtime where it runs
	@deploy/setup.sh product
	swift build -c release --product perennial --static-swift-stdlib $(strict) \
		--disable-local-rpath -Xlinker -z -Xlinker now
	@# The program must not load libraries from its own folder, and its table of calls (GOT) must be read-only once it runs.
	@! readelf -d .build/release/perennial | grep -E 'R(UN)?PATH'
	@readelf -d .build/release/perennial | grep -q BIND_NOW

demo: release ## runs the whole pipeline in one process, without configuration; FOR=30s ends it after 30 s, KAFKA=HOST:PORT uses a real broker
	@.build/release/perennial demo $(if $(FOR),--for '$(FOR)') $(if $(KAFKA),--kafka '$(KAFKA)')

deb: release ## builds a Debian package, .build/deb/perennial_VERSION_ARCH.deb; MAINTAINER='Name <address>'
	@$(if $(MAINTAINER),MAINTAINER='$(MAINTAINER)') deploy/package.sh

test: build ## runs the tests that every change needs; tests on a real broker need KAFKA_HOME (and Java 17) or KAFKA_BOOTSTRAP_SERVERS
	@Tests/Interop/setup.sh
	@Tests/run.sh test

soak: build ## runs the tests that take long: kills, broker failures, replays and floods on a real broker, and 300 simulated seeds
	@Tests/Interop/setup.sh
	@Tests/run.sh soak

test-trixie: setup ## builds and tests with the libraries of Debian 13, in a chroot; needs root; TARGET=soak
	@TARGET='$(TARGET)' Tests/trixie.sh

simulate: setup ## runs the workers in a simulation with faults, 300 seeds; SEED=n repeats one run, SEEDS=10000 runs more seeds
	@SEED='$(SEED)' SEEDS='$(SEEDS)' Tests/simulate.sh

whole: build release ## sends the notifications of 20,000 subscribers through ingest, workers and replays that are killed, and runs inspect after a million ticks; SUBSCRIBERS=5000
	@[ -n "$$KAFKA_HOME$$KAFKA_BOOTSTRAP_SERVERS" ] || { echo "make whole: set KAFKA_HOME or KAFKA_BOOTSTRAP_SERVERS" >&2; exit 2; }
	PERENNIAL_TEST_SUBSCRIBERS='$(or $(SUBSCRIBERS),20000)' PERENNIAL_TEST_TICKS=1000000 \
		PERENNIAL_TEST_PROGRAM='$(CURDIR)/.build/release/perennial' swift test --skip-build --no-parallel \
		--filter '^BrokerTests\..*(of a whole installation|however often all of them are killed|shows what the worker has published)'

many: build ## makes processes, disks and brokers of an installation on three brokers fail for MANY_SECONDS=120
	@[ -n "$$KAFKA_HOME" ] || { echo "make many: set KAFKA_HOME to an unpacked Kafka 3.9 or later" >&2; exit 2; }
	PERENNIAL_TEST_MANY_SECONDS='$(or $(MANY_SECONDS),120)' \
		swift test --skip-build --no-parallel --filter '^BrokerTests\..*Many processes on three brokers'

fleet: ## runs three brokers and six workers on hosts of their own at 500 notifications a second, while hosts, brokers and disks fail, and judges all of it; FLEET_SECONDS=300, FLEET_RATE=500
	@Tests/fleet.sh check '$(or $(FLEET_SECONDS),300)' '$(or $(FLEET_RATE),500)'
	@$(MAKE) --no-print-directory build release
	@Tests/fleet.sh '$(or $(FLEET_SECONDS),300)' '$(or $(FLEET_RATE),500)'

rolling: build release ## restarts all workers one by one at 500 notifications a second: how long each partition stands still, and why; ROLLING_SECONDS=300, ROLLING_RATE=500
	@[ -n "$$KAFKA_HOME" ] || { echo "make rolling: set KAFKA_HOME to an unpacked Kafka 3.9 or later" >&2; exit 2; }
	PERENNIAL_TEST_ROLLING_SECONDS='$(or $(ROLLING_SECONDS),300)' PERENNIAL_TEST_FLEET_RATE='$(or $(ROLLING_RATE),500)' \
		PERENNIAL_TEST_PROGRAM='$(CURDIR)/.build/release/perennial' \
		swift test --skip-build --no-parallel --filter '^BrokerTests\..*A rolling restart under load'

floods: build release ## floods ingest with every kind of request that needs no key, and genuine notifications among them; FLOOD_SECONDS=60, FLOOD=chain
	@[ -n "$$KAFKA_HOME$$KAFKA_BOOTSTRAP_SERVERS" ] || { echo "make floods: set KAFKA_HOME or KAFKA_BOOTSTRAP_SERVERS" >&2; exit 2; }
	$(if $(FLOOD),PERENNIAL_TEST_FLOOD_KIND='$(FLOOD)') PERENNIAL_TEST_FLOOD_SECONDS='$(or $(FLOOD_SECONDS),60)' \
		PERENNIAL_TEST_PROGRAM='$(CURDIR)/.build/release/perennial' \
		swift test --skip-build --no-parallel --filter '^BrokerTests\..*An ingest under a flood'

deploy-check: ## checks the files of deploy/ against their schemas and against the settings and commands that there are
	@deploy/check.sh

deploy-test: $(if $(PERENNIAL),,release) ## runs all runbooks on a whole installation, and makes alerts fire in a real Prometheus; PERENNIAL=PROGRAM builds nothing
	@[ -n "$$KAFKA_HOME" ] || { echo "make deploy-test: set KAFKA_HOME to an unpacked Kafka 3.9 or later" >&2; exit 2; }
	@failed=0; deploy/tests/runbooks.py || failed=1; deploy/tests/alerts.py || failed=1; exit $$failed

install-test: ## runs the steps of the Dockerfile and installs the package in clean systems of Debian 12 and 13; needs root; SUITE=trixie
	@failed=0; for suite in $(or $(SUITE),bookworm trixie); do deploy/tests/install.sh "$$suite" || failed=1; done; exit $$failed

lint: setup ## checks the format of all Swift files
	swift format lint --strict --parallel --recursive Package.swift Sources Tests

format: setup ## formats all Swift files
	swift format --in-place --parallel --recursive Package.swift Sources Tests

bench: setup ## measures the promised speeds on a real broker, and compares them with limits of the same run; ROWS="verification ingest"
	@Tests/Interop/setup.sh
	swift build -c release --static-swift-stdlib --package-path Tests/Benchmarks --product bench
	Tests/Benchmarks/.build/release/bench $(ROWS)

fuzz: setup ## runs every parser on generated input, FUZZ_SECONDS=10 for each; TARGET=jws runs one parser, KEEP=1 adds to the corpus
	@FUZZ_SECONDS='$(FUZZ_SECONDS)' TARGET='$(TARGET)' KEEP='$(KEEP)' Tests/Fuzz/run.sh

mutants: setup ## removes or changes guarding lines one at a time and expects the named tests to fail; GROUP=commit-path, ONE=name, SINCE=commit, MOST=15, LANES=2
	@LANES='$(LANES)' GROUP='$(GROUP)' ONE='$(ONE)' SINCE='$(SINCE)' MOST='$(MOST)' Tests/Mutants/run.sh

nightly: setup ## runs everything at full length and writes the results into Tests/nightly.md; PART=tests, trixie, soak, simulation, whole, many, fleet, rolling, deploy, install, mutants, fuzz or bench
	@PART='$(PART)' GROUP='$(GROUP)' Tests/nightly.sh

clean: ## removes what was built
	rm -rf .build Tests/Benchmarks/.build Tests/Fuzz/.build
