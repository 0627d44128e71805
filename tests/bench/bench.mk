# SPDX-License-Identifier: BSD-2-Clause
# What `make bench` measures with: tests/bench/NAME.c becomes build/bench/NAME. tests/bench/run puts it together.
#   make bench                    everything (docs/benchmarks.md), less than half an hour; as root
#   make bench BENCH='a b'        these (tests/bench/run --list)
#   make bench BENCH_QUICK=1      whether it works, not how fast: the figures mean nothing

BENCH_BIN := $(patsubst tests/bench/%.c,$(BUILD)/bench/%,$(sort $(wildcard tests/bench/*.c)))
BENCH_OPDRIVER := $(WORKLOAD_DIR)/gcc/opdriver

$(BUILD)/bench/opencl_bench: CPPFLAGS_ALL += -I. -Itests/lib

# On the simulated CUDA.
$(BUILD)/bench/cuda_target: tests/bench/cuda_target.c tests/workloads/cudadriver_kernels.c $(CUDADRIVER_HEADERS) \
		$(SIM_DIR)/13/libcudart.so.13
	$(call say,CC,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) -std=gnu11 -D_GNU_SOURCE $(CFLAGS) $(WARN) -Itests/sim -o $@ $(filter %.c,$^) $(LDFLAGS) \
		-Wl,--disable-new-dtags,-rpath,'$$ORIGIN/../sim/13' -L$(SIM_DIR)/13 -lcudart

$(BUILD)/bench/%: tests/bench/%.c $(BUILD)/libkprof.a
	$(call say,CC,$<)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) -MMD -MP $< -o $@ $(LDFLAGS) $(BUILD)/libkprof.a $(LIBS) -lm

bench-programs: all $(BENCH_BIN) $(BENCH_OPDRIVER) $(SIM_LIBS)
bench: bench-programs
# Captures with a device and with samples in them, for the suites that need one.
test-programs: $(addprefix $(BUILD)/bench/,gen_capture gen_device gen_samples gen_stacks)
.PHONY: bench-programs
-include $(BENCH_BIN:=.d)
