# SPDX-License-Identifier: BSD-2-Clause
# Putting a library into a running process: the one that does it, the library, and processes to put it into.

INJECT_DIR := $(BUILD)/inject
INJECT_CC = $(CC) -std=gnu11 -D_GNU_SOURCE -O2 -g $(WARN)
INJECT_AGENT := -fPIC -shared -Wl,-soname,libkprof_agent.so tests/inject/agent.c
INJECT_MUSL := $(if $(shell command -v musl-gcc),$(addprefix $(INJECT_DIR)/,musl musl-static))
INJECT_PROGRAMS := $(addprefix $(INJECT_DIR)/,inject_driver kill_at libkprof_agent.so fails/libkprof_agent.so \
	missing/libkprof_agent.so inject_target inject_target-no-tables inject_modes inject_hostile hostile.so inject_malloc \
	libown_malloc.so libouter_malloc.so libinner_malloc.so libslow.so static static-pie 32bit) $(INJECT_MUSL)

$(INJECT_DIR)/inject_driver: tests/inject/inject_driver.c $(BUILD)/libkprof.a
	$(call say,CC,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) -o $@ $< $(LDFLAGS) $(BUILD)/libkprof.a $(LIBS)

$(INJECT_DIR)/kill_at: tests/inject/kill_at.c
	$(call say,CC,$@)
	@mkdir -p $(@D)
	$(Q)$(INJECT_CC) -o $@ $<

# One that works, one whose start fails, and one that the loader refuses.
$(INJECT_DIR)/libkprof_agent.so: tests/inject/agent.c
	$(call say,CC,$@)
	@mkdir -p $(@D)
	$(Q)$(INJECT_CC) $(INJECT_AGENT) -o $@

$(INJECT_DIR)/fails/libkprof_agent.so: tests/inject/agent.c
	$(call say,CC,$@)
	@mkdir -p $(@D)
	$(Q)$(INJECT_CC) -DAGENT_FAILS $(INJECT_AGENT) -o $@

$(INJECT_DIR)/missing/libkprof_agent.so: tests/inject/agent.c
	$(call say,CC,$@)
	@mkdir -p $(@D)
	$(Q)$(INJECT_CC) -DAGENT_MISSES $(INJECT_AGENT) -o $@

$(INJECT_DIR)/inject_target: tests/workloads/inject_target.c
	$(call say,CC,$@)
	@mkdir -p $(@D)
	$(Q)$(INJECT_CC) -pthread -o $@ $<

# Of which no stack can be unwound: as if its code were made at run time.
$(INJECT_DIR)/inject_target-no-tables: $(INJECT_DIR)/inject_target
	$(call say,OBJCOPY,$@)
	$(Q)objcopy --remove-section=.eh_frame --remove-section=.eh_frame_hdr $< $@

$(INJECT_DIR)/inject_modes: tests/workloads/inject_modes.c
	$(call say,CC,$@)
	@mkdir -p $(@D)
	$(Q)$(INJECT_CC) -pthread -o $@ $<

$(INJECT_DIR)/inject_hostile: tests/workloads/inject_hostile.c
	$(call say,CC,$@)
	@mkdir -p $(@D)
	$(Q)$(INJECT_CC) -rdynamic -pthread -o $@ $< -ldl

$(INJECT_DIR)/hostile.so: tests/workloads/inject_hostile.c
	$(call say,CC,$@)
	@mkdir -p $(@D)
	$(Q)$(INJECT_CC) -DHOSTILE_LIBRARY -shared -fPIC -o $@ $<

$(INJECT_DIR)/inject_malloc: tests/workloads/inject_malloc.c
	$(call say,CC,$@)
	@mkdir -p $(@D)
	$(Q)$(INJECT_CC) -fno-builtin -o $@ $<

# An allocator in one library; and one in two, of which that with the lock is not seen to be one.
$(INJECT_DIR)/libown_malloc.so: tests/workloads/inject_malloc.c
	$(call say,CC,$@)
	@mkdir -p $(@D)
	$(Q)$(INJECT_CC) -fno-builtin -DOUTER -DINNER -shared -fPIC -o $@ $<

$(INJECT_DIR)/libinner_malloc.so: tests/workloads/inject_malloc.c
	$(call say,CC,$@)
	@mkdir -p $(@D)
	$(Q)$(INJECT_CC) -fno-builtin -DINNER -shared -fPIC -o $@ $<

$(INJECT_DIR)/libouter_malloc.so: tests/workloads/inject_malloc.c $(INJECT_DIR)/libinner_malloc.so
	$(call say,CC,$@)
	@mkdir -p $(@D)
	$(Q)$(INJECT_CC) -fno-builtin -DOUTER -shared -fPIC -o $@ $< -L$(@D) -linner_malloc -Wl,-rpath,'$$ORIGIN'

# With which it takes long to make a thread.
$(INJECT_DIR)/libslow.so: tests/workloads/inject_slow.c
	$(call say,CC,$@)
	@mkdir -p $(@D)
	$(Q)$(INJECT_CC) -fno-builtin -shared -fPIC -o $@ $<

# Programs that cannot be helped. All wait.
$(INJECT_DIR)/static: tests/workloads/inject_waits.c
	$(call say,CC,$@)
	@mkdir -p $(@D)
	$(Q)$(INJECT_CC) -static -o $@ $<

$(INJECT_DIR)/static-pie: tests/workloads/inject_waits.c
	$(call say,CC,$@)
	@mkdir -p $(@D)
	$(Q)$(INJECT_CC) -fPIE -static-pie -o $@ $<

$(INJECT_DIR)/32bit: tests/workloads/inject_waits.c
	$(call say,CC,$@)
	@mkdir -p $(@D)
	$(Q)$(INJECT_CC) -DNO_LIBC -m32 -ffreestanding -nostdlib -static -fno-pie -no-pie -o $@ $<

$(INJECT_DIR)/musl: tests/workloads/inject_waits.c
	$(call say,CC,$@)
	@mkdir -p $(@D)
	$(Q)musl-gcc $(WARN) -o $@ $<

$(INJECT_DIR)/musl-static: tests/workloads/inject_waits.c
	$(call say,CC,$@)
	@mkdir -p $(@D)
	$(Q)musl-gcc $(WARN) -static -o $@ $<

inject-programs: $(INJECT_PROGRAMS)
test-programs: inject-programs
.PHONY: inject-programs
