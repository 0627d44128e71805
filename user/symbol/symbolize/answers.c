// SPDX-License-Identifier: BSD-2-Clause
/* The known names of a file's addresses, in order of address. */
#include "symbol/symbolize/priv.h"

#include <errno.h>
#include <stdlib.h>

#include "util/order.h"

const struct symbol_known *symbol_knowns__find(const struct symbol_knowns *k, uint64_t vaddr)
{
	size_t low = ORDER_LOWER(k->all, k->nr, vaddr, vaddr);

	return low < k->nr && k->all[low].vaddr == vaddr ? &k->all[low] : NULL;
}

int symbol_knowns__merge(struct symbol_knowns *k, struct symbol_knowns *more)
{
	struct symbol_known *all;
	size_t i = 0, j = 0, nr = 0;

	if (!more->nr) {
		free(more->all);
		*more = (struct symbol_knowns){0};
		return 0;
	}
	all = reallocarray(NULL, k->nr + more->nr, sizeof(*all));
	if (!all)
		return -ENOMEM;
	while (i < k->nr || j < more->nr) {
		bool old = j == more->nr || (i < k->nr && k->all[i].vaddr < more->all[j].vaddr);

		if (!old && i < k->nr && k->all[i].vaddr == more->all[j].vaddr)
			i++;
		all[nr++] = old ? k->all[i++] : more->all[j++];
	}
	free(k->all);
	free(more->all);
	*more = (struct symbol_knowns){0};
	k->all = all;
	k->nr = nr;
	return 0;
}
