// SPDX-License-Identifier: BSD-2-Clause
/*
 * Makes a capture look as if another machine had recorded it:
 *
 *   shift_capture IN OUT HOST OFFSET_NS DRIFT_PPM UNIX_NS
 *
 * Its monotonic clock is ahead of the true one by OFFSET_NS when the recording begins, and by
 * DRIFT_PPM microseconds more each second; its Unix time is wrong by UNIX_NS.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kprof.h"
#include "sink/kprof/copy.h"

static struct {
	const char *host;
	long double offset_ns, drift;
	long long unix_ns;
	uint64_t start_ns;
	struct store_writer *out;
} shift;

static uint64_t time_of(void *ctx, uint64_t ns)
{
	long double since = (long double)(int64_t)(ns - shift.start_ns);

	return (uint64_t)((long double)shift.start_ns + shift.offset_ns +
			  since * (1 + shift.drift));
}

static int on_record(void *ctx, const struct store_record *r)
{
	struct store_record other = *r;
	char json[128];

	if (r->type == STORE_CLOCK) {
		other.clock.mono_ns = time_of(NULL, r->clock.mono_ns);
		other.clock.real_ns = (uint64_t)((long long)r->clock.real_ns + shift.unix_ns);
		return store_writer__put(shift.out, &other);
	}
	if (r->type != STORE_META || (strcmp(r->meta.key, "host") && strcmp(r->meta.key, "boot")))
		return 1;
	snprintf(json, sizeof(json), "\"%s%s\"", r->meta.key[0] == 'b' ? "boot of " : "",
		 shift.host);
	other.meta.json = json;
	return store_writer__put(shift.out, &other);
}

int main(int argc, char **argv)
{
	static const struct kprof_copy_ops ops = {.record = on_record, .time = time_of};
	struct kprof_copy_numbers numbers = KPROF_COPY_NUMBERS;
	struct kprof_capture *t;
	struct kprof_copy *copy;
	uint64_t ns;
	int err;

	if (argc != 7 || kprof_capture_open(argv[1], &t))
		return 2;
	shift.start_ns = kprof_capture_info(t)->start_mono_ns;
	kprof_capture_close(t);
	shift.host = argv[3];
	shift.offset_ns = strtold(argv[4], NULL);
	shift.drift = strtold(argv[5], NULL) / 1e6L;
	shift.unix_ns = atoll(argv[6]);
	err = store_writer__open(argv[2], &(struct outfile_opts){0}, &shift.out);
	if (!err)
		err = kprof_copy__new(argv[1], shift.out, &numbers, &ops, NULL, &copy);
	if (err)
		return 1;
	while ((err = kprof_copy__next(copy, &ns)) > 0)
		if (kprof_copy__event(copy))
			return 1;
	return err || store_writer__finish(shift.out, time_of(NULL, kprof_copy__end_ns(copy)));
}
