# The two commands are `make demo` and `make test`; `make help` lists the rest. Everything is built by CMake in build/<preset>.
PRESET ?= release
PREFIX ?= /usr/local
GPU ?= 0
# What each target of `make fuzz` gets; with FUZZ_KEEP=1 the inputs that reach new code join tests/fuzz/corpus.
FUZZ_SECONDS ?= 20
FUZZ_KEEP ?= 0
# One torch-heavy compile takes up to 2 GB, so a machine short of memory runs fewer at once.
JOBS ?= $(shell awk -v n=$$(nproc) '/MemAvailable/ {m = int($$2 / 2097152); if (m < 1) m = 1; print (m < n ? m : n)}' /proc/meminfo)
BUILD := build/$(PRESET)
WHEELS := cpu $(if $(filter 1,$(GPU)),gpu)
CTEST := .ci/run_tests.sh ctest --test-dir $(BUILD) --output-on-failure --timeout 600

.DEFAULT_GOAL := build
.PHONY: help deps configure build build-report demo test test-programs test-all asan tsan check-change fuzz install format clean

help: ## this list
	@awk -F':.*## ' '/^[a-z -]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' Makefile

deps: ## install missing packages (as root) and fetch LibTorch into the user's cache
	@.ci/install_packages.sh
	@.ci/fetch_wheels.sh $(WHEELS) >/dev/null

configure: deps
	@cmake --preset $(PRESET) --log-level=WARNING -DSTARLING_GPU=$(if $(filter 1,$(GPU)),ON,OFF) $(CMAKE_ARGS)

build: configure ## build everything: programs, examples and benchmarks into build/release/bin, tests
	@cmake --build $(BUILD) -j $(JOBS)

build-report: ## the last build's time by target, and its ten slowest headers
	@.ci/build_report.py $(BUILD)

demo: configure ## build what the demo runs, start a head and a second node here, train a tiny model with GRPO, stop everything
	@cmake --build $(BUILD) -j $(JOBS) --target demo_programs
	@examples/demo.sh $(BUILD)/bin

test-programs: configure
	@cmake --build $(BUILD) -j $(JOBS) --target test_programs

test: test-programs ## build and run all tests but the slow ones and those with bounds in seconds
	@.ci/fetch_wheels.sh model >/dev/null
	@$(CTEST) -LE 'slow|timing' -j 2

test-all: test-programs ## those too (one needs 3.6 GB of CUDA wheels, or is skipped), and all that need no LibTorch under the sanitizers
	@.ci/fetch_wheels.sh model >/dev/null
	@.ci/fetch_wheels.sh cpu gpu >/dev/null || echo "the tests of label null_gpu are skipped: no CUDA wheels"
	@$(CTEST) -j 2
	@$(MAKE) asan tsan

asan tsan: deps ## the tests that need no LibTorch (runtime, placement, a part of rl) with address (and undefined) or thread sanitizer
	@cmake --preset $@ && cmake --build build/$@ -j $(JOBS) && .ci/run_tests.sh ctest --test-dir build/$@ --output-on-failure --timeout 600 -LE 'slow|timing' -j 2

check-change: configure ## clang and clang-tidy on the files that differ from the last commit's parent, and their tests under the sanitizers (needs clang)
	@.ci/check_change.py $(BUILD)
	@.ci/sanitize_change.py

fuzz: deps ## libFuzzer on every decoder of outside bytes, FUZZ_SECONDS=20 each (needs clang)
	@command -v clang++ >/dev/null || { echo "clang++ is not installed: apt-get install clang"; exit 1; }
	@cmake --preset fuzz --log-level=WARNING && cmake --build build/fuzz -j $(JOBS) --target fuzzers
	@tests/fuzz/run.sh build/fuzz/fuzz $(FUZZ_SECONDS) $(FUZZ_KEEP)

install: configure ## install to PREFIX (default /usr/local; one of your own needs no root); docs/guide/actors.md: the runtime alone
	@cmake --build $(BUILD) -j $(JOBS) --target installed_files
	@cmake --install $(BUILD) --prefix $(PREFIX)

format: ## write every C++ file as .clang-format says (needs clang-format 14)
	@git ls-files -- '*.cpp' '*.h' '*.cu' | xargs $$(command -v clang-format-14 || echo clang-format) -i

clean: ## remove build folders (the download cache stays)
	@rm -rf build
