# SPDX-License-Identifier: BSD-2-Clause
# Fuzzers: tests/fuzz/fuzz_NAME.c becomes build/asan/fuzz/NAME (scripts/fuzz runs what lies there). They are linked with the
# library and the commands that are built under the sanitizers, for the unit tests too (sanitized-programs in scripts/test.mk).
# What would ask the kernel, a fuzzer answers itself (fuzz_dispatch.c).

FUZZERS := $(patsubst tests/fuzz/fuzz_%.c,%,$(sort $(wildcard tests/fuzz/fuzz_*.c)))
FUZZ_BIN := $(FUZZERS:%=$(BUILD)/fuzz/%)
FUZZ_SECONDS ?= 3600

$(BUILD)/obj/tests/fuzz/%.o: CPPFLAGS_ALL += -I. -Itests/lib -Itests/fuzz

# A fuzzer takes from it what it does not replace by something of its own.
$(BUILD)/cmd.a: $(filter-out %/main.o,$(CMD_OBJ))
	$(call say,AR,$@)
	$(Q)rm -f $@ && $(AR) rcs $@ $^

$(BUILD)/fuzz/%: $(BUILD)/obj/tests/fuzz/fuzz_%.o $(BUILD)/obj/tests/fuzz/nosync.o $(BUILD)/cmd.a $(BUILD)/libkprof.a
	$(call say,LD,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(LDFLAGS) -fsanitize=fuzzer $^ -o $@ $(LIBS) $(CMD_LIBS)

fuzz-programs: $(FUZZ_BIN) # under the sanitizers only

fuzz: sanitized-fuzzers ## run every fuzzer for FUZZ_SECONDS (an hour each)
	$(Q)scripts/fuzz $(FUZZ_SECONDS)

# The committed corpora, made anew: tests/fuzz/gen_NAME.c writes tests/fuzz/corpus/NAME.
FUZZ_GEN := $(patsubst tests/fuzz/gen_%.c,%,$(sort $(wildcard tests/fuzz/gen_*.c)))

$(BUILD)/fuzz-gen/%: tests/fuzz/gen_%.c $(BUILD)/libkprof.a
	$(call say,CC,$<)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS_ALL) -I. -Itests/lib -Itests/fuzz $(CFLAGS_ALL) -MMD -MP $< -o $@ $(LDFLAGS) $(BUILD)/libkprof.a $(LIBS)

fuzz-corpus: $(FUZZ_GEN:%=fuzz-corpus-%) ## make the fuzzers' corpora anew

$(FUZZ_GEN:%=fuzz-corpus-%): fuzz-corpus-%: $(BUILD)/fuzz-gen/%
	$(Q)mkdir -p tests/fuzz/corpus/$* && $< tests/fuzz/corpus/$*

.SECONDARY: $(BUILD)/obj/tests/fuzz/nosync.o $(FUZZERS:%=$(BUILD)/obj/tests/fuzz/fuzz_%.o)
.PHONY: fuzz fuzz-programs fuzz-corpus $(FUZZ_GEN:%=fuzz-corpus-%)
-include $(BUILD)/obj/tests/fuzz/nosync.d $(FUZZERS:%=$(BUILD)/obj/tests/fuzz/fuzz_%.d) $(FUZZ_GEN:%=$(BUILD)/fuzz-gen/%.d)
