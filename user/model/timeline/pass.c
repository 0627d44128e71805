// SPDX-License-Identifier: BSD-2-Clause
/* What all passes over a capture's file begin with. */
#include "model/timeline/impl.h"

#include <errno.h>

#include "util/error.h"

int tl_pass__start(struct kprof_capture *t, enum store_read_mode mode)
{
	if (t->walking)
		return error_set(-EBUSY, "open the capture a second time",
				 "%s: its spans are being read already", t->path);
	t->walking = true;
	store_reader__rewind(t->reader, mode);
	return 0;
}

int tl_changed(const struct kprof_capture *t)
{
	return error_set(-EIO, "read it again once nothing writes to it",
			 "%s: it changed while it was being read", t->path);
}
