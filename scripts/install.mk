# SPDX-License-Identifier: BSD-2-Clause
# Installs kprof. uninstall removes exactly what install has copied: both use the list INSTALLED.

DESTDIR ?=
BINDIR ?= $(PREFIX)/bin
LIBDIR ?= $(PREFIX)/lib
INCLUDEDIR ?= $(PREFIX)/include
PKGCONFIGDIR ?= $(LIBDIR)/pkgconfig
# Libraries that programs are not linked with, but kprof loads into them.
PRIVATELIBDIR ?= $(LIBDIR)/kprof
# What is made at every install, with the paths of that install, is made here.
INSTALL_GEN ?= $(BUILD)
# Where systemd looks, also under /usr/local.
SYSTEMDDIR ?= $(PREFIX)/lib/systemd/system
SYSUSERSDIR ?= $(PREFIX)/lib/sysusers.d
TMPFILESDIR ?= $(PREFIX)/lib/tmpfiles.d
DATADIR ?= $(PREFIX)/share
MANDIR ?= $(PREFIX)/share/man
BASHCOMPDIR ?= $(PREFIX)/share/bash-completion/completions
ZSHCOMPDIR ?= $(PREFIX)/share/zsh/site-functions

VERSION := $(shell sed -nE 's/^.define KPROF_VERSION_(MAJOR|MINOR|PATCH) ([0-9]+)/\2/p' include/kprof.h | paste -sd.)
SONAME := libkprof.so.$(firstword $(subst ., ,$(VERSION)))

# Each entry is MODE:SOURCE:DESTINATION; sources that do not exist are skipped.
INSTALL_FILES = 755:$(BUILD)/kprof:$(BINDIR)/kprof \
	644:$(BUILD)/libkprof.a:$(LIBDIR)/libkprof.a \
	755:$(BUILD)/libkprof.so:$(LIBDIR)/libkprof.so.$(VERSION) \
	755:$(BUILD)/libkprof_agent.so:$(PRIVATELIBDIR)/libkprof_agent.so \
	755:$(BUILD)/libkprof_mark.so:$(PRIVATELIBDIR)/libkprof_mark.so \
	644:share/kprof/kprof_mark.py:$(DATADIR)/kprof/kprof_mark.py \
	644:$(INSTALL_GEN)/kprof.pc:$(PKGCONFIGDIR)/kprof.pc \
	644:include/kprof.h:$(INCLUDEDIR)/kprof.h \
	644:include/kprof/machine.h:$(INCLUDEDIR)/kprof/machine.h \
	644:include/kprof/dump.h:$(INCLUDEDIR)/kprof/dump.h \
	644:include/kprof/rights.h:$(INCLUDEDIR)/kprof/rights.h \
	644:include/kprof/options.h:$(INCLUDEDIR)/kprof/options.h \
	644:include/kprof/diff.h:$(INCLUDEDIR)/kprof/diff.h \
	644:include/kprof/why.h:$(INCLUDEDIR)/kprof/why.h \
	644:include/kprof/counters.h:$(INCLUDEDIR)/kprof/counters.h \
	644:include/kprof/collectives.h:$(INCLUDEDIR)/kprof/collectives.h \
	644:include/kprof/merge.h:$(INCLUDEDIR)/kprof/merge.h \
	644:include/kprof/chunks.h:$(INCLUDEDIR)/kprof/chunks.h \
	644:include/kprof/control.h:$(INCLUDEDIR)/kprof/control.h \
	644:include/kprof/client.h:$(INCLUDEDIR)/kprof/client.h \
	644:include/kprof/dynolog.h:$(INCLUDEDIR)/kprof/dynolog.h \
	644:include/kprof/sent_files.h:$(INCLUDEDIR)/kprof/sent_files.h \
	644:include/kprof/memory.h:$(INCLUDEDIR)/kprof/memory.h \
	644:include/kprof/push.h:$(INCLUDEDIR)/kprof/push.h \
	644:include/kprof/steps.h:$(INCLUDEDIR)/kprof/steps.h \
	644:include/kprof/overhead.h:$(INCLUDEDIR)/kprof/overhead.h \
	644:include/kprof/top.h:$(INCLUDEDIR)/kprof/top.h \
	$(if $(wildcard include/kprof/mark.h),644:include/kprof/mark.h:$(INCLUDEDIR)/kprof/mark.h) \
	$(if $(wildcard include/kprof/profile.h),644:include/kprof/profile.h:$(INCLUDEDIR)/kprof/profile.h) \
	644:$(BUILD)/kprof.1:$(MANDIR)/man1/kprof.1 \
	644:$(INSTALL_GEN)/kprof.service:$(SYSTEMDDIR)/kprof.service \
	644:share/systemd/sysusers.conf:$(SYSUSERSDIR)/kprof.conf \
	644:share/systemd/tmpfiles.conf:$(TMPFILESDIR)/kprof.conf \
	644:$(INSTALL_GEN)/kprof.conf:$(DATADIR)/kprof/kprof.conf \
	$(if $(wildcard scripts/completion/kprof.bash),644:scripts/completion/kprof.bash:$(BASHCOMPDIR)/kprof) \
	$(if $(wildcard scripts/completion/_kprof),644:scripts/completion/_kprof:$(ZSHCOMPDIR)/_kprof)
INSTALL_LINKS = $(LIBDIR)/$(SONAME) $(LIBDIR)/libkprof.so
INSTALLED = $(foreach f,$(INSTALL_FILES),$(lastword $(subst :, ,$(f)))) $(INSTALL_LINKS)

$(INSTALL_GEN)/kprof.pc: FORCE
	@mkdir -p $(@D)
	@printf '%s\n' 'prefix=$(PREFIX)' 'libdir=$(LIBDIR)' 'includedir=$(INCLUDEDIR)' '' 'Name: kprof' \
		'Description: profile machine-learning processes from outside' 'Version: $(VERSION)' \
		'Libs: -L$${libdir} -lkprof' 'Libs.private: $(LIBS)' 'Cflags: -I$${includedir}' >$@

$(INSTALL_GEN)/kprof.service: share/systemd/kprof.service.in FORCE
	@mkdir -p $(@D)
	@sed 's,@BINDIR@,$(BINDIR),' $< >$@

# Not installed to /etc: a package does, or who wants other defaults copies it.
$(INSTALL_GEN)/kprof.conf: scripts/default-config $(BUILD)/kprof
	@mkdir -p $(@D)
	$(Q)scripts/default-config $(BUILD)/kprof >$@

install: all $(INSTALL_GEN)/kprof.pc $(INSTALL_GEN)/kprof.service $(INSTALL_GEN)/kprof.conf ## into PREFIX (/usr/local), under DESTDIR
	$(Q)set -e; for f in $(INSTALL_FILES); do \
		rest=$${f#*:}; install -D -m "$${f%%:*}" "$${rest%%:*}" "$(DESTDIR)$${rest#*:}"; \
	done
	$(Q)for link in $(INSTALL_LINKS); do ln -sf libkprof.so.$(VERSION) "$(DESTDIR)$$link"; done
	$(Q)[ -n "$(DESTDIR)" ] || [ "$$(id -u)" != 0 ] || ldconfig

uninstall: ## remove exactly what install put there
	$(Q)rm -f $(INSTALLED:%="$(DESTDIR)%")

deb: ## Debian packages of this machine's release, in build/deb
	$(Q)+BUILD='$(BUILD)' DEB_JOBS='$(JOBS)' scripts/deb

FORCE:
.PHONY: install uninstall deb FORCE
