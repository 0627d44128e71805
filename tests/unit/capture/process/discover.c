// SPDX-License-Identifier: BSD-2-Clause
/* Maps files that are called like a framework's libraries, and looks at what is found. */
#include "capture/process/process.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kprof.h"
#include "unit.h"

static char dir[] = "/tmp/kprof-discover-XXXXXX";

static void put(const char *name, const char *text)
{
	char path[256];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	for (char *slash = path + strlen(dir) + 1; (slash = strchr(slash, '/')); slash++) {
		*slash = '\0';
		mkdir(path, 0700);
		*slash = '/';
	}
	f = fopen(path, "w");
	CHECK(f && fputs(text, f) >= 0 && !fclose(f));
}

static void *map_file(const char *name)
{
	char path[256];
	void *at;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_RDONLY);
	at = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	CHECK(fd >= 0 && at != MAP_FAILED);
	close(fd);
	return at;
}

static struct kprof_process_info seen; /* of this process; the strings are copies */
static char frameworks[256], runtimes[256], cmdline[256];

static int keep_own(void *ctx, const struct kprof_process_info *info)
{
	if (info->pid != getpid())
		return 0;
	seen = *info;
	snprintf(frameworks, sizeof(frameworks), "%s", info->frameworks);
	snprintf(runtimes, sizeof(runtimes), "%s", info->runtimes);
	snprintf(cmdline, sizeof(cmdline), "%s", info->cmdline);
	return 5;
}

/* What the list says about this process while one file (or two) are mapped. */
static void look(const char *library, const char *other)
{
	void *one = map_file(library), *two = other ? map_file(other) : NULL;

	frameworks[0] = runtimes[0] = '\0';
	CHECK_EQ(kprof_list_processes(false, keep_own, NULL), 5);
	munmap(one, 4096);
	if (two)
		munmap(two, 4096);
}

static void not_listed_without_a_framework(void)
{
	seen.pid = 0;
	CHECK_EQ(kprof_list_processes(false, keep_own, NULL), 0);
	CHECK_EQ(seen.pid, 0);
	CHECK_EQ(kprof_list_processes(true, keep_own, NULL), 5);
	CHECK_EQ(seen.pid, getpid());
	CHECK_EQ(seen.ppid, getppid());
	CHECK_EQ(seen.uid, geteuid());
	CHECK(strstr(cmdline, program_invocation_short_name));
}

static void version_file_in_the_package(void)
{
	put("wheel/torch/lib/libtorch_cpu.so", "x");
	put("wheel/torch/version.py", "from typing import Optional\n"
				      "__version__old = '1'\n__version__ = '2.15.0+cu132'\n");
	look("wheel/torch/lib/libtorch_cpu.so", NULL);
	CHECK_STR(frameworks, "pytorch 2.15.0+cu132");
	put("wheel/torch/version.py", "__version__: str = \"2.3.1\"\n");
	look("wheel/torch/lib/libtorch_cpu.so", NULL);
	CHECK_STR(frameworks, "pytorch 2.3.1");
}

static void library_apart_from_the_package(void)
{
	put("deb/lib/libtorch_cpu.so.1.13", "x");
	put("deb/python3/torch/_C.cpython-311-x86_64-linux-gnu.so", "x");
	put("deb/python3/torch/version.py", "__version__ = '1.13.1'\n");
	look("deb/lib/libtorch_cpu.so.1.13",
	     "deb/python3/torch/_C.cpython-311-x86_64-linux-gnu.so");
	CHECK_STR(frameworks, "pytorch 1.13.1");
	look("deb/lib/libtorch_cpu.so.1.13", NULL); /* a C++ program: only the file's name */
	CHECK_STR(frameworks, "pytorch 1.13");
}

/* Whose process it is may put there what he likes: nothing hangs, nothing odd is printed. */
static void hostile_version_files(void)
{
	char path[256];

	put("bad/torch/lib/libtorch_cpu.so", "x");
	snprintf(path, sizeof(path), "%s/bad/torch/version.py", dir);
	CHECK_EQ(mkfifo(path, 0600), 0);
	look("bad/torch/lib/libtorch_cpu.so", NULL);
	CHECK_STR(frameworks, "pytorch");
	unlink(path);
	put("bad/torch/version.py", "__version__ = '1.0\033[2J evil'\n");
	look("bad/torch/lib/libtorch_cpu.so", NULL);
	CHECK_STR(frameworks, "pytorch 1.0");
	put("bad/torch/version.py", "__version__");
	look("bad/torch/lib/libtorch_cpu.so", NULL);
	CHECK_STR(frameworks, "pytorch");
	unlink(path);
	CHECK_EQ(symlink("/proc/self/root/etc/hostname", path), 0);
	look("bad/torch/lib/libtorch_cpu.so", NULL);
	CHECK_STR(frameworks, "pytorch");
}

static void runtimes_have_versions(void)
{
	put("rt/libcudart.so.13.0.96", "x");
	put("rt/libOpenCL.so.1.0.0", "x");
	look("rt/libcudart.so.13.0.96", "rt/libOpenCL.so.1.0.0");
	CHECK_STR(runtimes, "cuda 13.0.96, opencl 1.0.0");
	put("rt/libcudart-d0da41ae.so.11.0", "x"); /* as bundled by a wheel's repair tool */
	look("rt/libcudart-d0da41ae.so.11.0", NULL);
	CHECK_STR(runtimes, "cuda 11.0");
}

static void pythons_are_known_by_name(void)
{
	static const struct {
		const char *file, *version;
	} cases[] = {{"libpython3.11.so.1.0", "3.11"},
		     {"libpython3.13t.so.1.0", "3.13t"},
		     {"libpython3.6m.so.1.0", "3.6m"},
		     {"libpython3.so", ""},
		     {"libpython3.12", ""}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char line[256], version[DISCOVER_VERSION_BYTES] = "?";
		struct proc_maps *maps = NULL;

		snprintf(line, sizeof(line), "1000-2000 r-xp 0 fe:01 12 /usr/lib/%s\n",
			 cases[i].file);
		CHECK_EQ(proc_maps__parse(line, &maps), 0);
		discover_python(getpid(), maps, version);
		CHECK_STR(version, cases[i].version);
		proc_maps__free(maps);
	}
}

static void clean_up(void)
{
	char command[64];

	snprintf(command, sizeof(command), "rm -rf %s", dir);
	CHECK_EQ(system(command), 0);
}

static void make_directory(void)
{
	CHECK(mkdtemp(dir));
}

UNIT_MAIN(TEST(make_directory), TEST(not_listed_without_a_framework),
	  TEST(version_file_in_the_package), TEST(library_apart_from_the_package),
	  TEST(hostile_version_files), TEST(runtimes_have_versions),
	  TEST(pythons_are_known_by_name), TEST(clean_up))
