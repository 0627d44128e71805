// SPDX-License-Identifier: BSD-2-Clause
/* Probes that a file has besides those of frameworks: each kind is found elsewhere, placed here. */
#include <errno.h>
#include <stdlib.h>

#include "capture/probe/set_impl.h"
#include "util/error.h"
#include "util/util.h"

int extras__attach(struct probe_set *ps, struct target *t, struct target_file *tf, const char *path,
		   enum extra_kind kind, enum attach_program program, const char *what)
{
	const struct record_window *window = recorder__window(ps->opts.recorder);
	struct extra *extra = &tf->file->extras[kind];
	struct attach_links *links;
	char *reason;
	int err;

	if (tf->extras >> kind & 1 || window->closed || !extra->points.nr)
		return 0;
	tf->extras |= 1u << kind;
	links = sharing__links(ps, t, tf->file);
	if (tf->file->sharing == FILE_SHARED && extra->attached)
		return 0;
	err = attacher__attach(ps->opts.attacher, program, sharing__pid(tf->file, t), path,
			       extra->points.points, extra->points.nr, links);
	if (err == -ESRCH || err == -ENOENT) { /* the process or the mapping is gone */
		tf->extras &= ~(1u << kind);
		return 0;
	}
	if (err) {
		log_warn("`kprof check` says what this machine allows",
			 "cannot watch %s in %s of process %u: %s", what, tf->file->name, t->pid,
			 attacher__why(err));
		reason = xasprintf("%s could not be watched", what);
		err = reason ? recorder__gap(ps->opts.recorder, t->pid, tf->file->name, reason,
					     window->start_ns, clock_mono_ns())
			     : -ENOMEM;
		free(reason);
		return err;
	}
	extra->attached = true;
	return 0;
}
