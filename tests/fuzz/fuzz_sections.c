// SPDX-License-Identifier: BSD-2-Clause
/*
 * Sections of ELF files that are taken apart by hand: the notes of static probes and the link to a
 * debug file. The first byte says which. What is understood and written again is understood as the
 * same.
 */
#include <elf.h>

#include "fuzz.h"
#include "symbol/elf/priv.h"
#include "symbol/symbolize/priv.h"

/* ---- .note.stapsdt ---- */

#define MOST_NOTES 64

struct seen {
	struct usdt_note notes[MOST_NOTES];
	size_t nr;
};

static int on_note(void *ctx, const struct usdt_note *n)
{
	struct seen *seen = ctx;

	/* Reads to the end of each text, as who is given them does. */
	REQUIRE(n->name == n->provider + strlen(n->provider) + 1);
	REQUIRE(n->args == n->name + strlen(n->name) + 1);
	REQUIRE(strlen(n->args) + 1);
	if (seen->nr == MOST_NOTES)
		return 7;
	seen->notes[seen->nr++] = *n;
	return 0;
}

/* As the assembler's macros of sys/sdt.h write it. */
static void write_note(FILE *f, const struct usdt_note *n)
{
	size_t texts = strlen(n->provider) + strlen(n->name) + strlen(n->args) + 3;
	const Elf64_Nhdr head = {8, (uint32_t)(sizeof(n->addresses) + texts), 3};

	fwrite(&head, sizeof(head), 1, f);
	fwrite("stapsdt", 8, 1, f);
	fwrite(&n->addresses, sizeof(n->addresses), 1, f);
	fwrite(n->provider, texts, 1, f); /* they follow each other */
	for (; texts & 3; texts++)
		fputc(0, f);
}

static void use_notes(const uint8_t *notes, size_t bytes)
{
	struct seen seen = {0}, again = {0};
	char *text = NULL;
	size_t n = 0;
	FILE *f;

	REQUIRE(usdt_notes(notes, bytes, on_note, &seen) == 0 || seen.nr == MOST_NOTES);
	if (!seen.nr)
		return;
	f = open_memstream(&text, &n);
	REQUIRE(f);
	for (size_t i = 0; i < seen.nr; i++)
		write_note(f, &seen.notes[i]);
	fclose(f);
	REQUIRE(!usdt_notes((const uint8_t *)text, n, on_note, &again) && again.nr == seen.nr);
	for (size_t i = 0; i < seen.nr; i++) {
		const struct usdt_note *a = &seen.notes[i], *b = &again.notes[i];

		REQUIRE(!memcmp(&a->addresses, &b->addresses, sizeof(a->addresses)));
		REQUIRE(!strcmp(a->provider, b->provider) && !strcmp(a->name, b->name));
		REQUIRE(!strcmp(a->args, b->args));
	}
	free(text);
}

/* ---- .gnu_debuglink ---- */

static void use_link(const uint8_t *section, size_t bytes)
{
	uint32_t crc = 0, same = 0;
	const char *name = symbol_debuglink__read(section, bytes, &crc);
	uint8_t again[264] = {0};
	size_t len;

	if (!name)
		return;
	len = strlen(name);
	REQUIRE(name == (const char *)section && len && len < 256 && !strchr(name, '/'));
	/* As objcopy --add-gnu-debuglink writes it. */
	memcpy(again, name, len);
	memcpy(again + len + 4 - len % 4, &crc, sizeof(crc));
	name = symbol_debuglink__read(again, len + 8 - len % 4, &same);
	REQUIRE(name && strlen(name) == len && same == crc);
	REQUIRE(!symbol_debuglink__read(again, len + 7 - len % 4, &same));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct fuzz_input in = {data, bytes};
	uint64_t what = fuzz_number(&in, 1);
	uint8_t *copy = malloc(in.left ? in.left : 1); /* of exactly that size: no NUL follows */

	REQUIRE(copy);
	memcpy(copy, in.at, in.left);
	if (what == 'l')
		use_link(copy, in.left);
	else
		use_notes(copy, in.left);
	free(copy);
	return 0;
}
