# SPDX-License-Identifier: BSD-2-Clause
# Targets that run tests. tests/run runs and counts; the targets here define what is built before, and what is run.

export BUILD
ASAN := $(BUILD)/asan
ASAN_FLAGS := -fsanitize=address,undefined -fno-sanitize-recover=undefined
ASAN_CFLAGS := -O1 -g1 -fno-omit-frame-pointer $(ASAN_FLAGS) -fsanitize=fuzzer-no-link \
	-D__SANITIZE_ADDRESS__ -Wno-missing-field-initializers -Wno-gnu-variable-sized-type-not-at-end
# Those that ask for Pythons with torch. Not the ones whose programs want a certain release, or that only need any.
TORCH_TESTS ?= $(sort $(shell grep -lE '^[^\#]*\$$\((pythons|newest_python)\)' tests/*.bats))
SOAK_TESTS ?= $(wildcard tests/kill*.bats tests/soak*.bats tests/soak/*.bats) tests/processes.bats tests/shares.bats

check: ## everything that must hold, on a fresh machine too (about 35 minutes on two CPUs)
	$(Q)scripts/setup build
	$(Q)$(MAKE) $(CHECK_JOBS) --no-print-directory tools all sanitized-library
	$(Q)$(MAKE) $(CHECK_JOBS) --no-print-directory environments test-programs
	$(Q)KPROF_SETUP=check tests/run

CHECK_JOBS = $(if $(JOBS),-j$(shell expr $$(nproc) + 1))

# Beside the compiler, since most of it is waiting for the network.
tools:
	$(Q)scripts/setup tools
environments:
	$(Q)scripts/setup check

# The programs that tests need besides kprof; tests/*/*.mk add their own.
test-programs: unit-programs sanitized-programs

unit-programs: $(UNIT_BIN)

# The unit tests and the fuzzers, with one library under the sanitizers for both. What the sources are generated from is the
# same; so is what is generated, the kernel's programs among it. Of debug information, lines are enough for a report. One make
# makes one of these targets.
SANITIZED := sanitized-library sanitized-units sanitized-fuzzers sanitized-programs
sanitized-library: sanitized_targets = $(ASAN)/libkprof.a $(ASAN)/cmd.a
sanitized-units: sanitized_targets = unit-programs
sanitized-fuzzers: sanitized_targets = fuzz-programs
sanitized-programs: sanitized_targets = unit-programs fuzz-programs
$(SANITIZED): | $(SKEL) $(TEXT_GEN) $(PROTO_GEN:.c=.h)
	$(Q)grep -qsxF '$(CLANG) $(ASAN_CFLAGS)' $(ASAN)/.made-by || { rm -rf $(ASAN) && mkdir -p $(ASAN) && \
		echo '$(CLANG) $(ASAN_CFLAGS)' >$(ASAN)/.made-by; }
	$(Q){ [ -L $(ASAN)/gen ] || rm -rf $(ASAN)/gen; } && ln -sfnr $(BUILD)/gen $(ASAN)/gen
	$(Q)$(MAKE) --no-print-directory BUILD=$(ASAN) SKEL= CC='$(CLANG)' CFLAGS='$(ASAN_CFLAGS)' LDFLAGS='$(ASAN_FLAGS)' \
		$(sanitized_targets)

unit: $(UNIT_BIN) ## build and run the unit tests
	$(Q)tests/run $^

unit-asan: sanitized-units ## the same under the address and undefined-behaviour sanitizers
	$(Q)tests/run $(UNIT_SRC:tests/%.c=$(ASAN)/%)

test: all test-programs ## the suites in tests/*.bats, or T='tests/a.bats …' of them
	$(Q)tests/run $(or $(T),$(sort $(wildcard tests/*.bats)))

lint: all ## format, layers, circles, licences, static analysis
	$(Q)tests/run scripts/lint

format: ## rewrite C to the house style
	$(Q)scripts/lint reformat

format-page: $(BUILD)/unit/store/page ## the tables of records in docs/capture-format.md, from user/store/records.c
	$(Q)KPROF_FORMAT_PAGE=write $<

bench: all ## ratios against torch.profiler, medians (docs/benchmarks.md)
	$(Q)tests/bench/run

fuzz-short: sanitized-fuzzers ## all fuzzers, 74 s of CPU time together
	$(Q)tests/run scripts/fuzz

# Compares how kprof and libdw read the unwind tables of every library on this machine.
soak-unwind: $(BUILD)/unit/symbol/unwind/unwind
	$(Q)KPROF_UNWIND_FILES=/usr/lib tests/run $<

soak: all test-programs soak-unwind ## kill -9 a thousand times, all unwind tables of /usr/lib; hours
	$(Q)KPROF_SOAK=1 KPROF_LINT_NODES=225000 BATS_TEST_TIMEOUT=36000 tests/run $(SOAK_TESTS) scripts/lint

releases: all test-programs ## the suites that have PyTorch, on releases between those of make check
	$(Q)scripts/setup releases
	$(Q)for python in $${KPROF_CACHE:-/var/cache/kprof}/other-torch-*/bin/python; do \
		KPROF_TORCH_PYTHONS=$$python tests/run $(TORCH_TESTS) || exit; done

backends: all test-programs ## push to a real OpenTelemetry collector, and to decoders of others, which are built first
	$(Q)scripts/setup backends
	$(Q)tests/run tests/soak/backends.bats

kernels: ## a small suite on Debian's kernels 6.1 and 6.12, emulated
	$(Q)scripts/kernels

check-kernel: all workloads ## what `make kernels` runs inside
	$(Q)tests/run tests/kernel.bats

.PHONY: check tools environments test-programs unit-programs $(SANITIZED) unit unit-asan test lint format format-page fuzz-short bench soak soak-unwind releases backends kernels check-kernel
