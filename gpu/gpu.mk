# SPDX-License-Identifier: BSD-2-Clause
# The agent: what a process that uses a device carries while kprof records it.

GPU_SRC := $(sort $(wildcard gpu/*.c gpu/*/*.c))
GPU_OBJ := $(GPU_SRC:%.c=$(BUILD)/obj/%.o)
# A caller of the probed nop may not keep data below its stack pointer: a kernel may turn the nop into a call.
GPU_CFLAGS := -I. -fvisibility=hidden -mno-red-zone -fno-plt
AGENT := $(BUILD)/libkprof_agent.so

all: $(AGENT)

$(GPU_OBJ): CFLAGS_ALL += $(GPU_CFLAGS)

# -z now: nothing is looked up while a stopped thread of the target waits. nodelete: its code may be on some stack.
$(AGENT): $(GPU_OBJ)
	$(call say,LD,$@)
	$(Q)$(CC) -shared -Wl,-soname,libkprof_agent.so -Wl,-z,now,-z,relro,-z,nodelete,-z,noexecstack \
		-Wl,--no-undefined -Wl,--hash-style=both $(LDFLAGS) -o $@ $(GPU_OBJ)

# Unit tests take from it what they do not replace by something of their own.
$(BUILD)/gpu.a: $(GPU_OBJ)
	$(call say,AR,$@)
	$(Q)rm -f $@ && $(AR) rcs $@ $^

$(filter $(BUILD)/unit/gpu%,$(UNIT_BIN)): $(BUILD)/%: tests/%.c $(BUILD)/gpu.a
	$(call say,CC,$<)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS_ALL) -I. -Itests/lib $(CFLAGS_ALL) -MMD -MP $< -o $@ $(LDFLAGS) $(BUILD)/gpu.a -lpthread

# A process with the agent in it; and what the agent makes of a libcupti.
GPU_TEST_BIN := $(addprefix $(BUILD)/gpu-tests/,host load on_sim)

$(BUILD)/gpu-tests/%: tests/gpu/%.c $(BUILD)/gpu.a
	$(call say,CC,$<)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS_ALL) -I. -Itests/lib $(CFLAGS_ALL) -MMD -MP $< -o $@ $(LDFLAGS) $(BUILD)/gpu.a -ldl -lpthread

$(BUILD)/bench/agent_bench: tests/bench/agent_bench.c $(BUILD)/gpu.a
	$(call say,CC,$<)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS_ALL) -I. $(CFLAGS_ALL) -MMD -MP $< -o $@ $(LDFLAGS) $(BUILD)/gpu.a -lpthread

# The same agent with a runtime of the benchmark's own, under the name by which kprof finds it.
$(BUILD)/bench/agent/libkprof_agent.so: tests/bench/agent/module.c $(BUILD)/gpu.a
	$(call say,CC,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS_ALL) -I. $(CFLAGS_ALL) $(GPU_CFLAGS) -shared -Wl,-soname,libkprof_agent.so -Wl,-z,now,-z,nodelete \
		-Wl,-u,kprof_agent_start,-u,InitializeInjection $(LDFLAGS) -o $@ $< $(BUILD)/gpu.a -lpthread

bench-programs: $(BUILD)/bench/agent/libkprof_agent.so

gpu-test-programs: $(AGENT) $(GPU_TEST_BIN)
test-programs: gpu-test-programs
.PHONY: gpu-test-programs

-include $(GPU_TEST_BIN:=.d) $(GPU_OBJ:.o=.d)
