// SPDX-License-Identifier: BSD-2-Clause
/* What comes along with datagrams. */
#include "unit.h"

#include "dynolog_fixture.h"
#include "kprof.h"
#include "lingering.h"

static char name[48], own[48];

static int next_descriptor(void)
{
	int fd = dup(0);

	close(fd);
	return fd;
}

static int begin(struct kprof_dynolog **d)
{
	struct kprof_dynolog_opts opts = {.sz = sizeof(opts), .name = name, .no_tcp = true};

	snprintf(name, sizeof(name), "kprof-unit-%d", getpid());
	snprintf(own, sizeof(own), "kprof-unit-%d-rights", getpid());
	CHECK_EQ(kprof_dynolog_new(&opts, d), 0);
	return client_socket(own);
}

static void descriptors_are_not_taken(void)
{
	struct kprof_dynolog *d;
	struct kprof_dynolog_counts counts = {0};
	int fd = begin(&d), before, pids[] = {getpid()};
	struct lingering l = lingering_new();
	char data[128];
	size_t bytes = make_poll(data, 2, 0, pids, 1);
	struct sockaddr_un to;
	socklen_t to_bytes = abstract_address(name, &to);

	CHECK_EQ(lingering_send(&l, fd, data, bytes, 0, (struct sockaddr *)&to, to_bytes),
		 (ssize_t)bytes);
	CHECK_EQ(lingering_send(&l, fd, "", 0, 0, (struct sockaddr *)&to, to_bytes), 0);
	lingering_leave(&l);
	before = next_descriptor();
	CHECK_EQ(send_to(fd, name, data, bytes), 0);
	d->refill_ns = UINT64_MAX;
	d->ipc_left = 100;
	while (!counts.answered) {
		serve_all(d);
		kprof_dynolog_counts(d, &counts);
	}
	lingering_gone(&l);
	CHECK_EQ(counts.answered, 1);
	CHECK_EQ(counts.malformed, 2);
	CHECK_EQ(next_descriptor(), before);
	/* they cost more than others, but nobody owes anything */
	CHECK_EQ(d->ipc_left, 100 - 2 * 16 - 1);
	d->ipc_left = 2;
	l = lingering_new();
	CHECK_EQ(lingering_send(&l, fd, "", 0, 0, (struct sockaddr *)&to, to_bytes), 0);
	lingering_leave(&l);
	serve_all(d);
	lingering_gone(&l);
	CHECK_EQ(d->ipc_left, 0);
	close(fd);
	kprof_dynolog_free(d);
}

/* Of those that nobody has looked at, when the server ends. */
static void nor_waited_for(void)
{
	struct kprof_dynolog *d;
	int fd = begin(&d);
	struct lingering l = lingering_new();
	struct sockaddr_un to;
	socklen_t to_bytes = abstract_address(name, &to);

	CHECK_EQ(send_to(fd, name, "", 0), 0);
	CHECK_EQ(lingering_send(&l, fd, "x", 1, 0, (struct sockaddr *)&to, to_bytes), 1);
	lingering_leave(&l);
	kprof_dynolog_free(d);
	lingering_gone(&l);
	close(fd);
}

static void refused(void)
{
	struct kprof_dynolog *d;
	struct sockaddr_un to;
	socklen_t to_bytes;
	int fd;

	if (!lingering_refused())
		return;
	fd = begin(&d);
	to_bytes = abstract_address(name, &to);
	lingering_check_refused(fd, (struct sockaddr *)&to, to_bytes);
	close(fd);
	kprof_dynolog_free(d);
}

UNIT_MAIN(TEST(descriptors_are_not_taken), TEST(nor_waited_for), TEST(refused))
