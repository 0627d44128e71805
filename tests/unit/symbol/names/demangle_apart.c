// SPDX-License-Identifier: BSD-2-Clause
/*
 * Demangling in a child: the same texts as in this process. Who the child is and what it may do
 * says /proc.
 */
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <unistd.h>

#include "symbol/names/demangle.h"
#include "symbol/names/names.h"
#include "unit.h"
#include "util/util.h"

/* The child of this process; 0: none. */
static pid_t child(void)
{
	char path[64], *text = NULL;
	pid_t pid = 0;

	snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
	if (!read_file(path, 4096, &text, NULL))
		pid = (pid_t)strtol(text, NULL, 10);
	free(text);
	return pid;
}

/* The value of a line of a process's status. */
static bool has(pid_t pid, const char *key, const char *value)
{
	char path[64], *text = NULL, *at;
	bool same = false;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	if (!read_file(path, 65536, &text, NULL)) {
		at = strstr(text, key);
		same = at && !strncmp(at + strlen(key), value, strlen(value));
	}
	if (!same)
		printf("# %s is not %s\n", key, value);
	free(text);
	return same;
}

static void same(const char *name)
{
	char *there = demangle(name), *here = demangle_here(name, false, false);

	CHECK_STR(there, here ? here : name);
	free(there);
	free(here);
}

static char *long_name(size_t depth)
{
	char *name = malloc(2 * depth + 64), *at = name;

	at += sprintf(at, "_Z1f");
	for (size_t i = 0; i < depth; i++)
		*at++ = 'P';
	sprintf(at, "i");
	return name;
}

static void the_same_texts(void)
{
	char *deep = long_name(30000), *endless = long_name(100000), *type;

	if (geteuid() != 0) {
		printf("# skipped: only root demangles in a child\n");
		return;
	}
	demangle_apart();
	same("_ZN2at4_ops10add_Tensor4callERKNS_6TensorES4_RKN3c106ScalarE");
	same("_RNvCs1234_7mycrate3foo");
	same("main");
	same("_Z");
	same("");
	same(deep);
	same(endless);
	type = demangle_type("N5torch8autograd4NodeE");
	CHECK_STR(type, "torch::autograd::Node");
	free(type);
	free(deep);
	free(endless);
}

static void the_child_is_nobody(void)
{
	pid_t pid;

	if (geteuid() != 0)
		return;
	same("_Z1fv");
	pid = child();
	CHECK(pid);
	CHECK(has(pid, "\nUid:\t", "65534\t65534\t65534\t65534\n"));
	CHECK(has(pid, "\nGroups:\t", " \n") || has(pid, "\nGroups:\t", "\n"));
	CHECK(has(pid, "\nCapPrm:\t", "0000000000000000\n"));
	CHECK(has(pid, "\nNoNewPrivs:\t", "1\n"));
	CHECK(has(pid, "\nSeccomp:\t", "2\n"));
}

static void a_child_that_dies_costs_a_name(void)
{
	if (geteuid() != 0)
		return;
	for (int i = 0; i < 3; i++) {
		char *name;

		same("_Z1gv");
		kill(child(), SIGKILL);
		name = demangle("_Z1gv");
		CHECK(!strcmp(name, "_Z1gv") || !strcmp(name, "g()"));
		free(name);
		same("_Z1gv");
	}
}

UNIT_MAIN(TEST(the_same_texts), TEST(the_child_is_nobody), TEST(a_child_that_dies_costs_a_name))
