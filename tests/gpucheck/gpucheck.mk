# SPDX-License-Identifier: BSD-2-Clause
# The CUDA programs of scripts/gpu-check. They open the driver by themselves, so they are built anywhere.

GPUCHECK_BIN := $(addprefix $(BUILD)/gpucheck/,cudaprog agentprog gpucheck_watch.so late_return.so late_thread.so)
GPUCHECK_WORK := tests/gpucheck/cudawork.c tests/gpucheck/cudasim.c
GPUCHECK_HEADERS := $(wildcard tests/gpucheck/*.h) tests/gpu/find_shm.h tests/sim/cuda_abi.h include/kprof/agent.h include/kprof/wire.h gpu/cupti/abi.h
GPUCHECK_FLAGS := -std=gnu11 -D_GNU_SOURCE -I. -Iinclude -O2 -g -pthread $(WARN)

$(BUILD)/gpucheck/%prog: tests/gpucheck/%prog.c $(GPUCHECK_WORK) $(GPUCHECK_HEADERS)
	$(call say,CC,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(GPUCHECK_FLAGS) -o $@ $< $(GPUCHECK_WORK) -ldl

# Plays libcupti, whose functions are all that it shows.
$(BUILD)/gpucheck/gpucheck_watch.so: tests/gpucheck/watch.c $(GPUCHECK_HEADERS)
	$(call say,CC,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(GPUCHECK_FLAGS) -fPIC -fvisibility=hidden -shared -Wl,-z,defs -o $@ $< -ldl

$(BUILD)/gpucheck/late_%.so: tests/gpucheck/late_%.c
	$(call say,CC,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(GPUCHECK_FLAGS) -fPIC -shared -Wl,-z,defs -o $@ $< -ldl

test-programs: $(GPUCHECK_BIN)
