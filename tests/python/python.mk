# SPDX-License-Identifier: BSD-2-Clause
# What tests/python.bats holds against the interpreters' own word: the walker in user space, and in the kernel.

PYSTACKS_DIR := $(BUILD)/python
PYSTACKS := $(PYSTACKS_DIR)/pystacks

$(PYSTACKS_DIR)/pystacks.bpf.o: tests/python/pystacks.bpf.c bpf/python.h include/kprof/python.h
	$(call say,BPF,$@)
	@mkdir -p $(@D)
	$(Q)$(CLANG) -O2 -g -Wall -Werror -target bpf -mcpu=v3 -D__TARGET_ARCH_x86 -Iinclude \
		-I/usr/include/$(shell uname -m)-linux-gnu -c $< -o $@

$(PYSTACKS_DIR)/pystacks.skel.h: $(PYSTACKS_DIR)/pystacks.bpf.o
	$(Q)$(BPFTOOL) gen skeleton $< name pystacks >$@

$(PYSTACKS): tests/python/pystacks.c $(PYSTACKS_DIR)/pystacks.skel.h bpf/python.h $(BUILD)/libkprof.a
	$(call say,CC,$@)
	$(Q)$(CC) $(CPPFLAGS_ALL) -I$(PYSTACKS_DIR) $(CFLAGS_ALL) -o $@ $< $(LDFLAGS) $(BUILD)/libkprof.a $(LIBS)

test-programs: $(PYSTACKS)

$(PYSTACKS_DIR)/embed: tests/python/embed.c
	$(call say,CC,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) -std=gnu11 -D_GNU_SOURCE -O2 -g $(WARN) -o $@ $< -ldl -pthread

test-programs: $(PYSTACKS_DIR)/embed
