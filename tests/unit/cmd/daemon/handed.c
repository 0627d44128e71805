// SPDX-License-Identifier: BSD-2-Clause
/* Which captures were handed over, also to a daemon before. */
#include "unit.h"

#include <fcntl.h>
#include <unistd.h>

#include "cmd/daemon/pusher.h"

static char folder[] = "/tmp/kprof-unit-handed-XXXXXX";
static char file[64];

static void store(const char *name)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	close(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
}

static bool is_next(struct handed *h, const char *name)
{
	char next[HANDED_NAME_BYTES];

	return handed__next(h, next) ? name && !strcmp(next, name) : !name;
}

/* What another daemon reads. */
static void again(struct handed *h)
{
	handed__close(h);
	handed__open(h, folder, file);
}

static void each_once(void)
{
	struct handed h = {0};

	CHECK(mkdtemp(folder));
	snprintf(file, sizeof(file), "%s/pushed", folder);
	store("1-1-1.kprof");
	/* there is no file: what is there counts as handed over */
	handed__open(&h, folder, file);
	CHECK(is_next(&h, NULL));
	store("3-1-3.kprof");
	store("4-2-1.kprof");
	CHECK(is_next(&h, "3-1-3.kprof"));
	CHECK(is_next(&h, "3-1-3.kprof")); /* until it was */
	handed__add(&h, "3-1-3.kprof");
	CHECK(is_next(&h, "4-2-1.kprof"));
	again(&h);
	CHECK(is_next(&h, "4-2-1.kprof"));
	handed__add(&h, "4-2-1.kprof");
	/* one that is stored later, with an earlier name */
	store("2-1-2.kprof");
	again(&h);
	CHECK(is_next(&h, "2-1-2.kprof"));
	handed__add(&h, "2-1-2.kprof");
	again(&h);
	CHECK(is_next(&h, NULL));
	/* without anything open, as after the last one */
	handed__close(&h);
	CHECK(is_next(&h, NULL));
	handed__add(&h, "5-1-1.kprof");
}

/* What is gone is forgotten: neither the names nor their file grow for ever. */
static void is_bounded(void)
{
	char name[HANDED_NAME_BYTES], path[128];
	struct handed h = {0};
	struct stat st;

	handed__open(&h, folder, file);
	for (int i = 100; i < 1100; i++) {
		snprintf(name, sizeof(name), "%d-1-1.kprof", i);
		snprintf(path, sizeof(path), "%s/%s", folder, name);
		store(name);
		CHECK(is_next(&h, name));
		handed__add(&h, name);
		unlink(path);
	}
	CHECK(h.names.nr < 10);
	CHECK(!stat(file, &st));
	CHECK(st.st_size < 2000);
	again(&h);
	CHECK(is_next(&h, NULL));
	handed__close(&h);
}

UNIT_MAIN(TEST(each_once), TEST(is_bounded))
