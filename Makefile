# `make demo` and `make test` set up everything that they need; a second run does almost nothing.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
JOBS ?= $(shell getconf _NPROCESSORS_ONLN)
STAMPS := build/stamps
export CXX  # one compiler and one cmake for all builds, so that ccache finds in one what another has compiled
export CCACHE_BASEDIR := $(CURDIR)

CPP_SOURCES := $(shell find base kernels tokenizer runner backends cmake -type f -not -name '*.md' -not -name '*.py') \
               CMakeLists.txt CMakePresets.json llm_export/program/schema.fbs $(wildcard llm_export/program/CMakeLists.txt)
PYTHON_SOURCES := $(shell find llm_export llm_server backends runner/python tokenizer/python -type f -not -path '*/__pycache__/*')
TEST_SOURCES := $(shell find tests -type f -not -path '*/__pycache__/*')

.PHONY: all setup build demo test test-cpp test-asan test-aarch64 test-python asan tsan fuzz style clean
all: build

$(STAMPS)/system: scripts/install_system_packages.sh
	@mkdir -p $(STAMPS)
	sh scripts/install_system_packages.sh
	@touch $@

# torch comes first and pinned: a later, unpinned request would replace it by a build with gigabytes of GPU libraries.
# executorch has a current XNNPACK, which tests/backends/xnnpack runs; its flatc does not match the system's flatbuffers.
$(STAMPS)/venv: pyproject.toml $(STAMPS)/system
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --upgrade pip
	$(BIN)/pip install --quiet torch==2.13.0
	$(BIN)/pip install --quiet --no-deps executorch==1.5.1 && rm -f $(BIN)/flatc
	$(BIN)/pip install --quiet "scikit-build-core>=0.11" "pybind11>=2.13" "cmake>=3.25,<4" ninja
	@touch $@

$(STAMPS)/build: $(STAMPS)/venv $(CPP_SOURCES) pyproject.toml
	CMAKE_BUILD_PARALLEL_LEVEL=$(JOBS) $(BIN)/pip install --quiet --no-build-isolation --editable '.[test]'
	@touch $@

setup: $(STAMPS)/venv
build: $(STAMPS)/build

demo: out/demo.mote
	printf 'import os\n\n\ndef ' | $(BIN)/mote run out/demo.mote - --max-new-tokens 96

out/demo.mote: $(STAMPS)/build $(PYTHON_SOURCES) $(wildcard examples/demo/*)
	@mkdir -p out
	$(BIN)/mote export examples/demo -o $@

# One target per stage, each skipped when nothing that it reads has changed.
test: test-cpp test-asan test-aarch64 test-python style

test-cpp: $(STAMPS)/test-cpp
$(STAMPS)/test-cpp: $(STAMPS)/venv $(CPP_SOURCES) $(TEST_SOURCES)
	$(BIN)/cmake --preset dev
	$(BIN)/cmake --build --preset dev --parallel $(JOBS)
	$(BIN)/ctest --preset dev --parallel $(JOBS)
	@touch $@

test-asan: $(STAMPS)/test-asan
$(STAMPS)/test-asan: $(STAMPS)/venv out/demo.mote $(CPP_SOURCES) $(TEST_SOURCES)
	$(BIN)/cmake --preset asan
	$(BIN)/cmake --build --preset asan --parallel $(JOBS)
	$(BIN)/ctest --preset asan --parallel $(JOBS)
	build/asan/tests/fuzz/program_mutations --iterations 2000 out/demo.mote
	@touch $@

# The kernels for 64-bit Arm under an emulator, and the demo model's tokens on every CPU that can be had or imitated here.
test-aarch64: $(STAMPS)/test-aarch64
$(STAMPS)/test-aarch64: $(STAMPS)/test-cpp out/demo.mote
	@if [ "$$(uname -s) $$(uname -m)" != "Linux x86_64" ]; then \
	  echo "test-aarch64: skipped, only x86-64 Linux emulates Arm here"; \
	elif ! command -v aarch64-linux-gnu-g++ >/dev/null || ! command -v qemu-aarch64 >/dev/null; then \
	  echo "test-aarch64: skipped, g++-aarch64-linux-gnu and qemu-user are not installed"; \
	else \
	  $(BIN)/cmake --preset aarch64 && $(BIN)/cmake --build --preset aarch64 --parallel $(JOBS) && $(BIN)/ctest --preset aarch64 --parallel $(JOBS); \
	fi
	$(BIN)/python scripts/compare_instruction_sets.py out/demo.mote
	@touch $@

test-python: $(STAMPS)/test-python
$(STAMPS)/test-python: $(STAMPS)/build out/demo.mote $(PYTHON_SOURCES) $(TEST_SOURCES)
	$(BIN)/python -m pytest -n $(JOBS) tests
	@touch $@

asan: test-asan
tsan: $(STAMPS)/venv
	$(BIN)/cmake --preset tsan
	$(BIN)/cmake --build --preset tsan --parallel $(JOBS)
	$(BIN)/ctest --preset tsan --parallel $(JOBS)

# Needs clang with libFuzzer. `make fuzz FUZZ_SECONDS=3600 FUZZ_TARGETS="encode decode"`
FUZZ_SECONDS ?= 60
FUZZ_CXX ?= $(shell command -v clang++-19 || command -v clang++)
fuzz: $(STAMPS)/venv
	$(BIN)/cmake --preset fuzz -DCMAKE_CXX_COMPILER=$(FUZZ_CXX)
	$(BIN)/cmake --build --preset fuzz --parallel $(JOBS)
	sh scripts/fuzz.sh $(FUZZ_SECONDS) $(FUZZ_TARGETS)

style: $(STAMPS)/build
	$(BIN)/ruff check .
	$(BIN)/python scripts/check_style.py
	git ls-files '*.c' '*.cpp' '*.h' | xargs $(BIN)/clang-format --dry-run -Werror

clean:
	rm -rf build out
