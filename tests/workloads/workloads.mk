# SPDX-License-Identifier: BSD-2-Clause
# The C++ targets of the tests: a library that looks like PyTorch's (a test double), and two programs that
# call it, linked and opened later, compiled in three ways: what a return site looks like is the compiler's choice.

WORKLOAD_FLAGS := -std=c++17 -g -Wall -Wextra -Werror -pthread
WORKLOAD_DIR := $(BUILD)/workloads
WORKLOAD_KINDS := gcc gcc-O0 clang
WORKLOAD_SRC := $(wildcard tests/workloads/opdriver*.cpp)
WORKLOADS := $(foreach k,$(WORKLOAD_KINDS),$(addprefix $(WORKLOAD_DIR)/$k/,libtorch_cpu.so opdriver opdriver-dl))

$(WORKLOAD_DIR)/gcc/%: WORKLOAD_CXX = g++ -O2
$(WORKLOAD_DIR)/gcc-O0/%: WORKLOAD_CXX = g++ -O0
$(WORKLOAD_DIR)/clang/%: WORKLOAD_CXX = $(subst clang,clang++,$(CLANG)) -O2

$(WORKLOAD_DIR)/%/libtorch_cpu.so: tests/workloads/fakeops.cpp tests/workloads/fakeops.hpp
	$(call say,CXX,$@)
	@mkdir -p $(@D)
	$(Q)$(WORKLOAD_CXX) $(WORKLOAD_FLAGS) -fPIC -shared -o $@ $<

$(WORKLOAD_DIR)/%/opdriver: $(WORKLOAD_SRC) $(wildcard tests/workloads/*.hpp) $(WORKLOAD_DIR)/%/libtorch_cpu.so
	$(call say,CXX,$@)
	$(Q)$(WORKLOAD_CXX) $(WORKLOAD_FLAGS) -o $@ $(WORKLOAD_SRC) -L$(@D) -ltorch_cpu '-Wl,-rpath,$$ORIGIN'

$(WORKLOAD_DIR)/%/opdriver-dl: $(WORKLOAD_SRC) $(wildcard tests/workloads/*.hpp) $(WORKLOAD_DIR)/%/libtorch_cpu.so
	$(call say,CXX,$@)
	$(Q)$(WORKLOAD_CXX) $(WORKLOAD_FLAGS) -DOPDRIVER_DLOPEN -o $@ $(WORKLOAD_SRC) -ldl

# To be given to the dynamic linker of another program.
$(WORKLOAD_DIR)/faulty.so: tests/workloads/faulty.c
	$(call say,CC,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) -std=gnu11 -D_GNU_SOURCE -O2 -g $(WARN) -fPIC -shared -o $@ $<

workloads: $(WORKLOAD_DIR)/faulty.so

$(WORKLOAD_DIR)/slow_linker.so: tests/workloads/slow_linker.c
	$(call say,CC,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) -std=gnu11 -D_GNU_SOURCE -O2 -g $(WARN) -fPIC -shared -o $@ $<

workloads: $(WORKLOAD_DIR)/slow_linker.so

# An OpenCL program, where OpenCL's headers are (scripts/setup check).
OCLDRIVER := $(if $(wildcard /usr/include/CL/cl.h),$(addprefix $(WORKLOAD_DIR)/,ocldriver libocldriver.so))
OCLDRIVER_SRC := $(wildcard tests/workloads/ocldriver*.c)
OCLDRIVER_CC = $(CC) -std=gnu11 -D_GNU_SOURCE -O2 -g $(WARN) -o $@ $(OCLDRIVER_SRC) -lOpenCL -pthread

# The second: its steps, to be called from Python.
$(WORKLOAD_DIR)/ocldriver $(WORKLOAD_DIR)/libocldriver.so: $(OCLDRIVER_SRC) $(wildcard tests/workloads/ocldriver*.h)
	$(call say,CC,$@)
	@mkdir -p $(@D)
	$(Q)$(OCLDRIVER_CC) $(if $(filter %.so,$@),-shared -fPIC)

# NVTX as a library of its own, and inside a program.
NVTXDRIVER := $(addprefix $(WORKLOAD_DIR)/nvtx/,libnvToolsExt.so.1 linked inside)
NVTX_CC = $(Q)mkdir -p $(@D) && $(CC) -std=gnu11 -D_GNU_SOURCE -O2 -g $(WARN) -o $@ $<

$(WORKLOAD_DIR)/nvtx/libnvToolsExt.so.1: tests/workloads/nvtxdriver.c
	$(call say,CC,$@)
	$(NVTX_CC) -DNVTX_LIBRARY -shared -fPIC -Wl,-soname,libnvToolsExt.so.1

$(WORKLOAD_DIR)/nvtx/linked: tests/workloads/nvtxdriver.c $(WORKLOAD_DIR)/nvtx/libnvToolsExt.so.1
	$(call say,CC,$@)
	$(NVTX_CC) -DNVTX_PROGRAM $(@D)/libnvToolsExt.so.1 '-Wl,-rpath,$$ORIGIN'

$(WORKLOAD_DIR)/nvtx/inside: tests/workloads/nvtxdriver.c
	$(call say,CC,$@)
	$(NVTX_CC)

workloads: $(NVTXDRIVER)

# Every macro of kprof/mark.h, as C and C++, by two compilers, at every level of optimization.
MARKS := $(foreach cc,gcc clang,$(foreach l,c c++,$(foreach o,0 1 2 3,$(WORKLOAD_DIR)/marks/$(cc)-$(l)-O$(o))))
marks_part = $(word $(1),$(subst -, ,$(@F)))

$(MARKS): tests/workloads/marks.c include/kprof/mark.h
	$(call say,CC,$@)
	@mkdir -p $(@D)
	$(Q)$(if $(filter gcc,$(call marks_part,1)),gcc,$(CLANG)) -x $(call marks_part,2) -$(call marks_part,3) \
		-g -Wall -Wextra -Werror -D_GNU_SOURCE -Iinclude -pthread -o $@ $< -lstdc++

# Steps of known lengths.
$(WORKLOAD_DIR)/stepper: tests/workloads/stepper.c include/kprof/mark.h
	$(call say,CC,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) -std=gnu11 -D_GNU_SOURCE -O2 -g $(WARN) -Iinclude -o $@ $< -ldl

workloads: $(WORKLOAD_DIR)/stepper
# A program that has itself recorded, by kprof/profile.h: two compilers, each as an old and a new standard has it.
INSIDE := $(addprefix $(WORKLOAD_DIR)/inside/,gcc-c11 gcc-gnu17 clang-c11 gcc-c++11 gcc-c++20 clang-c++11 clang-c++20)
# A program that has itself recorded, by kprof/profile.h: two compilers, each as an old and a new standard has it; the sanitizers.
INSIDE := $(addprefix $(WORKLOAD_DIR)/inside/,gcc-c11 gcc-gnu17 clang-c11 gcc-c++11 gcc-c++20 clang-c++11 clang-c++20 \
	gcc-c11-asan gcc-c11-tsan)
inside_part = $(word $(1),$(subst -, ,$(@F)))

$(INSIDE): tests/workloads/inside.c include/kprof/profile.h
	$(call say,CC,$@)
	@mkdir -p $(@D)
	$(Q)$(if $(filter gcc,$(call inside_part,1)),gcc,$(CLANG)) -x $(if $(findstring ++,$(@F)),c++,c) -std=$(call inside_part,2) \
		$(if $(filter asan,$(call inside_part,3)),-fsanitize=address -fsanitize=undefined -fno-sanitize-recover=undefined) \
		$(if $(filter tsan,$(call inside_part,3)),-fsanitize=thread) -O2 -g -Wall -Wextra -Werror -pedantic -Iinclude -pthread -o $@ $< -ldl -lstdc++

# Calls of the simulated CUDA: of either major, with the runtime linked in, by two compilers and without optimization.
CUDACALLS := $(addprefix $(WORKLOAD_DIR)/cudacalls-,12 13 static gcc-O0 clang)
CUDACALLS_BUILD = -std=gnu11 -D_GNU_SOURCE -g -Wall -Wextra -Werror -Itests -o $@ $< -L$(SIM_DIR)/$(1) \
	-Wl,-rpath,'$$ORIGIN/../sim/$(1)' -lcuda

$(CUDACALLS): tests/workloads/cudacalls.c tests/workloads/settle.h $(SIM_LIBS)
	$(call say,CC,$@)
	@mkdir -p $(@D)
	$(Q)case $(@F) in \
	*-static) $(CC) -O2 $(call CUDACALLS_BUILD,12) $(SIM_DIR)/12/libcudart_static.a -ldl -pthread ;; \
	*-gcc-O0) gcc -O0 $(call CUDACALLS_BUILD,12) -lcudart ;; \
	*-clang) $(CLANG) -O2 $(call CUDACALLS_BUILD,12) -lcudart ;; \
	*-12) $(CC) -O2 $(call CUDACALLS_BUILD,12) -lcudart ;; \
	*-13) $(CC) -O2 $(call CUDACALLS_BUILD,13) -lcudart ;; \
	esac

# What becomes of a call's result is the compiler's choice.
CUDARESULTS := $(addprefix $(WORKLOAD_DIR)/cudaresults-,gcc-O0 gcc-O1 gcc-O2 clang-O0)

$(CUDARESULTS): tests/workloads/cudaresults.c tests/workloads/settle.h $(SIM_LIBS)
	$(call say,CC,$@)
	@mkdir -p $(@D)
	$(Q)case $(@F) in \
	*-gcc-*) gcc -O$(lastword $(subst -O, ,$@)) $(call CUDACALLS_BUILD,12) -lcudart ;; \
	*-clang-*) $(CLANG) -O$(lastword $(subst -O, ,$@)) $(call CUDACALLS_BUILD,12) -lcudart ;; \
	esac

# A process with the agent in it whose records are made up.
AGENTDRIVER := $(WORKLOAD_DIR)/agentdriver

$(AGENTDRIVER): tests/workloads/agentdriver.c include/kprof/agent.h
	$(call say,CC,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) -std=gnu11 -D_GNU_SOURCE -O2 -g $(WARN) -Iinclude -o $@ $< -ldl -pthread

# Threads in known places, by two compilers.
DUMPDRIVER := $(addprefix $(WORKLOAD_DIR)/,dumpdriver-gcc dumpdriver-gcc-O0 dumpdriver-clang dumpdriver-gcc-O3 dumpdriver-static)

$(DUMPDRIVER): tests/workloads/dumpdriver.c
	$(call say,CC,$@)
	@mkdir -p $(@D)
	$(Q)$(if $(findstring clang,$@),$(CLANG),gcc) $(if $(findstring -O,$@),-$(lastword $(subst -, ,$(@F))),-O2) \
		-std=gnu11 -D_GNU_SOURCE -g -Wall -Wextra -Werror -Wno-unused-parameter -fno-optimize-sibling-calls \
		-fomit-frame-pointer -fno-stack-protector -pthread $(if $(findstring static,$@),-static) -o $@ $< -ldl

workloads: $(DUMPDRIVER)

# Threads that know their waits, and one that waits for the allocator's lock.
WAITER := $(WORKLOAD_DIR)/waiter $(WORKLOAD_DIR)/why_malloc

$(WAITER): $(WORKLOAD_DIR)/%: tests/workloads/%.c
	$(call say,CC,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) -std=gnu11 -D_GNU_SOURCE -O2 -g $(WARN) -fno-optimize-sibling-calls -pthread -o $@ $<

workloads: $(WAITER)

# Annotations of which it is known what they had of each counter.
COUNTED := $(WORKLOAD_DIR)/counted

$(COUNTED): tests/workloads/counted.c include/kprof/mark.h
	$(call say,CC,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) -std=gnu11 -D_GNU_SOURCE -O2 -g $(WARN) -Iinclude -pthread -o $@ $<

workloads: $(COUNTED)
workloads: $(AGENTDRIVER) $(WORKLOADS) $(OCLDRIVER) $(MARKS) $(INSIDE) $(CUDACALLS) $(CUDARESULTS)
test-programs: workloads
.PHONY: workloads

# For tests of merging: a capture as another machine would have recorded it.
$(WORKLOAD_DIR)/shift_capture: tests/lib/shift_capture.c $(BUILD)/libkprof.a
	$(call say,CC,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) $< -o $@ $(LDFLAGS) $(BUILD)/libkprof.a $(LIBS)

workloads: $(WORKLOAD_DIR)/shift_capture

# A program that records, and rotates its capture.
$(WORKLOAD_DIR)/rotating: tests/workloads/rotating.c $(wildcard include/*.h include/kprof/*.h) $(BUILD)/libkprof.a
	$(call say,CC,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) -std=gnu11 -D_GNU_SOURCE -O2 -g $(WARN) -Iinclude -o $@ $< $(LDFLAGS) $(BUILD)/libkprof.a $(LIBS)

# What its captures have in them.
$(WORKLOAD_DIR)/chunk_dump: tests/workloads/chunk_dump.c user/store/store.h $(BUILD)/libkprof.a
	$(call say,CC,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) -std=gnu11 -D_GNU_SOURCE -O2 -g $(WARN) -Iinclude -Iuser -o $@ $< $(LDFLAGS) $(BUILD)/libkprof.a $(LIBS)

workloads: $(WORKLOAD_DIR)/rotating $(WORKLOAD_DIR)/chunk_dump

# A daemon of dynolog's protocols alone.
$(WORKLOAD_DIR)/dynologd: tests/workloads/dynologd.c include/kprof/dynolog.h $(BUILD)/libkprof.a
	$(call say,CC,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) $< -o $@ $(LDFLAGS) $(BUILD)/libkprof.a $(LIBS)

workloads: $(WORKLOAD_DIR)/dynologd
# In the daemon's place, with its HTTP child.
$(WORKLOAD_DIR)/webdaemon: tests/workloads/webdaemon.c $(filter $(BUILD)/obj/user/cmd/daemon/web/% $(BUILD)/obj/user/cmd/print/%,$(CMD_OBJ)) $(BUILD)/libkprof.a
	$(call say,CC,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) $(filter %.c %.o,$^) -o $@ $(LDFLAGS) $(BUILD)/libkprof.a $(LIBS) $(CMD_LIBS)

workloads: $(WORKLOAD_DIR)/webdaemon
