# A thin front for CMake, which is the truth. `make help` lists the targets.
BUILD := build
JOBS := $(shell nproc 2>/dev/null || echo 2)
# Progress for people; only warnings and errors for log files.
QUIET := $(shell test -t 2 || echo -- --quiet)
CONFIGURE := cmake -G Ninja -DCMAKE_BUILD_TYPE=Release
CTEST_FLAGS := --output-on-failure --no-tests=error -j $(JOBS)

.DEFAULT_GOAL := all
.PHONY: all deps build run test asan bench docs install clean help

all: build

help:
	@echo "make          install what is missing and build build/cutaway"
	@echo "make run      train a small network on Fashion-MNIST and show the result"
	@echo "make test     build and run all tests, also under sanitizers"
	@echo "make asan     build and run the fast tests under sanitizers only"
	@echo "make bench    build and run the benchmarks, beside PyTorch where it is installed"
	@echo "make install  install the command, the libraries and the headers (PREFIX=/usr/local)"
	@echo "make docs     write a page for every op to build/docs/ops"
	@echo "make deps     install the Debian packages that are missing"
	@echo "make clean    delete the build folder"

# `make deps` always looks; the build looks again only when the list has changed.
deps:
	@tools/install_deps.sh
	@mkdir -p $(BUILD) && touch $(BUILD)/deps.stamp

$(BUILD)/deps.stamp: tools/debian-packages.txt tools/install_deps.sh
	@tools/install_deps.sh
	@mkdir -p $(BUILD) && touch $@

$(BUILD)/build.ninja: | $(BUILD)/deps.stamp
	@$(CONFIGURE) -S . -B $(BUILD)

build: $(BUILD)/deps.stamp $(BUILD)/build.ninja
	@cmake --build $(BUILD) -j $(JOBS) $(QUIET)

# One CPU variant, without optimisation (that halves the compile time), invariants on (no NDEBUG).
ASAN_VARIANT := $(shell grep -qw avx2 /proc/cpuinfo 2>/dev/null && echo avx2 || echo scalar)
$(BUILD)/asan/build.ninja: | $(BUILD)/deps.stamp
	@cmake -G Ninja -S . -B $(BUILD)/asan -DCMAKE_BUILD_TYPE=Debug "-DCMAKE_CXX_FLAGS_DEBUG=-O0 -g1" \
	  -DCUTAWAY_SANITIZE=address,undefined -DCUTAWAY_VARIANTS=$(ASAN_VARIANT)

build-asan: $(BUILD)/deps.stamp $(BUILD)/asan/build.ninja
	@cmake --build $(BUILD)/asan -j $(JOBS) $(QUIET)
.PHONY: build-asan bench-overhead

run: build
	@$(BUILD)/cutaway train --model convnet --data fashion-mnist --epochs 4 --seed 1

# Several tests run side by side: their idle threads must not spin for long.
test: build build-asan
	@GOMP_SPINCOUNT=$${GOMP_SPINCOUNT:-2000} ctest --test-dir $(BUILD)/all $(CTEST_FLAGS)

asan: build-asan
	@ctest --test-dir $(BUILD)/asan $(CTEST_FLAGS)

# BENCH takes further options, such as BENCH="--quick --workload mlp".
HAS_TORCH = $(shell for p in python3 /usr/bin/python3; do \
	$$p -c 'import numpy, torch' 2>/dev/null && echo yes && break; done)
bench: build
	@mkdir -p $(BUILD)/bench
	@$(BUILD)/cutaway bench $(if $(HAS_TORCH),--vs torch) --dtype f32,bf16 \
	  --json $(BUILD)/bench/bench.json --svg $(BUILD)/bench/bench.svg $(BENCH)
	@$(MAKE) --no-print-directory bench-overhead

# The price of a call, apart from its arithmetic, and of the header.
bench-overhead: build
	@$(BUILD)/cutaway_bench
	@tools/check_header_time.sh $(BUILD)

PREFIX ?= /usr/local
install: build
	@cmake --install $(BUILD) --prefix $(PREFIX)

docs: build
	@$(BUILD)/cutaway ops --pages $(BUILD)/docs/ops

clean:
	@rm -rf $(BUILD)
