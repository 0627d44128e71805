// SPDX-License-Identifier: BSD-2-Clause
/* Folders of captures: how old they are; what goes in one turn of the loop, by bytes, for space. */
#include "unit.h"

#include <cjson/cJSON.h>
#include <fcntl.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "cmd/daemon/daemon.h"

#define FILES 150
#define AT_ONCE 64
#define PIECE (256ull << 10)

static const uint64_t hour_ns = 3600ull * 1000000000;
static char folder[] = "/tmp/kprof-unit-folder-XXXXXX";

static void make(int number, const char *suffix, time_t at)
{
	const struct timespec times[2] = {{.tv_sec = at}, {.tv_sec = at}};
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "%s/%013d-1-1.%s", folder, number, suffix);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	CHECK(fd >= 0 && !futimens(fd, times));
	close(fd);
}

/* Some at once, so that others of the loop get their turn, in order; in the end all that is old. */
static void not_all_at_once(void)
{
	struct folder_sums sums;
	uint64_t removed = 0;
	char **names;
	size_t nr;
	int turns = 0;

	CHECK(mkdtemp(folder));
	for (int i = 0; i < FILES; i++) {
		make(i, "kprof", 946684800);
		make(i, "json", 946684800);
	}
	make(FILES, "kprof", time(NULL));
	do {
		folder_trim(folder, hour_ns, UINT64_MAX, 0, NULL, &sums);
		turns++;
		removed += sums.removed;
		CHECK(sums.removed && sums.removed <= AT_ONCE);
		CHECK_EQ(sums.files, FILES + 1 - removed);
		CHECK_EQ(sums.more, removed < FILES);
		CHECK(!folder_list(folder, &names, &nr));
		CHECK_EQ(nr, FILES + 1 - removed);
		CHECK_EQ(strtol(names[0], NULL, 10), removed);
		folder_list_free(names, nr);
	} while (sums.more && turns < FILES);
	CHECK(turns > FILES / AT_ONCE);
	CHECK_EQ(removed, FILES);
	folder_trim(folder, 1, UINT64_MAX, 0, NULL, &sums);
	CHECK(!rmdir(folder)); /* their descriptions went with them */
}

/* The clock was years behind, and is put right: that makes none old. */
static void by_a_clock_that_nobody_sets(void)
{
	struct shelf s = {0};
	char path[128], **names;
	size_t nr;

	strcpy(folder + strlen(folder) - 6, "XXXXXX");
	CHECK(mkdtemp(folder));
	for (int i = 3; i; i--) {
		make(i, "kprof", 946684800);
		snprintf(path, sizeof(path), "%s/%013d-1-1.kprof", folder, i);
		if (i != 2) /* that one is of a daemon before */
			shelf__note(&s, path);
	}
	/* a folder that cannot be looked at for once says nothing about what is there */
	CHECK(!shelf__trim(&s, "/nowhere", hour_ns, UINT64_MAX, 0));
	CHECK_EQ(s.nr, 2);
	CHECK(!shelf__trim(&s, folder, hour_ns, UINT64_MAX, 0));
	CHECK_EQ(s.sums.files, 2);
	CHECK_EQ(s.removed, 1);
	CHECK(!folder_list(folder, &names, &nr));
	CHECK(nr == 2 && strtol(names[0], NULL, 10) == 1 && strtol(names[1], NULL, 10) == 3);
	folder_list_free(names, nr);
	CHECK(!unlink(path));
	CHECK(!shelf__trim(&s, folder, hour_ns, UINT64_MAX, 0));
	CHECK_EQ(s.nr, 1); /* what is gone is forgotten */
	CHECK(!shelf__trim(&s, folder, 1, UINT64_MAX, 0));
	CHECK_EQ(s.removed, 2);
	CHECK(!shelf__trim(&s, folder, 1, UINT64_MAX, 0));
	CHECK_EQ(s.nr, 0);
	shelf__free(&s);
	CHECK(!rmdir(folder));
}

/* Makes a file that nobody has open; whether it is there after the folder was looked through. */
static bool stays(const char *format, int number)
{
	struct folder_sums sums;
	char path[128], name[64];
	int fd;

	snprintf(name, sizeof(name), format, number);
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	CHECK(fd >= 0);
	folder_trim(folder, 0, UINT64_MAX, 0, NULL, &sums);
	CHECK(!access(path, F_OK)); /* somebody has it open */
	close(fd);
	folder_trim(folder, 0, UINT64_MAX, 0, NULL, &sums);
	return !unlink(path);
}

static void unfinished(void)
{
	CHECK(mkdtemp(strcpy(folder, "/tmp/kprof-unit-folder-XXXXXX")));
	CHECK(!stays(".0000000000001-1-%d.kprof.abc.tmp", 1));
	CHECK(stays(".look.%d.tmp", (int)getpid()));
	CHECK(!stays(".look.%d.tmp", 1 << 22)); /* no process has a larger one */
	CHECK(!rmdir(folder));
}

/* So many new captures of nearly PIECE each, the first one the oldest. */
static void make_large(int nr)
{
	char path[128];
	int fd;

	CHECK(mkdtemp(strcpy(folder, "/tmp/kprof-unit-folder-XXXXXX")));
	for (int i = 0; i < nr; i++) {
		make(i, "kprof", time(NULL));
		snprintf(path, sizeof(path), "%s/%013d-1-1.kprof", folder, i);
		fd = open(path, O_WRONLY | O_CLOEXEC);
		CHECK(fd >= 0 && !posix_fallocate(fd, 0, PIECE - (16 << 10)));
		close(fd);
	}
}

/* How many there are; first: the number of the oldest. */
static size_t there(long *first)
{
	char **names;
	size_t nr;

	CHECK(!folder_list(folder, &names, &nr));
	*first = nr ? strtol(names[0], NULL, 10) : -1;
	folder_list_free(names, nr);
	return nr;
}

static void no_more_than_so_many_bytes(void)
{
	struct folder_sums sums;
	long first;

	make_large(6);
	folder_trim(folder, hour_ns, 4 * PIECE, 0, NULL, &sums);
	CHECK(there(&first) == 4 && first == 2);
	CHECK(sums.files == 4 && sums.removed == 2 && !sums.wanted);
	CHECK(sums.bytes <= 4 * PIECE && sums.bytes > 3 * PIECE);
	folder_trim(folder, 0, 0, 0, NULL, &sums);
	CHECK(!rmdir(folder));
}

/* How many lines of this event are in what was said, and the numbers of the last one. */
static int said(const char *path, double *files, double *bytes)
{
	static char line[4096];
	FILE *f = fopen(path, "re");
	int nr = 0;

	CHECK(f);
	while (fgets(line, sizeof(line), f)) {
		cJSON *o = cJSON_Parse(line);
		const char *event =
			cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(o, "event"));

		if (event && !strcmp(event, "disk")) {
			nr++;
			*files = cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(o, "files"));
			*bytes = cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(o, "bytes"));
		}
		cJSON_Delete(o);
	}
	fclose(f);
	return nr;
}

/* For want of space the oldest go first, some at once, and the log says how many: now and then. */
static void for_want_of_space(void)
{
	const uint64_t all = UINT64_MAX / 2; /* no disk has so much */
	char log[] = "/tmp/kprof-unit-log-XXXXXX";
	int fd = mkstemp(log), before = dup(STDERR_FILENO);
	double files = 0, bytes = 0;
	struct shelf s = {0};
	long first;

	make_large(AT_ONCE + 6);
	CHECK(fd >= 0 && before >= 0 && dup2(fd, STDERR_FILENO) >= 0);
	CHECK(!shelf__trim(&s, folder, hour_ns, UINT64_MAX, 0)); /* there is room */
	CHECK_EQ(said(log, &files, &bytes), 0);
	CHECK(shelf__trim(&s, folder, hour_ns, UINT64_MAX, all));
	CHECK_EQ(there(&first), AT_ONCE + 6 - s.removed);
	CHECK_EQ(first, s.removed);
	CHECK_EQ(said(log, &files, &bytes), 1);
	CHECK(files == (double)s.removed && bytes == (double)s.removed_bytes && files > 0);
	while (shelf__trim(&s, folder, hour_ns, UINT64_MAX, all))
		;
	CHECK_EQ(there(&first), 0);
	CHECK_EQ(said(log, &files, &bytes), 1);
	s.want.next_ns = 0; /* a minute later */
	CHECK(!shelf__trim(&s, folder, hour_ns, UINT64_MAX, all));
	CHECK_EQ(said(log, &files, &bytes), 2);
	CHECK_EQ(s.want.files, 0);
	CHECK(dup2(before, STDERR_FILENO) >= 0 && !close(fd) && !close(before) && !unlink(log));
	shelf__free(&s);
	CHECK(!rmdir(folder));
}

UNIT_MAIN(TEST(not_all_at_once), TEST(by_a_clock_that_nobody_sets), TEST(unfinished),
	  TEST(no_more_than_so_many_bytes), TEST(for_want_of_space))
