// SPDX-License-Identifier: BSD-2-Clause
/* What was allocated: columns of other tables, and what the table of memory says besides. */
#include <inttypes.h>
#include <stdio.h>

#include "cmd/print/text.h"
#include "cmd/report/report.h"

const char *report_memory_bytes(char *buf, int64_t bytes)
{
	char text[TEXT_NUMBER_BYTES];

	if (bytes >= 0)
		return text_bytes(buf, (uint64_t)bytes);
	snprintf(buf, TEXT_NUMBER_BYTES, "-%s", text_bytes(text, -(uint64_t)bytes));
	return buf;
}

void report_memory_json_row(struct json *j, enum kprof_by by, const struct kprof_row *row)
{
	if (by == KPROF_BY_OP) {
		json_int(j, "memory_bytes", row->memory_bytes);
		json_int(j, "self_memory_bytes", row->self_memory_bytes);
		json_int(j, "device_memory_bytes", row->device_memory_bytes);
		json_int(j, "self_device_memory_bytes", row->self_device_memory_bytes);
	} else if (by == KPROF_BY_MEMORY) {
		json_string(j, "device", row->memory_device);
		json_int(j, "allocated_bytes", row->memory_bytes);
		json_int(j, "peak_bytes", row->peak_bytes);
		json_uint(j, "peak_blocks", row->peak_blocks);
		json_int(j, "kept_bytes", row->kept_bytes);
		json_uint(j, "kept_blocks", row->kept_blocks);
		json_uint(j, "kept_steps", row->kept_steps);
	}
}

void report_memory_json(struct json *j, const struct kprof_result *r)
{
	struct kprof_memory_peak p;

	json_open(j, "memory", '[');
	for (size_t i = 0; !kprof_result_memory(r, i, &p); i++) {
		json_open(j, NULL, '{');
		json_uint(j, "pid", (uint64_t)p.pid);
		json_uint(j, "peak_bytes", p.bytes);
		json_uint(j, "peak_at_ns", p.at_ns);
		json_uint(j, "end_bytes", p.end_bytes);
		json_string(j, "device", p.device);
		json_uint(j, "earlier_bytes", p.earlier_bytes);
		json_uint(j, "reserved_bytes", p.reserved_bytes);
		json_close(j, '}');
	}
	json_close(j, ']');
}

static void print_peak(const struct kprof_memory_peak *p)
{
	char peak[TEXT_NUMBER_BYTES], at[TEXT_NUMBER_BYTES], end[TEXT_NUMBER_BYTES];
	char earlier[TEXT_NUMBER_BYTES], reserved[TEXT_NUMBER_BYTES];

	printf("process %d, %s: at most %s in use, after %s", p->pid, p->device,
	       text_bytes(peak, p->bytes), text_time(at, p->at_ns));
	if (p->earlier_bytes)
		printf(", %s of it from before", text_bytes(earlier, p->earlier_bytes));
	printf("; %s at the end", text_bytes(end, p->end_bytes));
	if (p->reserved_bytes)
		printf("; %s reserved", text_bytes(reserved, p->reserved_bytes));
	printf("\n");
}

void report_memory_lines(const struct kprof_result *r)
{
	struct kprof_memory_peak p;
	bool kept = false;

	for (size_t i = 0; !kprof_result_memory(r, i, &p); i++)
		print_peak(&p);
	printf("The table: of memory that was allocated in the recording\n");
	for (size_t i = 0; i < kprof_result_nr_rows(r); i++)
		kept |= kprof_result_row(r, i)->kept_blocks > 0;
	if (kept)
		printf("Kept: allocated in a step, and still in use two steps later\n");
}
