// SPDX-License-Identifier: BSD-2-Clause
/* kprof_only_serve() */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "kprof.h"
#include "util/error.h"
#include "util/foreign.h"
#include "util/sandbox.h"

#define NOBODY 65534

int kprof_only_serve(void)
{
	const struct rlimit none = {0, 0};
	int err;

	error_clear();
	foreign_finish();
	/* While there is the right to. */
	for (int cap = 0; cap < 64 && prctl(PR_CAPBSET_READ, cap, 0, 0, 0) >= 0; cap++)
		prctl(PR_CAPBSET_DROP, cap, 0, 0, 0);
	if (!sandbox_become(NOBODY, NOBODY))
		return error_set(-errno, NULL, "cannot give up root: %s", strerror(errno));
	prctl(PR_SET_PDEATHSIG, SIGKILL); /* after setresuid(), which clears it */
	setrlimit(RLIMIT_CORE, &none);
	setrlimit(RLIMIT_FSIZE, &none);
	err = sandbox_keep(0);
	if (!err)
		err = sandbox_only_serves();
	if (err)
		return error_set(err, NULL, "cannot give up all rights: %s", strerror(-err));
	return 0;
}
