# SPDX-License-Identifier: BSD-2-Clause
# The CUDA program of scripts/gpu-check. It opens the driver by itself, so it is built anywhere.

GPUCHECK_PROG := $(BUILD)/gpucheck/cudaprog

$(GPUCHECK_PROG): tests/gpucheck/cudaprog.c
	$(call say,CC,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) -std=gnu11 -D_GNU_SOURCE -O2 -g $(WARN) -o $@ $< -ldl

test-programs: $(GPUCHECK_PROG)
