// SPDX-License-Identifier: BSD-2-Clause
/* Prints what is allocated, by device, operator and stack. */
#include "cmd/memory/memory.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "cmd/print/json.h"
#include "cmd/print/text.h"
#include "kprof/memory.h"

#define SHOWN_FRAMES 40 /* by tables; JSON has all */

static const char *op_of(const struct kprof_alive_row *row)
{
	return *row->op ? row->op : "[no operator]";
}

static uint64_t recorded_ns(const struct kprof_capture *c)
{
	const struct kprof_capture_info *info = kprof_capture_info(c);

	return info->end_mono_ns - info->start_mono_ns;
}

struct lost {
	uint64_t records;
	uint64_t of_books; /* of them, allocations and frees: the sums may be wrong */
};

static struct lost lost_by(const struct kprof_capture *c)
{
	struct lost lost = {0};
	const struct kprof_source *s;

	for (size_t i = 0; (s = kprof_capture_source(c, i)); i++) {
		/* of which source the kernel has missed some it does not say */
		lost.records += s->dropped + s->missed;
		lost.of_books += (strcmp(s->name, "memory") ? 0 : s->dropped) + s->missed;
	}
	return lost;
}

/* ---- for people ---- */

static void print_head(const struct kprof_capture *c, const struct kprof_alive *a)
{
	const struct kprof_capture_info *info = kprof_capture_info(c);
	time_t end = (time_t)((info->start_real_ns + recorded_ns(c)) / 1000000000u);
	char at[32], took[TEXT_NUMBER_BYTES];
	const char *name;
	pid_t pid = kprof_alive_process(a, &name);
	struct tm local;

	strftime(at, sizeof(at), "%Y-%m-%d %H:%M:%S", localtime_r(&end, &local));
	printf("process %d (", (int)pid);
	text_print(stdout, name);
	printf("): allocated since the recording began and not freed, at %s, after %s\n", at,
	       text_time(took, recorded_ns(c)));
}

static void print_device(const struct kprof_alive_device *d)
{
	char bytes[TEXT_NUMBER_BYTES], peak[TEXT_NUMBER_BYTES], at[TEXT_NUMBER_BYTES],
		all[TEXT_NUMBER_BYTES], held[TEXT_NUMBER_BYTES], most[TEXT_NUMBER_BYTES];

	printf("%s: %s in %" PRIu64 " blocks; at most %s, after %s; %" PRIu64
	       " allocations, %" PRIu64 " frees",
	       d->name, text_bytes(bytes, d->bytes), d->blocks, text_bytes(peak, d->peak_bytes),
	       text_time(at, d->peak_at_ns), d->allocations, d->frees);
	if (d->earlier)
		printf(", and %" PRIu64 " of what was allocated before", d->earlier);
	if (d->reserved_bytes)
		printf("; the allocator has given out %s of the %s that it holds, at most %s",
		       text_bytes(all, d->allocated_bytes), text_bytes(held, d->reserved_bytes),
		       text_bytes(most, d->peak_reserved_bytes));
	printf("\n");
	if (d->unseen)
		printf("%s: %" PRIu64
		       " frees were not seen, until the address was given out again\n",
		       d->name, d->unseen);
	if (d->not_kept)
		printf("%s: %" PRIu64 " allocations are not among these: there were too many\n",
		       d->name, d->not_kept);
}

static void print_lost(const struct lost *lost)
{
	if (lost->of_books)
		printf("%" PRIu64 " allocations and frees were lost (--ring): blocks may be "
		       "missing, or be here though they were freed\n",
		       lost->of_books);
	if (lost->records > lost->of_books)
		printf("%" PRIu64 " other records were lost (--ring): operators and stacks may be "
		       "missing\n",
		       lost->records - lost->of_books);
}

static int print_ops(const struct kprof_alive *a, uint64_t limit)
{
	static const struct table_column columns[] = {
		{"Operator", false, 60}, {"Device", false, 0}, {"Bytes", true, 0},
		{"Blocks", true, 0},     {"Oldest", true, 0},
	};
	struct table *t = table__new(columns, sizeof(columns) / sizeof(columns[0]));
	const struct kprof_alive_row *row;
	bool fine = t;
	size_t i;

	for (i = 0; fine && i < limit && (row = kprof_alive_row(a, KPROF_ALIVE_BY_OP, i)); i++) {
		char bytes[TEXT_NUMBER_BYTES], blocks[24], oldest[TEXT_NUMBER_BYTES];
		const char *cells[] = {op_of(row), row->device, text_bytes(bytes, row->bytes),
				       blocks, text_time(oldest, row->oldest_ns)};

		snprintf(blocks, sizeof(blocks), "%" PRIu64, row->blocks);
		fine = table__add(t, cells);
	}
	if (fine)
		table__print(t, stdout, true);
	table__free(t);
	if (fine && kprof_alive_row(a, KPROF_ALIVE_BY_OP, i))
		printf("and more operators: --limit 0 shows all\n");
	return fine ? 0 : message_no_memory();
}

static void print_frame(const struct kprof_frame *f)
{
	printf("    ");
	text_print(stdout, f->function);
	if (*f->file) {
		printf("  ");
		text_print(stdout, f->file);
		printf(":%u", f->line);
	} else if (*f->module) {
		printf("  ");
		text_print(stdout, text_base(f->module));
	}
	printf("\n");
}

static void print_stacks(const struct kprof_alive *a, uint64_t limit)
{
	const struct kprof_alive_row *row;
	struct kprof_frame frames[SHOWN_FRAMES + 1];
	size_t i;

	for (i = 0; i < limit && (row = kprof_alive_row(a, KPROF_ALIVE_BY_STACK, i)); i++) {
		char bytes[TEXT_NUMBER_BYTES], oldest[TEXT_NUMBER_BYTES];
		size_t nr = kprof_alive_frames(a, i, frames, SHOWN_FRAMES + 1);

		printf("\n%s in %" PRIu64 " blocks, %s, the oldest %s old: ",
		       text_bytes(bytes, row->bytes), row->blocks, row->device,
		       text_time(oldest, row->oldest_ns));
		text_print(stdout, op_of(row));
		printf("\n");
		if (!row->has_stack)
			printf("    [no stack: more allocations a second than --stack-rate]\n");
		for (size_t k = 0; k < nr && k < SHOWN_FRAMES; k++)
			print_frame(&frames[k]);
		if (nr > SHOWN_FRAMES)
			printf("    ...\n");
	}
	if (kprof_alive_row(a, KPROF_ALIVE_BY_STACK, i))
		printf("\nand more stacks: --limit 0 shows all\n");
}

/* ---- JSON ---- */

static void json_row(struct json *j, const struct kprof_alive_row *row)
{
	json_string(j, "device", row->device);
	json_string(j, "operator", row->op);
	json_uint(j, "bytes", row->bytes);
	json_uint(j, "blocks", row->blocks);
	json_uint(j, "oldest_ns", row->oldest_ns);
}

static void json_stack(struct json *j, const struct kprof_alive *a, size_t i)
{
	struct kprof_frame frames[KPROF_SAMPLE_MAX_FRAMES];
	size_t nr = kprof_alive_frames(a, i, frames, KPROF_SAMPLE_MAX_FRAMES);

	json_open(j, NULL, '{');
	json_row(j, kprof_alive_row(a, KPROF_ALIVE_BY_STACK, i));
	json_open(j, "frames", '[');
	for (size_t k = 0; k < nr; k++) {
		json_open(j, NULL, '{');
		json_string(j, "function", frames[k].function);
		json_string(j, "file", frames[k].file);
		json_uint(j, "line", frames[k].line);
		json_string(j, "module", frames[k].module);
		json_close(j, '}');
	}
	json_close(j, ']');
	json_close(j, '}');
}

static void json_device(struct json *j, const struct kprof_alive_device *d)
{
	json_open(j, NULL, '{');
	json_string(j, "device", d->name);
	json_uint(j, "bytes", d->bytes);
	json_uint(j, "blocks", d->blocks);
	json_uint(j, "allocated_bytes", d->allocated_bytes);
	json_uint(j, "reserved_bytes", d->reserved_bytes);
	json_uint(j, "peak_bytes", d->peak_bytes);
	json_uint(j, "peak_at_ns", d->peak_at_ns);
	json_uint(j, "peak_reserved_bytes", d->peak_reserved_bytes);
	json_uint(j, "allocations", d->allocations);
	json_uint(j, "frees", d->frees);
	json_uint(j, "frees_of_earlier", d->earlier);
	json_uint(j, "frees_not_seen", d->unseen);
	json_uint(j, "not_kept", d->not_kept);
	json_close(j, '}');
}

static void print_json(const struct kprof_capture *c, const struct kprof_alive *a, uint64_t limit)
{
	struct json j = {.to = stdout};
	struct lost lost = lost_by(c);
	struct kprof_alive_device d;
	const char *name;

	json_open(&j, NULL, '{');
	json_uint(&j, "pid", (uint64_t)kprof_alive_process(a, &name));
	json_string(&j, "name", name);
	json_uint(&j, "recorded_ns", recorded_ns(c));
	json_bool(&j, "allocator_seen", kprof_alive_seen(a));
	json_uint(&j, "lost", lost.records);
	json_uint(&j, "lost_allocations_and_frees", lost.of_books);
	json_open(&j, "devices", '[');
	for (size_t i = 0; !kprof_alive_device(a, i, &d); i++)
		json_device(&j, &d);
	json_close(&j, ']');
	json_open(&j, "operators", '[');
	for (size_t i = 0; i < limit && kprof_alive_row(a, KPROF_ALIVE_BY_OP, i); i++) {
		json_open(&j, NULL, '{');
		json_row(&j, kprof_alive_row(a, KPROF_ALIVE_BY_OP, i));
		json_close(&j, '}');
	}
	json_close(&j, ']');
	json_open(&j, "stacks", '[');
	for (size_t i = 0; i < limit && kprof_alive_row(a, KPROF_ALIVE_BY_STACK, i); i++)
		json_stack(&j, a, i);
	json_close(&j, ']');
	json_close(&j, '}');
}

/* Nothing was recorded, as no allocator told anything. */
static int say_unseen(const struct kprof_alive *a)
{
	const char *name;

	message_warn("`kprof list` shows the processes that have one; if it is loaded while the "
		     "recording goes on, that is seen",
		     "nothing was recorded: process %d has loaded no allocator of PyTorch",
		     (int)kprof_alive_process(a, &name));
	return EXIT_FAILED;
}

static int print(const struct kprof_capture *c, const struct kprof_alive *a,
		 const struct memory_opts *opts)
{
	uint64_t limit = opts->limit ? opts->limit : UINT64_MAX;
	struct lost lost = lost_by(c);
	struct kprof_alive_device d;
	int code;

	if (opts->as_json) {
		print_json(c, a, limit);
		return kprof_alive_seen(a) ? EXIT_DONE : say_unseen(a);
	}
	if (!kprof_alive_seen(a))
		return say_unseen(a);
	print_head(c, a);
	for (size_t i = 0; !kprof_alive_device(a, i, &d); i++)
		print_device(&d);
	print_lost(&lost);
	if (!kprof_alive_row(a, KPROF_ALIVE_BY_OP, 0)) {
		printf("nothing is allocated\n");
		return EXIT_DONE;
	}
	code = print_ops(a, limit);
	if (!code)
		print_stacks(a, limit);
	return code;
}

int memory_print(const char *capture, const struct memory_opts *opts)
{
	struct kprof_capture *c;
	struct kprof_alive *a;
	int code;

	if (kprof_capture_open(capture, &c))
		return message_error();
	if (!kprof_capture_has_alive(c)) {
		message_warn("`kprof memory start` records it", "%s does not say what is allocated",
			     capture);
		code = EXIT_FAILED;
	} else if (kprof_alive_new(c, &a)) {
		code = message_error();
	} else {
		code = print(c, a, opts);
		kprof_alive_free(a);
	}
	message_cut(capture, kprof_capture_info(c));
	kprof_capture_close(c);
	return code;
}
