// SPDX-License-Identifier: BSD-2-Clause
/*
 * Sets of links, and closing them such that a SIGKILL meanwhile does no harm.
 *
 * The kernel removes breakpoints from a process when the last descriptor of their link is closed.
 * If the task that closes it is being killed, this fails half way ("failed to unregister, leaking
 * uprobe" in the kernel's log): register_for_each_vma() takes the target's mmap lock killably (see
 * also attach_helper.h). The breakpoints then stay, and the target pays for each hit for the rest
 * of its life. A task that is exiting already cannot be killed. So the last descriptors are held by
 * short-lived processes (keepers) that do nothing but exit, when kprof says so or is gone. There
 * are several of them, because closing a link takes the kernel some 50 ms, mostly waiting.
 */
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include "capture/probe/links.h"
#include "util/haste.h"
#include "util/util.h"

#define MAX_KEEPERS 16
/*
 * Links with at least so many probes are closed one after the other, by the same keeper. For each
 * probe, the kernel takes a lock of the whole machine (dup_mmap_sem), which passes to whoever waits
 * for it: two keepers would go to sleep, and be woken, at every probe. That takes a millisecond
 * where all CPUs are busy. With fewer, waiting in turn for a grace period each (50 ms) takes long.
 */
#define MANY_PROBES 256

struct keepers {
	const struct attach_link *links;
	size_t nr_links, nr; /* see keeper_of() */
	/*
	 * Pipes to which nothing is written: the reader waits for the last writer to close its end.
	 */
	int ready[2]; /* read by kprof: closed when each keeper holds only its own links */
	int go[2];    /* read by the keepers: closed when they shall exit */
	pid_t pids[MAX_KEEPERS];
};

/* Which keeper holds the link: the first one all links of many probes, the others one in turn. */
static size_t keeper_of(const struct keepers *ks, size_t link)
{
	if (ks->nr == 1 || ks->links[link].nr_probes >= MANY_PROBES)
		return 0;
	return 1 + link % (ks->nr - 1);
}

static void keeper(const struct keepers *ks, size_t self)
{
	char byte = 0;

	setsid(); /* so that Ctrl-C does not signal the keeper */
	close(ks->go[1]);
	for (size_t i = 0; i < ks->nr_links; i++)
		if (keeper_of(ks, i) != self)
			close(ks->links[i].fd);
	close(ks->ready[1]);
	while (read(ks->go[0], &byte, 1) < 0 && errno == EINTR)
		;
	_exit(0);
}

/* Starts the keepers and waits until each holds only its own links. */
static void keepers_start(struct keepers *ks)
{
	size_t started = 0;
	char byte;

	/*
	 * A single uprobe's link (libbpf's) has a second descriptor that libbpf does not show, so
	 * one keeper must hold all.
	 */
	ks->nr = ks->links[0].libbpf ? 1 : ks->nr_links < MAX_KEEPERS ? ks->nr_links : MAX_KEEPERS;
	for (; started < ks->nr; started++) {
		ks->pids[started] = fork();
		if (ks->pids[started] == 0)
			keeper(ks, started);
		if (ks->pids[started] < 0)
			break;
	}
	ks->nr = started;
	close(ks->ready[1]);
	ks->ready[1] = -1;
	while (read(ks->ready[0], &byte, 1) < 0 && errno == EINTR)
		;
}

static void keepers_end(struct keepers *ks)
{
	close(ks->go[0]);
	close(ks->go[1]);
	for (size_t i = 0; i < ks->nr; i++)
		while (waitpid(ks->pids[i], NULL, 0) < 0 && errno == EINTR)
			;
}

static void close_link(struct attach_link link)
{
	if (link.libbpf)
		bpf_link__destroy(link.libbpf);
	else
		close(link.fd);
}

static void close_links(const struct attach_link *links, size_t nr)
{
	struct keepers ks = {.links = links, .nr_links = nr, .ready = {-1, -1}};
	bool kept = nr > 0 && !pipe(ks.ready) && !pipe(ks.go);
	int nice = haste__begin(); /* see attach_helper_call() */

	/*
	 * Without keepers this process closes the links itself; only a SIGKILL meanwhile can do
	 * harm.
	 */
	if (kept)
		keepers_start(&ks);
	for (size_t i = 0; i < nr; i++)
		close_link(links[i]);
	if (kept)
		keepers_end(&ks);
	haste__end(nice);
	for (int i = 0; i < 2; i++)
		if (ks.ready[i] >= 0)
			close(ks.ready[i]);
}

/* ---- sets ---- */

int attach_links_add(struct attach_links *links, struct attach_link link)
{
	int err = vec_grow((void **)&links->links, &links->cap, links->nr, sizeof(*links->links));

	if (err)
		close_link(link);
	else
		links->links[links->nr++] = link;
	return err;
}

void attach_links_mark(struct attach_links *links, size_t from, const void *file)
{
	for (size_t i = from; i < links->nr; i++)
		links->links[i].file = file;
}

void attach_links_take(struct attach_links *to, struct attach_links *from, const void *file)
{
	size_t kept = 0;

	for (size_t i = 0; i < from->nr; i++)
		if (from->links[i].file == file)
			attach_links_add(to, from->links[i]);
		else
			from->links[kept++] = from->links[i];
	from->nr = kept;
}

void attach_links_move(struct attach_links *to, struct attach_links *from)
{
	for (size_t i = 0; i < from->nr; i++)
		attach_links_add(to, from->links[i]);
	free(from->links);
	memset(from, 0, sizeof(*from));
}

void attach_links_cut(struct attach_links *links, size_t nr)
{
	if (nr >= links->nr)
		return;
	close_links(&links->links[nr], links->nr - nr);
	links->nr = nr;
}

void attach_links_close(struct attach_links *links)
{
	attach_links_cut(links, 0);
	free(links->links);
	memset(links, 0, sizeof(*links));
}
