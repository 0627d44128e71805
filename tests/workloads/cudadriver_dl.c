/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cudadriver-dl LIBRARY MODE …: cudadriver as a library, opened when told to go: until then there
 * is nothing of CUDA in the process. As a Python program that imports its framework late.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	char *args[64];
	int (*run)(int, char **) = NULL;
	void *lib;
	char c = 0;

	if (argc < 3 || argc > 60)
		return 2;
	printf("READY %d\n", getpid());
	fflush(stdout);
	while (c != '\n')
		if (read(STDIN_FILENO, &c, 1) != 1)
			return 9;
	lib = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
	if (lib)
		*(void **)&run = dlsym(lib, "cudadriver_main");
	if (!run) {
		fprintf(stderr, "cudadriver-dl: %s\n", dlerror());
		return 1;
	}
	memcpy(args, argv + 1, (size_t)(argc - 1) * sizeof(args[0]));
	args[argc - 1] = "--now";
	args[argc] = NULL;
	return run(argc, args);
}
