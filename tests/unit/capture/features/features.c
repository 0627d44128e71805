// SPDX-License-Identifier: BSD-2-Clause
#include "capture/features/features.h"

#include <errno.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <linux/capability.h>

#include "kprof.h"
#include "unit.h"

/* The quick answers must be those that trying gives. */
static void quick_answers_are_true(void)
{
	const struct features *f = features_get();

	CHECK(f == features_get());
	if (f->err_prog) {
		printf("# no rights to load programs: only the refusals are tested\n");
		CHECK(features_try_uprobe_multi() < 0 && features_try_single_uprobe() < 0);
		return;
	}
	CHECK_EQ(features_try_uprobe_multi() == 0, f->uprobe_multi);
	CHECK_EQ(features_try_single_uprobe() == 0, f->single_uprobe);
	CHECK_EQ(f->err_ring, 0);
}

struct lines {
	int nr, fatal, with_hint;
	int stop_at;
};

static int count_line(void *ctx, const struct kprof_check_line *line)
{
	struct lines *l = ctx;

	CHECK(line->name[0] && line->detail[0]);
	l->nr++;
	l->fatal += line->state == KPROF_CHECK_FATAL;
	l->with_hint += line->state == KPROF_CHECK_FATAL && line->hint;
	return l->nr == l->stop_at ? 7 : 0;
}

static void every_fatal_line_has_a_hint(void)
{
	struct lines l = {0};
	int err = kprof_check_machine(count_line, &l);

	CHECK(l.nr >= 10);
	CHECK_EQ(l.fatal != 0, err != 0);
	CHECK_EQ(l.with_hint, l.fatal);
	CHECK_EQ(kprof_error_class(), err ? KPROF_ERROR_MACHINE : KPROF_ERROR_NONE);
	l = (struct lines){.stop_at = 3};
	CHECK_EQ(kprof_check_machine(count_line, &l), 7);
	CHECK_EQ(l.nr, 3);
}

static void drop_caps(void)
{
	struct __user_cap_header_struct hdr = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {0};

	syscall(SYS_capset, &hdr, none);
}

static int without_rights(void)
{
	drop_caps();
	if (features_require(true) != -EPERM || kprof_error_class() != KPROF_ERROR_MACHINE)
		return 1;
	if (!strstr(kprof_error_cause(), "CAP_BPF, CAP_PERFMON and CAP_SYS_PTRACE"))
		return 2;
	return kprof_error_hint() ? 0 : 3;
}

/* In a child, because rights that were given up don't come back; first, for the same reason. */
static void missing_rights_are_named(void)
{
	int status = -1;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid)
		_exit(without_rights());
	waitpid(pid, &status, 0);
	CHECK_EQ(WIFEXITED(status) ? WEXITSTATUS(status) : -1, 0);
}

UNIT_MAIN(TEST(missing_rights_are_named), TEST(quick_answers_are_true),
	  TEST(every_fatal_line_has_a_hint))
