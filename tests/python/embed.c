// SPDX-License-Identifier: BSD-2-Clause
/*
 * embed LIBPYTHON ARGUMENT…: an application that opens Python's library late, and runs it on a
 * thread of its own.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>

static int nr_arguments;
static char **arguments;

static void *run(void *ctx)
{
	int (*python_main)(int, char **) = (int (*)(int, char **))ctx;
	static int status;

	status = python_main(nr_arguments, arguments);
	return &status;
}

int main(int argc, char **argv)
{
	void *library = argc > 2 ? dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL) : NULL;
	void *python_main = library ? dlsym(library, "Py_BytesMain") : NULL, *status;
	pthread_t thread;

	if (!python_main) {
		fprintf(stderr, "embed: %s\n", dlerror());
		return 2;
	}
	nr_arguments = argc - 1;
	arguments = argv + 1;
	if (pthread_create(&thread, NULL, run, python_main) || pthread_join(thread, &status))
		return 2;
	return *(int *)status;
}
