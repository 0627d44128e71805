// SPDX-License-Identifier: BSD-2-Clause
/*
 * What runs in a process. Reading all that it maps takes a tenth of a millisecond and more, so it
 * is done once, and again, more and more rarely, while a busy process has no framework: it may load
 * one.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "capture/live/impl.h"
#include "util/util.h"

#define LEAST_WAIT_NS (2 * NSEC_PER_SEC)
#define MOST_WAIT_NS (300 * NSEC_PER_SEC)
#define CMDLINE_MOST_BYTES 4096 /* longer ones are cut */

/* Cuts a valid text to a limit, between two characters. */
static void cut(char *text, size_t most)
{
	if (strlen(text) <= most)
		return;
	while (most && ((unsigned char)text[most] & 0xc0) == 0x80)
		most--;
	text[most] = '\0';
}

static void take_cmdline(struct top_process *p)
{
	char *cmdline, *small;

	if (proc_cmdline(p->shown.pid, &cmdline))
		return;
	cut(cmdline, CMDLINE_MOST_BYTES);
	small = strdup(cmdline); /* arguments may be megabytes */
	free(cmdline);
	if (!small)
		return;
	free(p->cmdline);
	p->cmdline = small;
	p->shown.cmdline = p->cmdline;
}

void top_look_closely(struct top_process *p, uint64_t now_ns)
{
	struct proc_maps *maps;
	struct proc_info info;
	int err = proc_info_read(p->shown.pid, &info);

	if (err || info.start_ticks != p->shown.start_ticks)
		return;
	p->wait_ns = !p->wait_ns ? LEAST_WAIT_NS : 2 * p->wait_ns;
	if (p->wait_ns > MOST_WAIT_NS)
		p->wait_ns = MOST_WAIT_NS;
	p->due_ns = now_ns + p->wait_ns;
	p->shown.uid = info.uid;
	p->shown.known = true;
	take_cmdline(p);
	err = proc_maps__read(p->shown.pid, &maps);
	p->unreadable = err == -EACCES;
	if (err)
		return;
	discover_frameworks(p->shown.pid, maps, p->frameworks, sizeof(p->frameworks));
	discover_runtimes(maps, p->runtimes, sizeof(p->runtimes));
	discover_python(p->shown.pid, maps, p->python);
	proc_maps__free(maps);
	if (p->frameworks[0])
		p->due_ns = UINT64_MAX; /* until it executes another program */
}
