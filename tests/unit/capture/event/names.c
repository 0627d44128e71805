// SPDX-License-Identifier: BSD-2-Clause
/* user/capture/event/names.c: names of classes, read from a process: this one. */
#include "capture/event/names.h"
#include "capture/target/target.h"

#include <string.h>
#include <unistd.h>

#include "unit.h"

/* What a library may have there: a vtable, its class's typeinfo, and the name of that. */
static struct {
	const void *typeinfo;
	const void *functions[2];
	const void *type_functions;
	const char *name;
} library;
static char name[16];

/* A library is unloaded, and another one is loaded at its place. */
static void unloaded(void)
{
	uint64_t vtable = (uint64_t)(uintptr_t)library.functions;
	struct targets *targets;
	struct namer *namer;
	struct target *t;

	library.typeinfo = &library.type_functions;
	library.name = name;
	strcpy(name, "N1a5FirstE");
	CHECK_EQ(targets__new(&targets), 0);
	CHECK_EQ(namer__new(NULL, targets, NULL, &namer), 0);
	t = targets__add(targets, (uint32_t)getpid());
	CHECK_STR(namer__class(namer, t, vtable), "a::First");
	strcpy(name, "*N1b6SecondE");
	CHECK_STR(namer__class(namer, t, vtable), "a::First"); /* it is not read again */
	target__maps_changed(t, 1, true);
	CHECK_STR(namer__class(namer, t, vtable), "b::Second");
	library.typeinfo = NULL;
	CHECK_STR(namer__class(namer, t, vtable), "b::Second");
	target__maps_changed(t, 2, true);
	CHECK(!namer__class(namer, t, vtable));
	namer__free(namer);
	targets__free(targets);
}

UNIT_MAIN(TEST(unloaded))
