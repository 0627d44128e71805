// SPDX-License-Identifier: BSD-2-Clause
#include "symbol/names/names.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "util/order.h"
#include "util/foreign.h"
#include "util/util.h"

#define MAX_BYTES (64u << 20)
#define MAX_LINES (1u << 20) /* each takes 3 × 24 bytes while they are sorted */
/*
 * How many seconds a file's time may be before the start of its process, for they come from
 * different clocks: the real-time clock and the kernel's boot time.
 */
#define CLOCKS_DIFFER_S 2

/* A line of the file. */
struct region {
	uint64_t start, end;
	uint32_t name; /* offset in .text; greater for later lines */
};

struct perfmap {
	char *text;
	size_t text_bytes;
	struct region *parts; /* ordered by address, without overlaps */
	size_t nr;
};

/* ---- lines ---- */

struct lines {
	struct region *all;
	size_t nr, cap;
};

static bool hex(char **at, uint64_t *out)
{
	char *end;

	if (!isxdigit((unsigned char)**at))
		return false;
	errno = 0;
	*out = strtoull(*at, &end, 16);
	if (errno || *end != ' ')
		return false;
	*at = end + strspn(end, " ");
	return true;
}

static int add_line(struct lines *l, const struct perfmap *m, char *line)
{
	uint64_t start, size;
	char *at = line;

	if (!hex(&at, &start) || !hex(&at, &size) || !size || start > UINT64_MAX - size || !*at)
		return 0;
	if (l->nr == MAX_LINES)
		return -EFBIG;
	if (vec_grow((void **)&l->all, &l->cap, l->nr, sizeof(*l->all)))
		return -ENOMEM;
	l->all[l->nr++] = (struct region){start, start + size, (uint32_t)(at - m->text)};
	return 0;
}

/* ---- one name for each address ---- */

/* A heap of the regions that contain the current address, with the latest line on top. */
struct heap {
	struct region *all;
	size_t nr;
};

static void push(struct heap *h, struct region r)
{
	size_t at = h->nr++;

	for (; at && h->all[(at - 1) / 2].name < r.name; at = (at - 1) / 2)
		h->all[at] = h->all[(at - 1) / 2];
	h->all[at] = r;
}

static void pop(struct heap *h)
{
	struct region r = h->all[--h->nr];
	size_t at = 0, child;

	while ((child = 2 * at + 1) < h->nr) {
		if (child + 1 < h->nr && h->all[child + 1].name > h->all[child].name)
			child++;
		if (r.name >= h->all[child].name)
			break;
		h->all[at] = h->all[child];
		at = child;
	}
	h->all[at] = r;
}

static int compare_starts(const void *a, const void *b)
{
	const struct region *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->name < y->name ? -1 : x->name > y->name;
}

/*
 * Adds the part that the latest open region covers, from `from` to at most `to`. Returns the end of
 * this part.
 */
static uint64_t cover(struct perfmap *m, const struct heap *h, uint64_t from, uint64_t to)
{
	const struct region *top = &h->all[0];
	uint64_t end = top->end < to ? top->end : to;
	struct region *last = m->nr ? &m->parts[m->nr - 1] : NULL;

	if (end <= from)
		return from;
	if (last && last->end == from && last->name == top->name)
		last->end = end;
	else
		m->parts[m->nr++] = (struct region){from, end, top->name};
	return end;
}

/*
 * Resolves overlaps. The beginning and the end of each line begin at most one part each, so there
 * are at most twice as many parts as lines.
 */
static int untangle(struct perfmap *m, struct lines *l)
{
	struct heap open = {.all = reallocarray(NULL, l->nr + 1, sizeof(*open.all))};
	struct region *parts;
	uint64_t at = 0;

	m->parts = reallocarray(NULL, 2 * l->nr + 1, sizeof(*m->parts));
	if (!open.all || !m->parts) {
		free(open.all);
		return -ENOMEM;
	}
	if (l->nr)
		qsort(l->all, l->nr, sizeof(*l->all), compare_starts);
	for (size_t i = 0; i <= l->nr; i++) {
		uint64_t next = i < l->nr ? l->all[i].start : UINT64_MAX;

		while (open.nr && at < next) {
			at = cover(m, &open, at, next);
			if (open.all[0].end <= at)
				pop(&open);
		}
		at = next;
		if (i < l->nr)
			push(&open, l->all[i]);
	}
	free(open.all);
	parts = reallocarray(m->parts, m->nr + 1, sizeof(*parts));
	m->parts = parts ? parts : m->parts;
	return 0;
}

int perfmap__parse(const char *text, size_t bytes, struct perfmap **out)
{
	struct perfmap *m;
	struct lines l = {0};
	int err = 0;

	*out = NULL;
	if (bytes > MAX_BYTES)
		return -EFBIG;
	m = calloc(1, sizeof(*m));
	if (m)
		m->text = malloc(bytes + 1);
	if (!m || !m->text) {
		free(m);
		return -ENOMEM;
	}
	m->text_bytes = bytes;
	if (bytes)
		memcpy(m->text, text, bytes);
	m->text[bytes] = '\0';
	for (char *line = m->text, *next; line < m->text + bytes && !err; line = next) {
		next = line + strcspn(line, "\n");
		*next++ = '\0';
		err = add_line(&l, m, line);
	}
	if (!err)
		err = untangle(m, &l);
	free(l.all);
	if (err)
		perfmap__free(m);
	else
		*out = m;
	return err;
}

void perfmap__free(struct perfmap *m)
{
	if (!m)
		return;
	free(m->parts);
	free(m->text);
	free(m);
}

size_t perfmap__bytes(const struct perfmap *m)
{
	return sizeof(*m) + m->text_bytes + m->nr * sizeof(*m->parts);
}

const char *perfmap__find(const struct perfmap *m, uint64_t address, uint64_t *start)
{
	size_t low = ORDER_UPTO(m->parts, m->nr, end, address);

	if (low == m->nr || address < m->parts[low].start)
		return NULL;
	*start = m->parts[low].start;
	return m->text + m->parts[low].name;
}

/* ---- the file of a process ---- */

/* When the process began, in seconds of the real-time clock as it is set now. */
static time_t begin_of(uint64_t start_ticks)
{
	struct timespec now;

	clock_gettime(CLOCK_BOOTTIME, &now);
	return time(NULL) -
	       (now.tv_sec - (time_t)(start_ticks / (unsigned long)sysconf(_SC_CLK_TCK)));
}

static int read_map(int fd, uid_t user, time_t begin, char **text, size_t *bytes)
{
	struct stat st;

	if (fstat(fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode) || (st.st_uid != user && st.st_uid != 0))
		return -EPERM;
	/* The file is of an earlier process with this PID: such files are never removed. */
	if (st.st_mtim.tv_sec + CLOCKS_DIFFER_S < begin)
		return -ESTALE;
	return read_fd(fd, MAX_BYTES, text, bytes);
}

int perfmap__load(pid_t pid, pid_t ns_pid, uid_t user, uint64_t start_ticks, struct perfmap **out)
{
	char root[40], name[40], *text = NULL;
	size_t bytes = 0;
	int fd, err;

	*out = NULL;
	snprintf(name, sizeof(name), "tmp/perf-%d.map", ns_pid);
	snprintf(root, sizeof(root), "/proc/%d/root", pid);
	fd = open_in_root(root, name, O_NOFOLLOW);
	if (fd < 0)
		return fd == -EINVAL ? -EPERM : fd; /* a device or FIFO: no compiler makes these */
	err = read_map(fd, user, begin_of(start_ticks), &text, &bytes);
	/* Drops an incomplete last line, which is still being written. */
	while (!err && bytes && text[bytes - 1] != '\n')
		bytes--;
	if (!err)
		err = perfmap__parse(text, bytes, out);
	free(text);
	close(fd);
	return err;
}
