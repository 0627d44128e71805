// SPDX-License-Identifier: BSD-2-Clause
/*
 * Static probes are notes of type 3 with the name "stapsdt". A note contains the addresses of the
 * probe, of a base and of the semaphore, as they were at link time, then the provider, name and
 * arguments as texts (sourceware.org/systemtap/wiki/UserSpaceProbeImplementation).
 */
#include "symbol/elf/priv.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/foreign.h"
#include "util/util.h"

#define NOTE_NAME "stapsdt"
#define NOTE_TYPE 3
#define SECTION ".note.stapsdt"
#define MOST_PROBES 65536 /* notes that are read */

/* The next text of the description; NULL: it has no end. */
static const char *text(const uint8_t **at, const uint8_t *end)
{
	const char *start = (const char *)*at;
	const uint8_t *nul = memchr(*at, '\0', (size_t)(end - *at));

	if (!nul)
		return NULL;
	*at = nul + 1;
	return start;
}

/* Reads a note's description. False: it is malformed. */
static bool read_note(const uint8_t *desc, size_t bytes, struct usdt_note *out)
{
	const uint8_t *at = desc + sizeof(out->addresses), *end = desc + bytes;

	if (bytes < sizeof(out->addresses))
		return false;
	memcpy(&out->addresses, desc, sizeof(out->addresses));
	out->provider = text(&at, end);
	out->name = out->provider ? text(&at, end) : NULL;
	out->args = out->name ? text(&at, end) : NULL;
	return out->args;
}

static size_t aligned(size_t n)
{
	return (n + 3) & ~(size_t)3;
}

int usdt_notes(const uint8_t *at, size_t left, int (*fn)(void *ctx, const struct usdt_note *n),
	       void *ctx)
{
	for (size_t nr = 0; at && left >= sizeof(Elf64_Nhdr) && nr < MOST_PROBES; nr++) {
		struct usdt_note found;
		Elf64_Nhdr note;
		const uint8_t *name = at + sizeof(note), *desc;
		int err;

		memcpy(&note, at, sizeof(note));
		left -= sizeof(note);
		if (note.n_namesz > left || aligned(note.n_namesz) > left ||
		    note.n_descsz > left - aligned(note.n_namesz))
			return 0;
		desc = name + aligned(note.n_namesz);
		left -= aligned(note.n_namesz);
		if (note.n_type == NOTE_TYPE && note.n_namesz == sizeof(NOTE_NAME) &&
		    !memcmp(name, NOTE_NAME, sizeof(NOTE_NAME)) &&
		    read_note(desc, note.n_descsz, &found)) {
			err = fn(ctx, &found);
			if (err)
				return err;
		}
		if (aligned(note.n_descsz) >= left) /* the last note may lack its padding */
			return 0;
		left -= aligned(note.n_descsz);
		at = desc + aligned(note.n_descsz);
	}
	return 0;
}

/* ---- probes: notes whose addresses are in the file ---- */

struct walk {
	const struct elffile *e;
	bool has_base;
	uint64_t base; /* the address of the base now */
	int (*fn)(void *ctx, const struct usdt_probe *p);
	void *ctx;
};

static int on_note(void *ctx, const struct usdt_note *n)
{
	const struct walk *w = ctx;
	/* how far prelink has moved all addresses after linking */
	uint64_t moved = w->has_base && n->addresses.base ? w->base - n->addresses.base : 0;
	struct usdt_probe probe = {
		.provider = n->provider,
		.name = n->name,
		.args = n->args,
		.offset = elffile__offset(w->e, n->addresses.place + moved),
		.semaphore = n->addresses.semaphore
				     ? elffile__offset(w->e, n->addresses.semaphore + moved)
				     : 0,
	};

	/* A counter in memory that is not part of the file cannot be used by a uprobe. */
	if (probe.semaphore == UINT64_MAX || probe.offset == UINT64_MAX ||
	    !elffile__executable(w->e, probe.offset))
		return 0;
	return w->fn(w->ctx, &probe);
}

int usdt_probes(const struct elffile *e, int (*fn)(void *ctx, const struct usdt_probe *p),
		void *ctx)
{
	struct walk w = {.e = e, .fn = fn, .ctx = ctx};
	size_t bytes, unused;
	const uint8_t *notes = elffile__section(e, SECTION, &bytes);

	w.has_base = elffile__section_at(e, ".stapsdt.base", &unused, &w.base);
	return usdt_notes(notes, bytes, on_note, &w);
}

/* ---- without opening the file in full ---- */

#define MOST_SECTIONS 1024 /* a file with more sections or names is opened in full */
#define MOST_NAMES (64u << 10)

/*
 * Reads bytes of the file into malloc'ed memory and adds a NUL. NULL: they could not all be read.
 */
static char *read_at(int fd, uint64_t offset, size_t bytes)
{
	char *to = malloc(bytes + 1);

	if (to && (offset > INT64_MAX || pread(fd, to, bytes, (off_t)offset) != (ssize_t)bytes)) {
		free(to);
		return NULL;
	}
	if (to)
		to[bytes] = '\0';
	return to;
}

static bool named(const Elf64_Shdr *sections, unsigned int nr, const char *names, uint64_t bytes)
{
	for (unsigned int i = 0; i < nr; i++)
		if (sections[i].sh_name < bytes && !strcmp(names + sections[i].sh_name, SECTION))
			return true;
	return false;
}

static bool in_sections(int fd, const Elf64_Ehdr *h)
{
	char *sections = read_at(fd, h->e_shoff, h->e_shnum * sizeof(Elf64_Shdr)), *names = NULL;
	bool there = true; /* if in doubt */
	Elf64_Shdr s;

	if (sections) {
		memcpy(&s, sections + h->e_shstrndx * sizeof(s), sizeof(s));
		names = s.sh_size <= MOST_NAMES ? read_at(fd, s.sh_offset, s.sh_size) : NULL;
		if (names)
			there = named((const Elf64_Shdr *)(const void *)sections, h->e_shnum, names,
				      s.sh_size);
	}
	free(names);
	free(sections);
	return there;
}

bool usdt_may_be_in(const char *path)
{
	int fd = open_in_root("", path, OPEN_NO_COPY);
	Elf64_Ehdr h;
	bool there;

	if (fd < 0)
		return fd != -EINVAL && fd != -ETXTBSY; /* -ETXTBSY: no probe can be there */
	if (pread(fd, &h, sizeof(h), 0) != (ssize_t)sizeof(h) ||
	    memcmp(h.e_ident, ELFMAG, SELFMAG) || h.e_ident[EI_CLASS] != ELFCLASS64)
		there = false;
	else if (!h.e_shnum || h.e_shnum > MOST_SECTIONS || h.e_shstrndx >= h.e_shnum ||
		 h.e_shentsize != sizeof(Elf64_Shdr))
		/* the section numbers are stored elsewhere, or are unusual */
		there = h.e_shoff != 0;
	else
		there = in_sections(fd, &h);
	close(fd);
	return there;
}
