// SPDX-License-Identifier: BSD-2-Clause
/* Stacks while exceptions are thrown, on their way, and caught: shadow.h. */
#include <stdexcept>
#include <string>

#include "shadow.h"

namespace
{

struct Guard {
	const char *phase;
	unsigned int nr; /* of the list, in the frame that this lies in */
	explicit Guard(const char *p) : phase(p), nr(shadow_nr)
	{
	}
	NOINLINE ~Guard()
	{
		shadow_nr = nr; /* the frames below are gone */
		ENTER();
		if (phase)
			phase_run(phase, phase_count);
		LEAVE();
	}
};

template <int n> NOINLINE void down(const char *phase, bool guarded)
{
	std::string something(n, 'x');

	ENTER();
	if (guarded) {
		Guard guard(n == 3 ? phase : nullptr);
		down<n - 1>(phase, guarded);
		shadow_sum += something.size();
	} else {
		down<n - 1>(phase, guarded);
	}
	LEAVE();
	shadow_sum += something.size();
}

template <> NOINLINE void down<0>(const char *phase, bool guarded)
{
	throw std::runtime_error("on its way");
}

NOINLINE void catch_once()
{
	unsigned int before = shadow_nr;

	try {
		down<20>(nullptr, false);
	} catch (const std::exception &e) {
		shadow_sum += (uint64_t)e.what()[0];
	}
	shadow_nr = before;
}

NOINLINE void in_handler()
{
	unsigned int before;

	ENTER();
	before = shadow_nr;
	try {
		down<20>(nullptr, false);
	} catch (const std::exception &e) {
		shadow_nr = before;
		phase_run("handler", phase_count);
	}
	LEAVE();
}

NOINLINE void in_destructor()
{
	unsigned int before;

	ENTER();
	before = shadow_nr;
	try {
		down<20>("destructor", true);
	} catch (const std::exception &e) {
		shadow_nr = before;
	}
	LEAVE();
}

NOINLINE void throwing()
{
	ENTER();
	phase_run("throwing", catch_once);
	LEAVE();
}

} // namespace

int main(int argc, char **argv)
{
	ENTER();
	shadow_ready(argc, argv);
	throwing();
	in_handler();
	in_destructor();
	shadow_linger();
	LEAVE();
	return 0;
}
