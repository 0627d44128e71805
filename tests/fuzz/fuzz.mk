# SPDX-License-Identifier: BSD-2-Clause
# Fuzzers: tests/fuzz/fuzz_NAME.c becomes build/fuzz/NAME (scripts/fuzz runs what lies there). They are linked with the
# library built under the same sanitizers; what would ask the kernel, a fuzzer answers itself (fuzz_dispatch.c).

FUZZERS := $(patsubst tests/fuzz/fuzz_%.c,%,$(sort $(wildcard tests/fuzz/fuzz_*.c)))
FUZZ_BIN := $(FUZZERS:%=$(BUILD)/fuzz/%)
FUZZ_CMD := $(wildcard $(addprefix user/cmd/,options/*.c print/*.c export/*.c)) user/cmd/record/options.c \
	$(addprefix user/cmd/daemon/web/,message.c policy.c metrics.c exposition.c families.c) \
	$(addprefix user/cmd/daemon/,watch/rules.c clients.c requests.c loop.c record/recordings.c record/quota.c record/kept.c \
		record/folder.c) $(wildcard user/cmd/ctl/*.c)
FUZZ_OBJ := $(patsubst %.c,$(BUILD)/fuzz-obj/%.o,$(LIB_SRC) $(FUZZ_CMD)) \
	$(PROTO_GEN:$(BUILD)/gen/%.c=$(BUILD)/fuzz-obj/gen/%.o)
FUZZ_SAN := address,undefined
FUZZ_FLAGS := -std=gnu11 -O1 -g1 -fno-omit-frame-pointer -fno-sanitize-recover=undefined $(WARN)
FUZZ_SECONDS ?= 3600

$(BUILD)/fuzz-obj/%.o: %.c
	$(call say,FUZZ-CC,$<)
	@mkdir -p $(@D)
	$(Q)$(CLANG) $(CPPFLAGS_ALL) -I. -Itests/lib -Itests/fuzz $(FUZZ_FLAGS) -fsanitize=fuzzer-no-link,$(FUZZ_SAN) -MMD -MP -c $< -o $@

$(BUILD)/fuzz-obj/gen/%.o: $(BUILD)/gen/%.c
	$(call say,FUZZ-CC,$<)
	@mkdir -p $(@D)
	$(Q)$(CLANG) $(CPPFLAGS_ALL) $(FUZZ_FLAGS) -fsanitize=fuzzer-no-link,$(FUZZ_SAN) -MMD -MP -c $< -o $@

$(filter $(BUILD)/fuzz-obj/user/capture/%,$(FUZZ_OBJ)): | $(SKEL)
$(filter $(BUILD)/fuzz-obj/user/sink/% $(BUILD)/fuzz-obj/user/push/%,$(FUZZ_OBJ)): | $(PROTO_GEN:.c=.h) $(TEXT_GEN)

$(BUILD)/fuzz-obj/libkprof.a: $(FUZZ_OBJ)
	$(call say,AR,$@)
	$(Q)rm -f $@ && $(AR) rcs $@ $^

$(BUILD)/fuzz/%: $(BUILD)/fuzz-obj/tests/fuzz/fuzz_%.o $(BUILD)/fuzz-obj/tests/fuzz/nosync.o $(BUILD)/fuzz-obj/libkprof.a
	$(call say,FUZZ-LD,$@)
	@mkdir -p $(@D)
	$(Q)$(CLANG) -fsanitize=fuzzer,$(FUZZ_SAN) $^ -o $@ $(LIBS) $(CMD_LIBS)

$(FUZZERS:%=fuzz-%): fuzz-%: $(BUILD)/fuzz/%

fuzz: $(FUZZ_BIN) ## run every fuzzer for FUZZ_SECONDS (an hour each)
	$(Q)scripts/fuzz $(FUZZ_SECONDS)

test-programs: $(FUZZ_BIN)

# The committed corpora, made anew: tests/fuzz/gen_NAME.c writes tests/fuzz/corpus/NAME.
FUZZ_GEN := $(patsubst tests/fuzz/gen_%.c,%,$(sort $(wildcard tests/fuzz/gen_*.c)))

$(BUILD)/fuzz-gen/%: tests/fuzz/gen_%.c $(BUILD)/libkprof.a
	$(call say,CC,$<)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS_ALL) -I. -Itests/lib -Itests/fuzz $(CFLAGS_ALL) -MMD -MP $< -o $@ $(LDFLAGS) $(BUILD)/libkprof.a $(LIBS)

fuzz-corpus: $(FUZZ_GEN:%=fuzz-corpus-%) ## make the fuzzers' corpora anew

$(FUZZ_GEN:%=fuzz-corpus-%): fuzz-corpus-%: $(BUILD)/fuzz-gen/%
	$(Q)mkdir -p tests/fuzz/corpus/$* && $< tests/fuzz/corpus/$*

.SECONDARY: $(BUILD)/fuzz-obj/tests/fuzz/nosync.o $(FUZZERS:%=$(BUILD)/fuzz-obj/tests/fuzz/fuzz_%.o)
.PHONY: fuzz fuzz-corpus $(FUZZERS:%=fuzz-%) $(FUZZ_GEN:%=fuzz-corpus-%)
-include $(BUILD)/fuzz-obj/tests/fuzz/nosync.d $(FUZZ_OBJ:.o=.d) $(FUZZERS:%=$(BUILD)/fuzz-obj/tests/fuzz/fuzz_%.d) $(FUZZ_GEN:%=$(BUILD)/fuzz-gen/%.d)
