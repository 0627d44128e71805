# SPDX-License-Identifier: BSD-2-Clause
# Programs that know their own stacks, for tests/sample.bats: one source, by every compiler and in every way that changes
# what a walker sees. stackdump prints what kprof saw.

STACKS_DIR := $(BUILD)/stacks
STACKS_FLAGS := -D_GNU_SOURCE -g -Wall -Wextra -Werror -Wno-unused-parameter -Wno-unused-function -fno-builtin -pthread
STACKS_OPTIMIZED := $(foreach cc,gcc clang,$(foreach o,0 1 2 3,$(foreach fp,omit keep,$(cc)-O$(o)-$(fp))))
STACKS_SPECIAL := gcc-O2-static gcc-O2-static-pie gcc-O2-nopie gcc-O2-debugframe clang-O2-debugframe gcc-O2-lazy \
	gcc-O2-stripped gcc-O1-cet musl-O2 musl-O2-static musl-O0
STACKS_NATIVE := $(STACKS_OPTIMIZED) $(STACKS_SPECIAL)
STACKS_THROWS := $(foreach cc,gcc clang,$(foreach o,0 1 2 3,$(cc)-O$(o)-omit)) gcc-O2-static

stacks_cc = $(if $(findstring musl,$1),musl-gcc -static-libgcc -fexceptions -Wl$(comma)--eh-frame-hdr,$(if $(findstring clang,$1),$(CLANG),gcc))
stacks_has = $(if $(filter $2,$(subst -, ,$1)),$3)
stacks_flags = -$(word 2,$(subst -, ,$1)) $(call stacks_has,$1,omit,-fomit-frame-pointer) \
	$(call stacks_has,$1,keep,-fno-omit-frame-pointer) $(call stacks_has,$1,nopie,-no-pie -fno-pie) \
	$(if $(findstring static-pie,$1),-static-pie -fPIE,$(call stacks_has,$1,static,-static)) \
	$(call stacks_has,$1,debugframe,-DSHADOW_ONLY -fno-asynchronous-unwind-tables -fno-unwind-tables) \
	$(call stacks_has,$1,lazy,-fplt -Wl$(comma)-z$(comma)lazy) $(call stacks_has,$1,stripped,-s) \
	$(call stacks_has,$1,cet,-fcf-protection=full)
comma := ,

STACKS_MADE := gcc-O2-omit clang-O2-omit gcc-O2-keep
STACKS_PROGRAMS := $(STACKS_NATIVE:%=$(STACKS_DIR)/native/%) $(STACKS_THROWS:%=$(STACKS_DIR)/throws/%) \
	$(STACKS_MADE:%=$(STACKS_DIR)/made/%)

$(STACKS_DIR)/native/%: tests/stacks/native.c tests/stacks/shadow.h
	$(call say,CC,$@)
	@mkdir -p $(@D)
	$(Q)$(call stacks_cc,$(@F)) -std=gnu11 $(STACKS_FLAGS) $(call stacks_flags,$(@F)) -o $@ $<

$(STACKS_DIR)/made/%: tests/stacks/made.c tests/stacks/shadow.h
	$(call say,CC,$@)
	@mkdir -p $(@D)
	$(Q)$(call stacks_cc,$(@F)) -std=gnu11 $(STACKS_FLAGS) $(call stacks_flags,$(@F)) -o $@ $<

$(STACKS_DIR)/throws/%: tests/stacks/throws.cpp tests/stacks/shadow.h
	$(call say,CXX,$@)
	@mkdir -p $(@D)
	$(Q)$(subst clang,clang++,$(subst gcc,g++,$(call stacks_cc,$(@F)))) -std=gnu++17 $(STACKS_FLAGS) \
		$(call stacks_flags,$(@F)) -o $@ $<

# Where there is a compiler for them: scripts/setup check installs both.
STACKS_RUST := $(if $(shell command -v rustc),$(STACKS_DIR)/known-rust)
GO := $(or $(shell command -v go),$(wildcard $(or $(KPROF_CACHE),/var/cache/kprof)/tools/bin/go))
STACKS_GO := $(if $(GO),$(STACKS_DIR)/known-go)

$(STACKS_DIR)/known-rust: tests/stacks/known.rs
	$(call say,RUSTC,$@)
	@mkdir -p $(@D)
	$(Q)rustc --edition 2021 -O -g -o $@ $<

$(STACKS_DIR)/known-go: tests/stacks/known.go
	$(call say,GO,$@)
	@mkdir -p $(@D)
	$(Q)GO111MODULE=off GOFLAGS= $(GO) build -o $@ $<

$(STACKS_DIR)/stackdump: tests/stacks/stackdump.c $(BUILD)/libkprof.a
	$(call say,CC,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) -MMD -MP $< -o $@ $(LDFLAGS) $(BUILD)/libkprof.a $(LIBS)

stacks: $(STACKS_PROGRAMS) $(STACKS_RUST) $(STACKS_GO) $(STACKS_DIR)/stackdump
test-programs: stacks
.PHONY: stacks
-include $(STACKS_DIR)/stackdump.d
