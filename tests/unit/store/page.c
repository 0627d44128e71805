// SPDX-License-Identifier: BSD-2-Clause
/*
 * The tables of records in docs/capture-format.md are those of user/store/records.c. With
 * KPROF_FORMAT_PAGE=write in the environment (`make format-page`) they are written there; without
 * it, a difference is a failure.
 */
#include "store/records.h"
#include "store_fixture.h"

#define PAGE "docs/capture-format.md"

/* ---- a field in words ---- */

/*
 * The field whose value a difference is counted from: the nearest earlier one, else the last one.
 */
static const struct record_field *cursor_at(const struct record_field *fields,
					    const struct record_field *f)
{
	const struct record_field *found = NULL;

	for (const struct record_field *at = fields; at->coding; at++)
		if (at->cursor == f->cursor && (at < f || !found || found >= f))
			found = at;
	return found;
}

static void put_note(FILE *to, const char *fmt, const char *a, const char *b, const char *note)
{
	fprintf(to, " (");
	fprintf(to, fmt, a, b);
	fprintf(to, note ? "; %s)" : ")", note);
}

/* A time's difference from another field of the record, or of the record before. */
static void put_difference(FILE *to, const struct record_kind *kind, const struct record_field *f)
{
	const struct record_field *from = cursor_at(kind->fields, f);

	if (from == f) {
		fprintf(to, "Δ %s", f->name);
		if (f->note)
			fprintf(to, " (%s)", f->note);
		return;
	}
	fprintf(to, "%s", f->name);
	if (from < f)
		put_note(to, "zigzag of %s − %s", f->name, from->name, f->note);
	else
		put_note(to, "zigzag difference from the *%s* of the %s before", from->name,
			 kind->name, f->note);
}

static void put_lines(FILE *to)
{
	fprintf(to, "lines, each of");
	for (const struct record_field *f = record_line_fields; f->coding; f++) {
		fprintf(to, "%s %s %s", f == record_line_fields ? "" : ",",
			f->of == STORE_REF_STRING ? "string" : "u32", f->name);
		if (f->note)
			fprintf(to, " (%s)", f->note);
	}
}

static void put_field(FILE *to, const struct record_kind *kind, const struct record_field *f)
{
	const char *type = f->of == STORE_REF_STRING && !f->defines ? "string "
			   : f->bytes == sizeof(uint32_t)           ? "u32 "
								    : "";

	switch ((enum field_coding)f->coding) {
	case FIELD_SIGNED:
		fprintf(to, "%s", f->name);
		put_note(to, "zigzag%s%s", "", "", f->note);
		return;
	case FIELD_SINCE_LAST:
		put_difference(to, kind, f);
		return;
	case FIELD_SINCE_PREV:
		fprintf(to, "%s", f->name);
		put_note(to, "zigzag of %s − %s", f->name, f[-1].name, f->note);
		return;
	case FIELD_UNTIL_PREV:
		fprintf(to, "%s", f->name);
		put_note(to, "0: not known; else 1 + zigzag of %s − %s", f[-1].name, f->name,
			 f->note);
		return;
	case FIELD_NAME:
	case FIELD_TEXT:
		fprintf(to, "%s%s", f->name, f->coding == FIELD_NAME ? " (not empty)" : "");
		if (f->note)
			fprintf(to, " (%s)", f->note);
		fprintf(to, ", NUL");
		return;
	case FIELD_LINES:
		put_lines(to);
		return;
	case FIELD_BYTES:
		type = "";
		break;
	case FIELD_PLAIN:
	case FIELD_END:
		break;
	}
	fprintf(to, "%s%s", type, f->name);
	if (f->note)
		fprintf(to, " (%s)", f->note);
}

/* ---- the page's tables ---- */

static void put_records(FILE *to, enum store_chunk_type chunk)
{
	fprintf(to, "| type | record | since | fields |\n|---|---|---|---|\n");
	for (int type = 0; type < RECORD_KINDS_MAX; type++) {
		const struct record_kind *kind = &record_kinds[type];

		if (kind->chunk != chunk)
			continue;
		fprintf(to, "| %d | %s | 1.%u | ", type, kind->name, kind->since);
		for (const struct record_field *f = kind->fields; f->coding; f++) {
			fprintf(to, f == kind->fields ? "" : ", ");
			put_field(to, kind, f);
		}
		fprintf(to, kind->note ? ". %s |\n" : " |\n", kind->note);
	}
}

static void put_attributes(FILE *to)
{
	fprintf(to, "| type | value |\n|---|---|\n");
	for (int type = STORE_ATTR_U64; type <= STORE_ATTR_COUNT; type++)
		fprintf(to, "| %d | %s |\n", type, record_attrs[type].note);
	fprintf(to, "| others | one varint, to be passed over with its key |\n");
}

static void put_table(FILE *to, const char *name)
{
	if (!strcmp(name, "tables"))
		put_records(to, STORE_CHUNK_TABLES);
	else if (!strcmp(name, "events"))
		put_records(to, STORE_CHUNK_EVENTS);
	else if (!strcmp(name, "details"))
		put_records(to, STORE_CHUNK_DETAILS);
	else if (!strcmp(name, "attributes"))
		put_attributes(to);
	else
		CHECK(!"a table that nobody knows");
}

/* The page with new tables: between "<!-- records: NAME -->" and "<!-- end of records -->". */
static int put_page(FILE *to, const char *page)
{
	static const char start[] = "<!-- records: ", end[] = "<!-- end of records -->";
	int tables = 0;

	for (;;) {
		const char *at = strstr(page, start), *close = at ? strstr(at, " -->\n") : NULL;
		const char *after = close ? strstr(close, end) : NULL;
		char name[32];

		if (!after) {
			fputs(page, to);
			return tables;
		}
		snprintf(name, sizeof(name), "%.*s", (int)(close - at - (int)strlen(start)),
			 at + strlen(start));
		fwrite(page, 1, (size_t)(close + strlen(" -->\n") - page), to);
		put_table(to, name);
		page = after;
		tables++;
	}
}

static void the_page_says_what_the_table_says(void)
{
	const char *mode = getenv("KPROF_FORMAT_PAGE");
	char *page, *made = NULL;
	size_t nr, nr_made;
	FILE *to = open_memstream(&made, &nr_made);

	CHECK_EQ(read_file(PAGE, 1 << 20, &page, &nr), 0);
	CHECK_EQ(put_page(to, page), 4);
	fclose(to);
	if (mode && !strcmp(mode, "write"))
		spit(PAGE, made, nr_made);
	else if (strcmp(page, made) != 0)
		printf("# %s differs from user/store/records.c: run `make format-page`\n", PAGE);
	CHECK((mode && !strcmp(mode, "write")) || !strcmp(page, made));
	free(page);
	free(made);
}

/* Two fields that overlap would be read as something else. */
static void each_field_has_its_own_place(void)
{
	for (int type = 1; type < RECORD_KINDS_MAX; type++) {
		const struct record_kind *kind = &record_kinds[type];
		uint64_t taken[2] = {0};

		for (const struct record_field *f = kind->fields; f->coding; f++) {
			for (int i = f->offset; i < f->offset + f->bytes; i++) {
				CHECK(!(taken[i / 64] >> i % 64 & 1));
				taken[i / 64] |= 1ull << i % 64;
			}
			CHECK(f->cursor < RECORD_CURSORS && f->of < RECORD_LIMITS && f->name);
			CHECK(f->coding != FIELD_SINCE_LAST || f->cursor);
			CHECK(f->coding <= FIELD_NUMBERS || kind->chunk == STORE_CHUNK_TABLES);
			CHECK(f->coding > FIELD_NUMBERS || f == kind->fields ||
			      f[-1].coding <= FIELD_NUMBERS); /* numbers come first */
			CHECK(f->coding > FIELD_NUMBERS || f->bytes == 4 || f->bytes == 8);
		}
	}
}

/* A copy on another clock (kprof merge) changes what is a time, and nothing else. */
static void times_are_marked(void)
{
	static const char *const times[] = {"time",   "start", "end",  "exit",
					    "queued", "woken", "mono", "end of the recording"};

	for (int type = 1; type < RECORD_KINDS_MAX; type++) {
		for (const struct record_field *f = record_kinds[type].fields; f->coding; f++) {
			bool named = false;

			for (size_t i = 0; i < ARRAY_SIZE(times); i++)
				named |= !strcmp(f->name, times[i]);
			CHECK_EQ(f->time, named);
			CHECK(!f->time || f->bytes == 8);
		}
	}
}

UNIT_MAIN(TEST(times_are_marked), TEST(the_page_says_what_the_table_says),
	  TEST(each_field_has_its_own_place))
