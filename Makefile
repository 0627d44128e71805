# SPDX-License-Identifier: BSD-2-Clause
# kprof. `make help` lists the targets; scripts/setup installs what they need.

CC ?= gcc
CLANG ?= clang
BPFTOOL ?= bpftool
PROTOC_C ?= protoc-c
AR ?= ar
PREFIX ?= /usr/local
V ?= 0
Q = $(if $(filter 1,$(V)),,@)
say = $(if $(filter 1,$(V))$(findstring s,$(firstword -$(MAKEFLAGS))),@:,@printf '  %-8s %s\n' '$(1)' '$(2)')

# For targets that build and then run something: all cores, unless the caller has said how many.
JOBS = $(if $(findstring -j,$(MAKEFLAGS)),,-j$(shell nproc))

BUILD ?= build
# The same folder has one name: what a file depends on is kept by names.
BUILD := $(patsubst $(CURDIR)/%,%,$(BUILD))
CFLAGS ?= -O2 -g
WARN := -Wall -Wextra -Werror -Wstrict-prototypes -Wmissing-prototypes -Wno-unused-parameter
CPPFLAGS_ALL := -D_GNU_SOURCE -Iinclude -Iuser -I$(BUILD)/gen $(CPPFLAGS)
CFLAGS_ALL := -std=gnu11 -fPIC $(WARN) $(CFLAGS)
LIBS := -lbpf -ldw -lelf -lzstd -lz -lcjson -lprotobuf-c -liberty -llzma -lpthread -lm -ldl
# Of the program alone: the screen of kprof top, what the daemon tells systemd, its HTTP.
CMD_LIBS := -lncursesw -ltinfo -lsystemd -lmicrohttpd

# Everything under user/ but cmd is the library.
LIB_SRC := $(sort $(filter-out user/cmd/%,$(shell find user -name "*.c")))
# What the library's sources include under their own paths: the messages of formats that a .proto describes, and
# texts that go into an output as they are.
PROTO_GEN := $(patsubst user/%.proto,$(BUILD)/gen/%.pb-c.c,$(sort $(shell find user -name "*.proto")))
TEXT_GEN := $(patsubst user/%,$(BUILD)/gen/%.h,$(sort $(shell find user -name "*.css" -o -name "*.js" -o -name "*.html")))
LIB_OBJ := $(LIB_SRC:%.c=$(BUILD)/obj/%.o) $(PROTO_GEN:$(BUILD)/gen/%.c=$(BUILD)/obj/gen/%.o)
CMD_SRC := $(sort $(shell find user/cmd -name "*.c"))
CMD_OBJ := $(CMD_SRC:%.c=$(BUILD)/obj/%.o)
# The one that defines the shared maps first: bpftool's linker gets them wrong when an extern comes before.
# `kprof dump` has an object of its own, which recordings need not load.
BPF_ALONE := bpf/dump.bpf.c bpf/ksym.bpf.c
BPF_SRC := bpf/span.bpf.c $(filter-out bpf/span.bpf.c $(BPF_ALONE),$(sort $(wildcard bpf/*.bpf.c)))
BPF_OBJ := $(BPF_SRC:%.bpf.c=$(BUILD)/%.bpf.o)
SKEL := $(BUILD)/gen/kprof.skel.h $(BPF_ALONE:bpf/%.bpf.c=$(BUILD)/gen/%.skel.h)

.DELETE_ON_ERROR:
.DEFAULT_GOAL := all

all: $(BUILD)/kprof $(BUILD)/libkprof.so $(BUILD)/kprof.1 ## build kprof and the library

# The first build says what is missing, instead of a compiler's error; then never asked again.
$(BUILD)/.tools:
	$(Q)CC='$(CC)' CLANG='$(CLANG)' BPFTOOL='$(BPFTOOL)' scripts/check-tools build || { \
		echo 'hint: scripts/setup build installs it (Debian 12)' >&2; exit 1; }
	@mkdir -p $(@D) && touch $@

$(BUILD)/bpf/%.bpf.o: bpf/%.bpf.c $(wildcard bpf/*.h include/kprof/*.h) | $(BUILD)/.tools
	$(call say,BPF,$<)
	@mkdir -p $(@D)
	$(Q)$(CLANG) -O2 -g -Wall -Werror -target bpf -mcpu=v3 -D__TARGET_ARCH_x86 -Iinclude -ffile-prefix-map=$(CURDIR)=. \
		-I/usr/include/$(shell uname -m)-linux-gnu -c $< -o $@

$(BUILD)/kprof.bpf.o: $(BPF_OBJ)
	$(call say,LINK,$@)
	$(Q)$(BPFTOOL) gen object $@ $^

$(BPF_ALONE:bpf/%.bpf.c=$(BUILD)/%.bpf.o): $(BUILD)/%.bpf.o: $(BUILD)/bpf/%.bpf.o
	$(call say,LINK,$@)
	$(Q)$(BPFTOOL) gen object $@ $<

$(SKEL): $(BUILD)/gen/%.skel.h: $(BUILD)/%.bpf.o
	$(call say,SKEL,$@)
	@mkdir -p $(@D)
	$(Q)echo '/* NOLINTBEGIN: generated */' > $@ && $(BPFTOOL) gen skeleton $< name $*_bpf >> $@ && \
		echo '/* NOLINTEND */' >> $@

$(BUILD)/obj/%.o: %.c | $(BUILD)/.tools
	$(call say,CC,$<)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) -MMD -MP -c $< -o $@

$(filter $(BUILD)/obj/user/capture/%,$(LIB_OBJ)): | $(SKEL)

$(BUILD)/gen/%.pb-c.c $(BUILD)/gen/%.pb-c.h &: user/%.proto | $(BUILD)/.tools
	$(call say,PROTO,$<)
	@mkdir -p $(@D)
	$(Q)$(PROTOC_C) --proto_path=user --c_out=$(BUILD)/gen $<

$(BUILD)/obj/gen/%.o: $(BUILD)/gen/%.c
	$(call say,CC,$<)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) -MMD -MP -c $< -o $@

# A text that goes into the library as it is: user/sink/profile/a.css becomes a string a_css in sink/profile/a.css.h.
$(TEXT_GEN): $(BUILD)/gen/%.h: user/%
	$(call say,TEXT,$<)
	@mkdir -p $(@D)
	$(Q){ echo 'static const char $(subst .,_,$(notdir $*))[] ='; sed 's/[\\"]/\\&/g; s/.*/"&\\n"/' $<; echo ';'; } > $@

$(filter $(BUILD)/obj/user/sink/% $(BUILD)/obj/user/push/%,$(LIB_OBJ)): | $(PROTO_GEN:.c=.h) $(TEXT_GEN)
$(filter $(BUILD)/obj/user/cmd/daemon/web/%,$(CMD_OBJ)): | $(TEXT_GEN)

$(BUILD)/libkprof.a: $(LIB_OBJ)
	$(call say,AR,$@)
	$(Q)rm -f $@ && $(AR) rcs $@ $^

$(BUILD)/libkprof.so: $(LIB_OBJ) user/libkprof.map
	$(call say,LD,$@)
	$(Q)$(CC) -shared -Wl,-soname,libkprof.so.0 -Wl,--version-script=user/libkprof.map \
		-Wl,--no-undefined $(LDFLAGS) -o $@ $(LIB_OBJ) $(LIBS)

$(BUILD)/kprof: $(CMD_OBJ) $(BUILD)/libkprof.a
	$(call say,LD,$@)
	$(Q)$(CC) $(LDFLAGS) -o $@ $(CMD_OBJ) $(BUILD)/libkprof.a $(LIBS) $(CMD_LIBS)

$(BUILD)/kprof.1: docs/kprof.1 scripts/manual $(BUILD)/kprof
	$(call say,MAN,$@)
	$(Q)scripts/manual $(BUILD)/kprof $< > $@

# Unit tests: one program each, beside what they test in name.
UNIT_SRC := $(sort $(shell find tests/unit -name "*.c"))
UNIT_BIN := $(UNIT_SRC:tests/%.c=$(BUILD)/%)
$(BUILD)/unit/%: tests/unit/%.c $(BUILD)/libkprof.a
	$(call say,CC,$<)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS_ALL) -I. -Itests/lib $(CFLAGS_ALL) -MMD -MP $< $(filter %.o,$^) -o $@ $(LDFLAGS) \
		$(BUILD)/libkprof.a $(LIBS)

# The command line is no part of the library.
$(filter $(BUILD)/unit/cmd/%,$(UNIT_BIN)): $(filter-out %/main.o,$(CMD_OBJ))
$(filter $(BUILD)/unit/cmd/%,$(UNIT_BIN)): LIBS += $(CMD_LIBS)

# Against an independent reader of call frame information, and an independent unwinder.
$(BUILD)/unit/symbol/unwind/unwind $(BUILD)/unit/symbol/unwind/walk: LIBS += -ldw

# Against an independent decoder.
$(BUILD)/unit/symbol/x86/code_insn: LIBS += -lZydis

# The library as another program sees it: nothing but the public header.
$(BUILD)/example: docs/example.c $(wildcard include/*.h include/kprof/*.h) $(BUILD)/libkprof.a
	$(call say,CC,$<)
	$(Q)$(CC) -Iinclude $(CFLAGS_ALL) -o $@ $< $(LDFLAGS) $(BUILD)/libkprof.a $(LIBS)

example: $(BUILD)/example ## docs/example.c, a program that uses the library
test-programs: example

demo: ## from a fresh machine to a trace of a live PyTorch process
	$(Q)scripts/setup demo
	$(Q)$(MAKE) $(JOBS) --no-print-directory all
	$(Q)scripts/demo

clean: ## remove what was built
	rm -rf $(BUILD)

distclean: clean ## the same, and traces and captures left in the tree
	rm -f *.pt.trace.json.gz *.pt.trace.json *.kprof
	find . -name __pycache__ -prune -exec rm -rf {} +

help: ## this list
	@sed -nE 's/^([a-z-]+):.*## (.*)/  \1\t\2/p' $(MAKEFILE_LIST) | expand -t 20

-include gpu/gpu.mk share/kprof/mark.mk
-include tests/stacks/stacks.mk tests/fuzz/fuzz.mk tests/sim/sim.mk tests/gpucheck/gpucheck.mk tests/inject/inject.mk tests/python/python.mk tests/workloads/workloads.mk tests/bench/bench.mk
include scripts/install.mk scripts/test.mk
-include $(LIB_OBJ:.o=.d) $(CMD_OBJ:.o=.d) $(UNIT_BIN:=.d)
.PHONY: all example demo clean distclean help
