// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <stdbool.h>
#include <unistd.h>

#include "kprof.h"
#include "symbol/names/names.h"
#include "unit.h"

static struct kallsyms *load(const char *text, int want)
{
	char path[] = "/tmp/kprof-kallsyms-XXXXXX";
	int fd = mkstemp(path);
	struct kallsyms *k = NULL;

	CHECK(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	close(fd);
	CHECK_EQ(kallsyms__load(path, &k), want);
	CHECK(!k == (want != 0));
	unlink(path);
	return k;
}

static void check(const struct kallsyms *k, uint64_t address, const char *want)
{
	struct kallsyms_symbol s;
	char text[128] = "";

	if (!kallsyms__find(k, address, &s)) {
		snprintf(text, sizeof(text), "%s+%lu %s", s.name,
			 (unsigned long)(address - s.address), s.module);
	}
	CHECK_STR(text, want);
}

static void names(void)
{
	struct kallsyms *k = load("0000000000000000 A fixed_percpu_data\n"
				  "0000000000001000 A cpu_debug_store\n"
				  "ffffffff81000000 T _text\n"
				  "ffffffff81000000 T startup_64\n"
				  "ffffffff81000100 t early\n"
				  "ffffffff81000300 W weak\n"
				  "ffffffff81000300 T __weak_alias\n"
				  "ffffffff81000400 D not_code\n"
				  "ffffffff81000500 T last_of_text\n"
				  "ffffffff81000600 T _etext\n"
				  "ffffffffc0001000 t in_module\t[nf_tables]\n"
				  "ffffffffc0000000 t bpf_prog_6deef7357e7b4530_x\t[bpf]\n"
				  "ffffffffc0002000 d data_of_module\t[nf_tables]\n"
				  "not a line\n"
				  "ffffffffc000300\n"
				  "ffffffffc0004000 t behind_all\t[x]\n",
				  0);

	check(k, 0xffffffff81000000, "startup_64+0 ");
	check(k, 0xffffffff81000050, "startup_64+80 ");
	check(k, 0xffffffff810001ff, "early+255 ");
	check(k, 0xffffffff81000301, "weak+1 ");
	check(k, 0xffffffff81000400, "");
	check(k, 0xffffffff810005ff, "last_of_text+255 ");
	check(k, 0xffffffff81000600, "");
	check(k, 0xffffffffbfffffff, "");
	check(k, 0xffffffffc0000010, "bpf_prog_6deef7357e7b4530_x+16 bpf");
	check(k, 0xffffffffc0001001, "in_module+1 nf_tables");
	check(k, 0xffffffffc0002000, "");
	check(k, 0xffffffffc0004000, ""); /* where it ends nobody says */
	check(k, UINT64_MAX, "");
	check(k, 0, "");
	check(k, 0x800, "");
	kallsyms__free(k);
}

static void hidden(void)
{
	load("0000000000000000 T _text\n0000000000000000 t early\n", -EACCES);
	CHECK(strstr(kprof_error_cause(), "hides"));
	CHECK(strstr(kprof_error_hint(), "kptr_restrict"));
	load("", -EACCES);
	CHECK_EQ(kallsyms__load("/nonexistent", &(struct kallsyms *){NULL}), -ENOENT);
}

/* Of this kernel, line by line. */
/* Of a local function. */
static bool address_of(const char *line, unsigned long *address)
{
	char name[512], type;

	return sscanf(line, "%lx %c %511s", address, &type, name) == 3 && type == 't' && *address;
}

static void running_kernel(void)
{
	struct kallsyms *k;
	char line[1024];
	unsigned long address, nr = 0;
	FILE *f;

	if (kallsyms__load(NULL, &k)) {
		CHECK(geteuid() != 0);
		printf("# skipped: %s\n", kprof_error_cause());
		return;
	}
	f = fopen("/proc/kallsyms", "r");
	while (f && fgets(line, sizeof(line), f)) {
		struct kallsyms_symbol s;

		/* Modules, and BPF programs among them, come and go between the two readings. */
		if (strchr(line, '[') || !address_of(line, &address))
			continue;
		/* The last of all has no end, aliases have one address. */
		if (!kallsyms__find(k, address, &s)) {
			CHECK_EQ(s.address, address);
			nr++;
		}
	}
	if (f)
		fclose(f);
	CHECK(nr > 1000);
	kallsyms__free(k);
}

UNIT_MAIN(TEST(names), TEST(hidden), TEST(running_kernel))
