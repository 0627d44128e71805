// SPDX-License-Identifier: BSD-2-Clause
/*
 * Any bytes as the libraries that layouts are learnt from: an offset is learnt, or its recipe is
 * switched off with a reason. The same file again gives the same answer.
 */
#include <sys/mman.h>
#include <unistd.h>

#include "capture/probe/layout.h"
#include "fuzz.h"

static bool is_among_rows(const struct catalog_row *row)
{
	return row->layout != CATALOG_LAYOUT_NONE || row->text_for_vtable || row->value_is;
}

static void check_row(struct layout_env *env, const struct catalog_row *row)
{
	struct kprof_wire_probe learnt = {0}, again = {0};
	const char *why = layout_fill(env, row, &learnt);
	int32_t value =
		row->layout_at < 0
			? learnt.text.add
			: learnt.text.off[row->layout_at < KPROF_RECIPE_MAX ? row->layout_at : 0];

	REQUIRE(!why || *why);
	REQUIRE(!why == (learnt.text.reg == row->text.reg));
	REQUIRE(learnt.text_conditional <= 1 && learnt.text_if_value_low12 <= 0xfff);
	if (!why && row->layout == CATALOG_LAYOUT_FIELD)
		REQUIRE(value >= 1);
	if (!why && row->layout == CATALOG_LAYOUT_PYUNICODE)
		REQUIRE(value == 40 || value == 48);
	REQUIRE(!memcmp(&learnt.value, &row->value, sizeof(row->value)));
	REQUIRE(layout_fill(env, row, &again) == why && !memcmp(&learnt, &again, sizeof(again)));
}

static void use(struct elffile *e)
{
	static const char *const names[] = {"libtorch_python.so", "libpython3.11.so.1.0",
					    "libtorch_cpu.so"};
	struct elffile *const files[] = {e, e, e};
	struct layout_env env = {.files = files, .names = names, .nr = 3};

	for (const struct catalog_framework *const *fw = catalog_frameworks; *fw; fw++)
		for (size_t i = 0; i < (*fw)->nr_rows; i++)
			if (is_among_rows(&(*fw)->rows[i]))
				check_row(&env, &(*fw)->rows[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	static int fd = -1;
	struct elffile *e;

	if (fd < 0)
		fd = memfd_create("fuzz", MFD_CLOEXEC);
	REQUIRE(fd >= 0 && !ftruncate(fd, 0) && pwrite(fd, data, bytes, 0) == (ssize_t)bytes);
	if (!elffile__open_fd(fd, "[fuzz]", &e)) {
		use(e);
		elffile__close(e);
	}
	return 0;
}
