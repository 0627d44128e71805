// SPDX-License-Identifier: BSD-2-Clause
/*
 * Return addresses that the BPF programs skip, as the code there only returns in its turn. They
 * belong to an address space and its copies in forked children, and are forgotten with the last
 * process that has one: the kernel's table is small. (Where two copies map different files at the
 * same address later, an address learnt in one may be skipped in the other; calls that return there
 * then have no exact end, which they say.)
 */
#include <errno.h>
#include <stdlib.h>

#include "capture/probe/set_impl.h"
#include "util/util.h"

/* Those of the target's address space, made when there are none. NULL: no memory. */
static struct followed *followed_of(struct probe_set *ps, struct target *t)
{
	struct target_probes *tp = probe_set__of(ps, t);

	if (!tp || tp->followed)
		return tp ? tp->followed : NULL;
	tp->followed = calloc(1, sizeof(*tp->followed));
	if (tp->followed) {
		tp->followed->space = t->space;
		tp->followed->nr_processes = 1;
	}
	return tp->followed;
}

int followed__add(struct probe_set *ps, struct target *t, uint64_t ret_addr,
		  const struct insn_return *code)
{
	struct followed *fd = followed_of(ps, t);
	int err;

	if (!fd)
		return -ENOMEM;
	for (size_t i = 0; i < fd->nr; i++)
		if (fd->addrs[i] == ret_addr) /* told by another process of this space */
			return 0;
	err = vec_grow((void **)&fd->addrs, &fd->cap, fd->nr, sizeof(*fd->addrs));
	if (!err)
		err = attacher__follow(ps->opts.attacher, fd->space, ret_addr,
				       (uint32_t)code->follow_bytes, code->keeps_result);
	if (!err)
		fd->addrs[fd->nr++] = ret_addr;
	return err;
}

int followed__share(struct probe_set *ps, struct target *child, struct target *parent)
{
	struct target_probes *tp = probe_set__of(ps, child);
	struct followed *fd = tp ? followed_of(ps, parent) : NULL;

	if (!fd)
		return -ENOMEM;
	if (fd->space != child->space) /* it runs another program by now */
		return 0;
	tp->followed = fd;
	fd->nr_processes++;
	return 0;
}

void followed__leave(struct probe_set *ps, struct target_probes *tp)
{
	struct followed *fd = tp->followed;

	tp->followed = NULL;
	if (!fd || --fd->nr_processes)
		return;
	for (size_t i = 0; i < fd->nr; i++)
		attacher__unfollow(ps->opts.attacher, fd->space, fd->addrs[i]);
	free(fd->addrs);
	free(fd);
}
