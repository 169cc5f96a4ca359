# A thin door to CMake: every target installs what it lacks, configures, builds, runs.
# The package list is tools/packages.txt; the build variants are CMakePresets.json.
JOBS := $(shell nproc)
NINJA = cmake --build --preset
PREFIX ?= /usr/local

.PHONY: build demo docs test bench lint format asan tsan avx2 fuzz faults put_back results judge install clean configure configure_all

build: configure  ## the program, build/bin/aloft, and the library: all that is installed
	$(NINJA) rel --target aloft -j $(JOBS)

demo: build  ## trains a GPT in mixed precision on the C++ headers of this machine
	tools/demo

test: configure_all
	$(NINJA) rel -j $(JOBS)
	tools/run_tests rel

bench: configure_all  ## tools/bench names its parts
	$(NINJA) rel -j $(JOBS)
	tools/bench

results: configure  ## most of an hour: the figures of docs/results.md
	$(NINJA) rel --target aloft example_lenet -j $(JOBS)
	tools/results

judge: build  ## about 10 GB from PyPI, once: all that the outside judges say (tools/judge/README.md)
	tools/judge/run

lint: configure_all
	tools/setup lint
	tools/lint

format:
	tools/setup lint
	git ls-files -z '*.cpp' '*.h' | xargs -0 clang-format -i

asan:
	tools/setup build test
	cmake --preset dev
	$(NINJA) dev -j $(JOBS)
	tools/run_tests dev

tsan:
	tools/setup build test tsan
	cmake --preset tsan
	$(NINJA) tsan -j $(JOBS)
	tools/run_tests tsan

avx2: configure_all
	$(NINJA) rel -j $(JOBS)
	tools/run_tests avx2

fuzz:  ## MINUTES a target
	tools/setup build test fuzz
	cmake --preset fuzz
	$(NINJA) fuzz --target fuzzers -j $(JOBS)
	tools/fuzz $(MINUTES)

faults: configure_all  ## ROUNDS, SHARE, SEED, MINUTES (of soak, 60): what kills, harms and starves the program
	$(NINJA) rel --target aloft faults_api_soak short_calls -j $(JOBS)
	python3 -B tests/faults/run_all.py build/bin/aloft --rounds $(or $(ROUNDS),1) \
	  --minutes $(or $(MINUTES),60) $(if $(SEED),--seed $(SEED)) $(if $(SHARE),--share $(SHARE))

put_back: configure_all  ## hours: each bug that was mended, put back, fails its test
	python3 -B tests/faults/put_back.py .

install: build  ## into PREFIX; for a package, below DESTDIR, which CMake reads by itself
	DESTDIR='$(DESTDIR)' cmake --install build --prefix '$(PREFIX)'

docs:  ## an index of the C++ interface, from the headers' comments
	tools/api_index build/docs/api.md

clean:
	rm -rf build build-*

configure:  # what the program needs; tests and benches where their libraries are installed
	tools/setup build
	cmake --preset rel

configure_all:  # in the same build tree, whichever came first
	tools/setup build test
	cmake --preset rel -D ALOFT_TESTS=ON -D ALOFT_BENCH=ON
