# SPDX-License-Identifier: BSD-2-Clause
# SIMULATED CUDA, FOR TESTS: libraries with the names and the interfaces of NVIDIA's, on a device that exists only in time.
# $(BUILD)/sim/12 and $(BUILD)/sim/13: what a program of that CUDA major finds on its library path.

SIM_DIR := $(BUILD)/sim
SIM_MAJORS := 12 13
# Frame pointers: each function begins with a push, as each of NVIDIA's runtime that kprof probes does, so that a probe costs as
# little on it (`kprof check -v`).
SIM_FLAGS := -std=gnu11 -D_GNU_SOURCE -O2 -g -fPIC -pthread -fvisibility=hidden -fno-optimize-sibling-calls \
	-fno-omit-frame-pointer -fno-shrink-wrap \
	-Wall -Wextra -Werror -Wstrict-prototypes -Wmissing-prototypes -Wno-unused-parameter
SIM_HEADERS := $(wildcard tests/sim/*.h)
SIM_DRIVER_SRC := $(wildcard tests/sim/driver*.c) tests/sim/engine.c tests/sim/truth.c
SIM_RUNTIME_SRC := $(wildcard tests/sim/runtime*.c)
SIM_CUPTI_SRC := $(wildcard tests/sim/cupti*.c)
SIM_LIBS := $(foreach m,$(SIM_MAJORS),$(addprefix $(SIM_DIR)/$m/,libcuda.so.1 libcudart.so.$m libcudart_static.a \
	libcupti.so.$m))
SIM_PROGRAMS := $(foreach m,$(SIM_MAJORS),$(addprefix $(SIM_DIR)/$m/,cudadriver cudadriver-dl cudadriver-static \
	libcudadriver.so gpuops))
CUDADRIVER_SRC := $(filter-out %_dl.c,$(wildcard tests/workloads/cudadriver*.c))
CUDADRIVER_HEADERS := $(wildcard tests/workloads/cudadriver*.h) $(SIM_HEADERS)
SIM_PROGRAM = -std=gnu11 -D_GNU_SOURCE -O2 -g -fPIC -pthread -Itests/sim -Wall -Wextra -Werror -Wno-unused-parameter \
	-Wl,--disable-new-dtags,-rpath,'$$$$ORIGIN'

GPUOPS_HEADERS := tests/workloads/gpuops.hpp $(SIM_HEADERS)
GPUOPS_FLAGS = -std=c++17 -O2 -g -fPIC -pthread -Itests/sim -Wall -Wextra -Werror \
	-Wl,--disable-new-dtags,-rpath,'$$$$ORIGIN:$$$$ORIGIN/torch'

$(SIM_DIR)/%/libcuda.so.1: $(SIM_DRIVER_SRC) $(SIM_HEADERS)
	$(call say,CC,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(SIM_FLAGS) -shared -Wl,-soname,libcuda.so.1 -Wl,-z,defs -o $@ $(SIM_DRIVER_SRC) -ldl
	$(Q)ln -sf libcuda.so.1 $(@D)/libcuda.so

# The library that kprof itself asks how busy a device was.
$(SIM_DIR)/nvml/libnvidia-ml.so.1: tests/sim/nvml.c
	$(call say,CC,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(SIM_FLAGS) -shared -Wl,-soname,libnvidia-ml.so.1 -Wl,-z,defs -o $@ $<

# The real one gives its symbols its own name as their version.
define SIM_RULES
$(SIM_DIR)/$1/lib%.map:
	@mkdir -p $$(@D)
	$$(Q)echo 'lib$$*.so.$1 { global: cu*; __cuda*; local: *; };'  > $$@

$(SIM_DIR)/$1/libcudart.so.$1: $(SIM_RUNTIME_SRC) $(SIM_HEADERS) $(SIM_DIR)/$1/libcudart.map
	$$(call say,CC,$$@)
	$$(Q)$$(CC) $(SIM_FLAGS) -DSIM_MAJOR=$1 -shared -Wl,-soname,libcudart.so.$1 -Wl,-z,defs \
		-Wl,--version-script=$(SIM_DIR)/$1/libcudart.map -o $$@ $(SIM_RUNTIME_SRC) -ldl
	$$(Q)ln -sf libcudart.so.$1 $$(@D)/libcudart.so

$(SIM_DIR)/$1/libcupti.so.$1: $(SIM_CUPTI_SRC) $(SIM_HEADERS) $(SIM_DIR)/$1/libcupti.map
	$$(call say,CC,$$@)
	$$(Q)$$(CC) $(SIM_FLAGS) -DSIM_MAJOR=$1 -shared -Wl,-soname,libcupti.so.$1 -Wl,-z,defs \
		-Wl,--version-script=$(SIM_DIR)/$1/libcupti.map -o $$@ $(SIM_CUPTI_SRC) -ldl
	$$(Q)ln -sf libcupti.so.$1 $$(@D)/libcupti.so

$(SIM_DIR)/$1/obj/%.o: tests/sim/%.c $(SIM_HEADERS)
	@mkdir -p $$(@D)
	$$(Q)$$(CC) $(SIM_FLAGS) -DSIM_MAJOR=$1 -c -o $$@ $$<

$(SIM_DIR)/$1/libcudart_static.a: $(SIM_RUNTIME_SRC:tests/sim/%.c=$(SIM_DIR)/$1/obj/%.o)
	$$(call say,AR,$$@)
	$$(Q)rm -f $$@ && $$(AR) rcs $$@ $$^

# DT_RPATH, not RUNPATH: it counts for what libcudart opens, too.
$(SIM_DIR)/$1/cudadriver: $(CUDADRIVER_SRC) $(CUDADRIVER_HEADERS) $(SIM_DIR)/$1/libcudart.so.$1
	$$(call say,CC,$$@)
	$$(Q)$$(CC) $(SIM_PROGRAM) -o $$@ $(CUDADRIVER_SRC) -L$(SIM_DIR)/$1 -lcudart -ldl

$(SIM_DIR)/$1/libcudadriver.so: $(CUDADRIVER_SRC) $(CUDADRIVER_HEADERS) $(SIM_DIR)/$1/libcudart.so.$1
	$$(call say,CC,$$@)
	$$(Q)$$(CC) $(SIM_PROGRAM) -DCUDADRIVER_LIBRARY -shared -o $$@ $(CUDADRIVER_SRC) -L$(SIM_DIR)/$1 -lcudart -ldl

$(SIM_DIR)/$1/cudadriver-dl: tests/workloads/cudadriver_dl.c
	$$(call say,CC,$$@)
	@mkdir -p $$(@D)
	$$(Q)$$(CC) $(SIM_PROGRAM) -o $$@ $$< -ldl

$(SIM_DIR)/$1/cudadriver-static: $(CUDADRIVER_SRC) $(CUDADRIVER_HEADERS) $(SIM_DIR)/$1/libcudart_static.a
	$$(call say,CC,$$@)
	$$(Q)$$(CC) $(SIM_PROGRAM) -o $$@ $(CUDADRIVER_SRC) $(SIM_DIR)/$1/libcudart_static.a -ldl

$(SIM_DIR)/$1/torch/libtorch_cpu.so: tests/workloads/gpuops_lib.cpp $(GPUOPS_HEADERS) $(SIM_DIR)/$1/libcudart.so.$1
	$$(call say,CXX,$$@)
	@mkdir -p $$(@D)
	$$(Q)g++ $(GPUOPS_FLAGS) -fvisibility=hidden -shared -o $$@ $$< -L$(SIM_DIR)/$1 -lcudart

$(SIM_DIR)/$1/gpuops: tests/workloads/gpuops.cpp $(GPUOPS_HEADERS) $(SIM_DIR)/$1/torch/libtorch_cpu.so
	$$(call say,CXX,$$@)
	$$(Q)g++ $(GPUOPS_FLAGS) -o $$@ $$< -L$(SIM_DIR)/$1/torch -ltorch_cpu -L$(SIM_DIR)/$1 -lcudart
endef
$(foreach m,$(SIM_MAJORS),$(eval $(call SIM_RULES,$m)))

sim: $(SIM_LIBS) $(SIM_PROGRAMS) $(SIM_DIR)/nvml/libnvidia-ml.so.1 ## the simulated CUDA that the tests run on
test-programs: sim
.PHONY: sim
