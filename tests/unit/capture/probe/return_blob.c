// SPDX-License-Identifier: BSD-2-Clause
#include "capture/probe/return_blob.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "unit.h"

static struct kept_return all[RETURN_BLOB_MOST], read_back[RETURN_BLOB_MOST];

static char *packed(size_t nr, size_t *bytes)
{
	for (size_t i = 0; i < nr; i++)
		all[i] = (struct kept_return){.offset = (UINT64_MAX >> 1) - 7 * i,
					      .result = i % 3 == 0};
	return return_blob__pack(all, nr, 99, bytes);
}

static void same(void)
{
	static const size_t sizes[] = {0, 1, 100, RETURN_BLOB_MOST};

	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		size_t bytes, nr;
		char *blob = packed(sizes[i], &bytes);

		CHECK(bytes <= RETURN_BLOB_MAX_BYTES);
		CHECK_EQ(return_blob__unpack(blob, bytes, 99, read_back, &nr), 0);
		CHECK_EQ(nr, sizes[i]);
		for (size_t k = 0; k < nr; k++)
			CHECK(read_back[k].offset == all[k].offset &&
			      read_back[k].result == all[k].result);
		CHECK_EQ(return_blob__unpack(blob, bytes, 98, read_back, &nr), -ESTALE);
		free(blob);
	}
}

/* Whatever byte is another, and wherever it is cut. */
static void damaged(void)
{
	size_t bytes, nr;
	char *blob = packed(20, &bytes);

	for (size_t i = 0; i < bytes; i++) {
		blob[i] ^= 0x10;
		CHECK(return_blob__unpack(blob, bytes, 99, read_back, &nr) < 0);
		CHECK_EQ(nr, 0);
		blob[i] ^= 0x10;
		CHECK(return_blob__unpack(blob, i, 99, read_back, &nr) < 0);
	}
	free(blob);
}

UNIT_MAIN(TEST(same), TEST(damaged))
