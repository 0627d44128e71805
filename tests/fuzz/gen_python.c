// SPDX-License-Identifier: BSD-2-Clause
/*
 * Seeds for fuzz_python: what kprof reads of running interpreters' memory to walk a stack and to
 * name threads. The environment variable PYTHONS names the interpreters, separated by blanks.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bpf/python.h"
#include "capture/process/process.h"
#include "python_image.h"
#include "symbol/python/priv.h"

#define MOST_BYTES (1u << 20)

static const char script[] =
	"import threading, os\n"
	"def inner(): os.write(1, b'+'); os.read(0, 1)\n"
	"class Worker:\n"
	"\tdef run(self): [inner() for _ in range(1)]\n"
	"t = threading.Thread(target=Worker().run, name='w\\u00f6rker \\u20ac'); t.start(); t.join()\n";

/* ---- what is read ---- */

static pid_t pid;
static struct piece {
	uint64_t address, bytes;
} pieces[65536];
static size_t nr_pieces;

static int read_memory(void *ctx, void *to, size_t bytes, uint64_t address)
{
	if (process_read(pid, address, to, bytes))
		return -1;
	if (nr_pieces < sizeof(pieces) / sizeof(pieces[0]))
		pieces[nr_pieces++] = (struct piece){address, bytes};
	return 0;
}

static int python_read(void *to, kprof_u32 bytes, kprof_u64 address)
{
	return read_memory(NULL, to, bytes, address);
}

static const struct python_memory reader = {.read = read_memory};

static int by_address(const void *a, const void *b)
{
	const struct piece *x = a, *y = b;

	return (x->address > y->address) - (x->address < y->address);
}

/* Makes one piece of those that touch. */
static void join_pieces(void)
{
	size_t nr = 0;

	qsort(pieces, nr_pieces, sizeof(pieces[0]), by_address);
	for (size_t i = 0; i < nr_pieces; i++) {
		struct piece *last = nr ? &pieces[nr - 1] : NULL;
		uint64_t end = pieces[i].address + pieces[i].bytes;

		if (!last || pieces[i].address > last->address + last->bytes)
			pieces[nr++] = pieces[i];
		else if (end > last->address + last->bytes)
			last->bytes = end - last->address;
	}
	nr_pieces = nr;
}

static void write_image(const char *dir, const struct python_image *head)
{
	static uint8_t buffer[MOST_BYTES];
	char path[512];
	FILE *f;

	join_pieces();
	snprintf(path, sizeof(path), "%s/%s-3.%u", dir, head->what == 'w' ? "stack" : "names",
		 python_minor(head->version));
	f = fopen(path, "w");
	if (!f)
		abort();
	fwrite(head, sizeof(*head), 1, f);
	for (size_t i = 0; i < nr_pieces; i++) {
		uint16_t bytes = (uint16_t)pieces[i].bytes;

		if (pieces[i].bytes > UINT16_MAX ||
		    process_read(pid, pieces[i].address, buffer, bytes))
			continue;
		fwrite(&pieces[i].address, 8, 1, f);
		fwrite(&bytes, 2, 1, f);
		fwrite(buffer, bytes, 1, f);
	}
	fclose(f);
	nr_pieces = 0;
}

/* ---- what is done ---- */

static void walk(const struct kprof_python *p, uint64_t thread)
{
	struct kprof_python_walk w = {.thread = thread};
	struct python_code *c;

	python_begin(&w);
	for (int i = 0; i < KPROF_PYTHON_MAX_STEPS && !python_step(p, &w); i++)
		;
	for (uint32_t i = 0; i < w.nr; i++)
		if (!python_code__read(p, &reader, w.frames[i].code, &c)) {
			printf("  %s:%u %s\n", c->file, python_code__line(c, w.frames[i].instr),
			       c->function);
			python_code__free(c);
		}
}

static void read_interpreter(const char *dir, struct python_elf *elf, uint64_t bias)
{
	struct python_thread_name *names = calloc(16, sizeof(*names));
	struct python_image head = {.what = 'w', .version = elf->version};
	struct python_thread threads[16];
	struct kprof_python p;
	size_t nr;

	if (!names || python_locate(elf, bias, &reader, &p))
		abort();
	head.runtime = p.runtime;
	head.code_type = p.code_type;
	nr = python_threads(&p, &reader, threads, 16);
	if (!nr)
		abort();
	head.thread = threads[0].thread; /* the newest */
	walk(&p, head.thread);
	write_image(dir, &head);
	python_locate(elf, bias, &reader, &p);
	nr = python_thread_names(&p, &reader, names, 16);
	for (size_t i = 0; i < nr; i++)
		printf("  %s\n", names[i].name);
	python_thread_names__free(names, nr);
	head.what = 'n';
	write_image(dir, &head);
}

static void find_interpreter(const char *dir)
{
	struct proc_maps *maps;

	if (proc_maps__read(pid, &maps))
		abort();
	for (size_t i = 0; i < proc_maps__nr(maps); i++) {
		const struct proc_map *map = proc_maps__at(maps, i);
		struct python_elf *python;
		struct elffile *e;

		if (!(map->flags & PROC_MAP_FILE) || proc_maps__first_of_file(maps, map) != map ||
		    elffile__open(map->path, &e))
			continue;
		if (!python_elf__open(e, &python)) {
			read_interpreter(dir, python, map->start - elffile__vaddr(e, map->offset));
			python_elf__free(python);
		}
		elffile__close(e);
	}
	proc_maps__free(maps);
}

static void run(const char *dir, const char *program)
{
	int in[2], out[2];
	char byte;

	if (pipe(in) || pipe(out))
		abort();
	pid = fork();
	if (!pid) {
		dup2(in[0], 0);
		dup2(out[1], 1);
		execlp(program, program, "-I", "-S", "-c", script, NULL);
		_exit(127);
	}
	close(in[0]);
	close(out[1]);
	printf("%s\n", program);
	if (read(out[0], &byte, 1) == 1) {
		usleep(10000); /* until it waits */
		find_interpreter(dir);
	}
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	close(in[1]);
	close(out[0]);
}

int main(int argc, char **argv)
{
	const char *pythons = getenv("PYTHONS");
	char *list = strdup(pythons ? pythons : "python3");

	if (argc != 2 || !list)
		return 2;
	for (char *program = strtok(list, " "); program; program = strtok(NULL, " "))
		run(argv[1], program);
	free(list);
	return 0;
}
