// SPDX-License-Identifier: BSD-2-Clause
#include "push/impl.h"
#include "store_fixture.h"

#define HASH "0123456789abcdef"
#define OTHER "fedcba9876543210"

static void open_queue(struct push_queue *q, const char *name)
{
	*q = (struct push_queue){.fd = -1,
				 .lock = -1,
				 .path = name ? strdup(in_scratch(name)) : NULL,
				 .most_bytes = 1 << 20,
				 .most_age_ns = 3600 * NSEC_PER_SEC};
	CHECK_EQ(push_queue__open(q), 0);
}

/* An entry of so many requests, each of a head of two bytes and a body of this size. */
static void put_entry(struct push_queue *q, const char *hash, int requests, size_t bytes)
{
	char *path, name[300], *body = calloc(1, bytes + 1);

	CHECK_EQ(push_queue__begin(q, &path), 0);
	for (int i = 0; i < requests; i++) {
		snprintf(name, sizeof(name), "%s/%d.head", path, i);
		spit(name, "{}", 2);
		snprintf(name, sizeof(name), "%s/%d.body", path, i);
		spit(name, body, bytes);
	}
	CHECK_EQ(push_queue__commit(q, path, hash), 0);
	free(path);
	free(body);
}

static void kept(void)
{
	struct push_queue q, second = {.fd = -1, .lock = -1};
	struct stat st;
	char *head;
	uint64_t bytes;
	int body;

	open_queue(&q, "kept");
	CHECK_EQ(stat(q.path, &st), 0);
	CHECK_EQ(st.st_mode & 0777, 0700);
	CHECK(!push_queue__next(&q));
	put_entry(&q, HASH, 12, 10);
	CHECK_EQ(q.nr, 12);
	CHECK_EQ(q.bytes, 144);
	CHECK(push_queue__has(&q, HASH) && !push_queue__has(&q, OTHER));
	CHECK_STR(push_queue__next(&q)->name, "0");
	/* One pusher at a time. */
	second.path = strdup(q.path);
	CHECK_EQ(push_queue__open(&second), -EBUSY);
	free(second.path);
	push_queue__close(&q);

	/* Another process finds the same, in the same order. */
	open_queue(&q, "kept");
	CHECK_EQ(q.nr, 12);
	CHECK(push_queue__has(&q, HASH));
	for (size_t i = 0; i < q.nr; i++)
		CHECK_EQ(atoi(q.items[i].name), i);
	CHECK_EQ(push_queue__read(&q, &q.items[1], &head, &body, &bytes), 0);
	CHECK_STR(head, "{}");
	CHECK_EQ(bytes, 10);
	free(head);
	close(body);
	/* What has failed comes last. */
	push_queue__failed(&q, &q.items[0]);
	CHECK_STR(push_queue__next(&q)->name, "1");
	for (size_t i = 0; i < 12; i++)
		push_queue__failed(&q, &q.items[i]);
	CHECK_STR(push_queue__next(&q)->name, "0");
	while (q.nr)
		push_queue__remove(&q, &q.items[q.nr / 2]);
	CHECK_EQ(q.bytes, 0);
	push_queue__close(&q);
	CHECK_EQ(stat(in_scratch("kept"), &st), 0);
	CHECK_EQ(st.st_nlink, 2); /* no folders in it */
}

/* ENTRY/NAME of the first request's entry, or of a folder's path; valid until the next call. */
static const char *below(const char *folder, const char *name)
{
	static char path[300];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return path;
}

/* Killed while an entry was written, or while one was sent; and what others have put there. */
static void leftovers(void)
{
	struct push_queue q;
	char *path, *head;
	uint64_t bytes;
	int body;

	open_queue(&q, "left");
	put_entry(&q, HASH, 3, 5);
	CHECK_EQ(push_queue__begin(&q, &path), 0);
	spit(in_scratch("x"), "x", 1);
	CHECK_EQ(rename(in_scratch("x"), below(path, "0.head")), 0);
	unlinkat(q.fd, below(q.items[0].entry, "1.body"), 0);
	unlinkat(q.fd, below(q.items[0].entry, "2.head"), 0);
	CHECK_EQ(mkdirat(q.fd, "1234567890123-0000000000000000", 0700), 0);
	CHECK_EQ(mkdirat(q.fd, "1234567890123-mine", 0700), 0);
	push_queue__close(&q);
	open_queue(&q, "left");
	CHECK_EQ(q.nr, 2);
	CHECK_EQ(push_queue__read(&q, &q.items[0], &head, &body, &bytes), 0);
	free(head);
	close(body);
	CHECK_EQ(push_queue__read(&q, &q.items[1], &head, &body, &bytes), -EBADMSG);
	CHECK(access(path, F_OK));
	CHECK_EQ(faccessat(q.fd, "1234567890123-0000000000000000", F_OK, 0), -1);
	CHECK_EQ(faccessat(q.fd, "1234567890123-mine", F_OK, 0), 0);
	/* A link to elsewhere is no request. */
	CHECK_EQ(unlinkat(q.fd, below(q.items[0].entry, "0.head"), 0), 0);
	CHECK_EQ(symlinkat("/etc/passwd", q.fd, below(q.items[0].entry, "0.head")), 0);
	CHECK_EQ(push_queue__read(&q, &q.items[0], &head, &body, &bytes), -EBADMSG);
	free(path);
	push_queue__close(&q);
}

static void bounded(void)
{
	struct push_queue q;
	struct push_item keep;

	open_queue(&q, "bounded");
	put_entry(&q, HASH, 4, 98);
	put_entry(&q, OTHER, 4, 98);
	CHECK_EQ(q.bytes, 800);
	q.most_bytes = 550;
	keep = q.items[0];
	push_queue__trim(&q, clock_real_ns(), &keep);
	CHECK_EQ(q.nr, 5);
	CHECK_EQ(q.dropped[KPROF_PUSH_NO_ROOM], 3);
	CHECK(!strcmp(q.items[0].name, keep.name)); /* it is on its way */
	CHECK(strstr(q.items[1].entry, OTHER));
	push_queue__trim(&q, clock_real_ns(), NULL);
	CHECK_EQ(q.nr, 5);
	/* A clock that was set back makes nothing old. */
	push_queue__trim(&q, 1, NULL);
	CHECK_EQ(q.nr, 5);
	push_queue__trim(&q, clock_real_ns() + 3601 * NSEC_PER_SEC, NULL);
	CHECK_EQ(q.nr, 0);
	CHECK_EQ(q.dropped[KPROF_PUSH_TOO_OLD], 5);
	push_queue__close(&q);
}

static void others(void)
{
	struct push_queue q = {.fd = -1, .lock = -1, .path = strdup(in_scratch("open"))};

	CHECK_EQ(mkdir(q.path, 0700), 0);
	CHECK_EQ(chmod(q.path, 0777), 0);
	CHECK_EQ(push_queue__open(&q), -EPERM);
	CHECK(strstr(kprof_error_cause(), "others can write"));
	CHECK_EQ(rmdir(q.path), 0);
	CHECK_EQ(symlink("/tmp", q.path), 0);
	CHECK(push_queue__open(&q) < 0);
	free(q.path);
}

static void temporary(void)
{
	struct push_queue q;
	char path[256];

	setenv("TMPDIR", scratch, 1);
	open_queue(&q, NULL);
	snprintf(path, sizeof(path), "%s", q.path);
	put_entry(&q, HASH, 2, 7);
	push_queue__close(&q);
	CHECK_EQ(access(path, F_OK), -1);
}

UNIT_MAIN({"(set-up)", scratch__make}, TEST(kept), TEST(leftovers), TEST(bounded), TEST(others),
	  TEST(temporary), {"(clean-up)", scratch__remove})
