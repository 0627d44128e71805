// SPDX-License-Identifier: BSD-2-Clause
/* Which return addresses are kept. */
#include "capture/probe/return_blob.h"
#include "capture/probe/set_impl.h"
#include "unit.h"

/* When there are more than are kept, those go that were not met for longest. */
static void the_latest_are_kept(void)
{
	static struct kept_return all[RETURN_BLOB_MOST];
	const size_t nr = RETURN_BLOB_MOST + 100;
	struct file f = {.learnt = calloc(nr, sizeof(*f.learnt)), .nr_learnt = nr};
	uint32_t wrong = 0;

	if (!f.learnt)
		abort();
	/* The last ten are met now; the others are in the order in which they were kept before. */
	for (size_t i = 0; i < nr; i++) {
		f.learnt[i].code.kind = INSN_RETURN_FOLLOW;
		f.learnt[i].met = i >= nr - 10;
		*map64__at(&f.returns, 1000 + i) = i + 1;
	}
	CHECK_EQ(return_cache__collect(&f, all), RETURN_BLOB_MOST);
	for (size_t i = 0; i < RETURN_BLOB_MOST; i++)
		wrong += all[i].offset != 1000 + (i < 10 ? nr - 10 + i : i - 10);
	CHECK_EQ(wrong, 0);
	free(f.learnt);
	map64__free(&f.returns);
}

UNIT_MAIN(TEST(the_latest_are_kept))
