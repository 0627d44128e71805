/* SPDX-License-Identifier: BSD-2-Clause */
/* Records a process for two seconds, prints its ten dearest operators, writes a Chrome trace. */
#include <err.h>
#include <inttypes.h>
#include <kprof.h>
#include <stdio.h>
#include <stdlib.h>

static void must(int result)
{
	if (result < 0)
		errx(1, "%s\nhint: %s", kprof_error_cause(), kprof_error_hint() ?: "none");
}

int main(int argc, char **argv)
{
	if (argc != 4)
		errx(2, "arguments: PID CAPTURE.kprof TRACE.json[.gz]");
	struct kprof_session_opts opts = {.sz = sizeof(opts), .capture_path = argv[2]};
	struct kprof_export_opts export = {.sz = sizeof(export), .path = argv[3]};
	struct kprof_session *session;
	struct kprof_capture *capture;
	struct kprof_result *table;

	must(kprof_session_new(&opts, &session));
	must(kprof_session_add_pid(session, atoi(argv[1])));
	must(kprof_session_start(session));
	must(kprof_session_poll(session, 2000));
	must(kprof_session_stop(session));
	kprof_session_free(session);
	must(kprof_capture_open(opts.capture_path, &capture));
	must(kprof_result_new(capture, KPROF_BY_OP, KPROF_SORT_SELF, &table));
	for (size_t i = 0; i < 10 && i < kprof_result_nr_rows(table); i++) {
		const struct kprof_row *r = kprof_result_row(table, i);
		printf("%-40s %10" PRIu64 " %12.3f ms\n", r->name, r->calls, r->self_ns / 1e6);
	}
	kprof_result_free(table);
	must(kprof_capture_export(capture, &export));
	kprof_capture_close(capture);
}
