// SPDX-License-Identifier: BSD-2-Clause
/*
 * Probes that were given up, placed for a short time beside those that stay: a sample of the calls
 * that are no longer recorded.
 */
#include <errno.h>

#include "capture/probe/set_impl.h"
#include "util/error.h"
#include "util/util.h"

/* Returns how many probes were placed: none where the process is gone; or a negative errno. */
static int place_in(struct probe_set *ps, const struct target *t, struct file *f, uint64_t now_ns)
{
	char path[512];
	size_t before = ps->burst.nr;
	int nr = 0, err = 0;

	if (f->burst_ns == now_ns || target_file__path(t, f, path, sizeof(path)))
		return 0;
	for (int i = 0; i < NR_FILE_PROGRAMS && !err; i++) {
		const struct point_list *list = &f->given_up[i];

		err = attacher__attach(ps->opts.attacher, (enum attach_program)i,
				       sharing__pid(f, t), path, list->points, list->nr,
				       &ps->burst);
		nr += (int)list->nr;
	}
	if (err)
		attach_links_cut(&ps->burst, before);
	if (err == -ESRCH || err == -ENOENT) /* a SHARED file is tried in the next process */
		return 0;
	if (!err && f->sharing == FILE_SHARED)
		f->burst_ns = now_ns;
	return err ? err : nr;
}

bool probe_set__burst(struct probe_set *ps)
{
	uint64_t now_ns = clock_mono_ns();
	struct target *t, *next;
	int nr = 0, n = 0;

	TARGETS_EACH (ps->opts.targets, t, next) {
		const struct target_probes *tp = probe_set__known(ps, t);

		for (size_t i = 0; tp && i < tp->nr && n >= 0; i++) {
			n = place_in(ps, t, tp->files[i].file, now_ns);
			nr += n > 0 ? n : 0;
		}
	}
	if (n >= 0 && nr)
		return true;
	log_debug("no burst: %s", n < 0 ? attacher__why(n) : "no process can be reached");
	return false;
}

void probe_set__burst_end(struct probe_set *ps)
{
	attach_links_close(&ps->burst);
}
