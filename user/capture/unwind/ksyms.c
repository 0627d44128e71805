// SPDX-License-Identifier: BSD-2-Clause
#include "capture/unwind/ksyms.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ksym.skel.h"
#include "symbol/names/names.h"
#include "util/error.h"

struct ksyms {
	struct ksym_bpf *skel; /* NULL: the list of symbols is used instead */
	struct kallsyms *list;
};

/* Runs the BPF program. 0: its answer is in the program's memory. */
static int ask(struct ksym_bpf *skel, uint64_t address)
{
	LIBBPF_OPTS(bpf_test_run_opts, opts);

	skel->bss->address = address;
	skel->bss->name[0] = '\0';
	if (bpf_prog_test_run_opts(bpf_program__fd(skel->progs.kprof_ksym), &opts))
		return -errno;
	return opts.retval || !skel->bss->name[0] ? -ENOENT : 0;
}

int ksyms__new(bool list, struct ksyms **out)
{
	struct ksyms *k = calloc(1, sizeof(*k));
	int err = 0;

	if (!k)
		return error_set(-ENOMEM, NULL, "no memory for the kernel's symbols");
	k->skel = list ? NULL : ksym_bpf__open_and_load();
	if (k->skel && ask(k->skel, 0)) {
		ksym_bpf__destroy(k->skel);
		k->skel = NULL;
	}
	if (!k->skel)
		err = kallsyms__load(NULL, &k->list);
	if (err)
		ksyms__free(k);
	else
		*out = k;
	return err;
}

void ksyms__free(struct ksyms *k)
{
	if (!k)
		return;
	ksym_bpf__destroy(k->skel);
	kallsyms__free(k->list);
	free(k);
}

static bool in_list(const struct kallsyms *list, uint64_t address, char *name, size_t bytes)
{
	struct kallsyms_symbol s;

	if (kallsyms__find(list, address, &s))
		return false;
	snprintf(name, bytes, "%s%s%s%s", s.name, *s.module ? " [" : "", s.module,
		 *s.module ? "]" : "");
	return true;
}

bool ksyms__name(struct ksyms *k, uint64_t address, char *name, size_t bytes)
{
	if (!k->skel)
		return in_list(k->list, address, name, bytes);
	if (ask(k->skel, address) || !strncmp(k->skel->bss->name, "0x", 2))
		return false;
	snprintf(name, bytes, "%s", k->skel->bss->name);
	return true;
}
