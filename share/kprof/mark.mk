# SPDX-License-Identifier: BSD-2-Clause
# kprof/mark.h as a library of functions, for Python (kprof_mark.py) and other languages.

MARK_LIBRARY := $(BUILD)/libkprof_mark.so

all: $(MARK_LIBRARY)

# It needs no C library, so that programs of any load it: none of glibc's checks, whatever else is built with.
$(MARK_LIBRARY): share/kprof/mark_library.c include/kprof/mark.h
	$(call say,CC,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) -shared -Iinclude $(CFLAGS_ALL) -fvisibility=hidden -fno-stack-protector -Wl,-soname,libkprof_mark.so $(LDFLAGS) -o $@ $<
