// SPDX-License-Identifier: BSD-2-Clause
/* Floating-point operations: the column of other tables, and the table of them. */
#include <inttypes.h>
#include <stdio.h>

#include "cmd/print/message.h"
#include "cmd/print/text.h"
#include "cmd/report/report.h"

static const char *scaled(char buf[REPORT_CELL_BYTES], double number)
{
	static const char units[] = " kMGTPE";
	size_t unit = 0;

	for (; number >= 1000 && units[unit + 1]; unit++)
		number /= 1000;
	if (unit)
		snprintf(buf, REPORT_CELL_BYTES, "%.2f %c", number, units[unit]);
	else
		snprintf(buf, REPORT_CELL_BYTES, "%.0f", number);
	return buf;
}

const char *report_flops_text(char buf[REPORT_CELL_BYTES], uint64_t flops)
{
	return flops ? scaled(buf, (double)flops) : "";
}

/* ---- by flops ---- */

static double per_s(const struct kprof_row *row, uint64_t amount)
{
	return row->total_ns ? (double)amount / (double)row->total_ns * 1e9 : 0;
}

/* Operations for each byte. 0: the bytes are not known. */
static double intensity(const struct kprof_row *row)
{
	return row->bytes ? (double)row->flops / (double)row->bytes : 0;
}

/* What keeps the device from doing more, at best; "": it is not known what it can do. */
static const char *limit(const struct kprof_row *row)
{
	if (!row->flops_peak || !row->bytes_peak || !row->bytes)
		return "";
	return intensity(row) * row->bytes_peak < row->flops_peak ? "memory" : "compute";
}

static const char *share(char buf[REPORT_CELL_BYTES], double part, double whole)
{
	if (!whole)
		return "";
	snprintf(buf, REPORT_CELL_BYTES, "%.1f%%", part / whole * 100);
	return buf;
}

const char *report_roofline_cell(char buf[REPORT_CELL_BYTES], enum report_roofline what,
				 const struct kprof_row *row)
{
	switch (what) {
	case REPORT_FLOPS_PER_S:
		return row->flops ? scaled(buf, per_s(row, row->flops)) : "";
	case REPORT_FLOPS_SHARE:
		return share(buf, per_s(row, row->flops), row->flops_peak);
	case REPORT_BYTES_PER_S:
		return row->bytes ? scaled(buf, per_s(row, row->bytes)) : "";
	case REPORT_BYTES_SHARE:
		return share(buf, per_s(row, row->bytes), row->bytes_peak);
	case REPORT_INTENSITY:
		if (!row->bytes)
			return "";
		snprintf(buf, REPORT_CELL_BYTES, "%.1f", intensity(row));
		return buf;
	case REPORT_LIMIT:
		return limit(row);
	}
	return "";
}

static void json_known(struct json *j, const char *key, double value)
{
	if (value > 0)
		json_double(j, key, value);
	else
		json_null(j, key);
}

void report_roofline_json_row(struct json *j, const struct kprof_row *row)
{
	json_string(j, "type", row->category);
	json_string(j, "where", row->where);
	json_uint(j, "bytes", row->bytes);
	json_uint(j, "device_ns", row->device_ns);
	json_known(j, "flops_per_s", per_s(row, row->flops));
	json_known(j, "bytes_per_s", per_s(row, row->bytes));
	json_known(j, "peak_flops_per_s", row->flops_peak);
	json_known(j, "peak_bytes_per_s", row->bytes_peak);
	json_known(j, "flops_per_byte", intensity(row));
	if (*limit(row))
		json_string(j, "limit", limit(row));
	else
		json_null(j, "limit");
	json_bool(j, "tf32", row->tf32_peak > 0);
}

/* How long the devices would need for all of it if each did what it can. */
static double least_seconds(const struct kprof_result *r)
{
	double seconds = 0;

	for (size_t i = 0; i < kprof_result_nr_rows(r); i++) {
		const struct kprof_row *row = kprof_result_row(r, i);

		if (row->flops_peak)
			seconds += (double)row->flops / row->flops_peak;
	}
	return seconds;
}

void report_roofline_json(struct json *j, const struct kprof_result *r)
{
	json_known(j, "least_s", least_seconds(r));
}

/* How much of what devices worked for the table's operations are about. */
static void with_formulas(const struct kprof_result *r)
{
	uint64_t known_ns = 0, all_ns = 0, flops = 0;

	for (size_t i = 0; i < kprof_result_nr_rows(r); i++) {
		const struct kprof_row *row = kprof_result_row(r, i);

		all_ns += row->device_ns;
		known_ns += row->flops ? row->device_ns : 0;
		flops += row->flops > 0;
	}
	if (!flops)
		printf("No operations are known: kprof attach --flops records what they follow from\n");
	else if (all_ns > known_ns)
		printf("Operations are known of %.1f%% of the devices' time: other rows have no formula\n",
		       (double)known_ns / (double)all_ns * 100);
}

void report_roofline_lines(const struct kprof_capture *c, const struct kprof_result *r)
{
	const struct kprof_capture_info *info = kprof_capture_info(c);
	double window_s = (double)(info->end_mono_ns - info->start_mono_ns) / 1e9;
	double least_s = least_seconds(r);
	char time[TEXT_NUMBER_BYTES];
	bool tf32 = false;

	with_formulas(r);
	if (least_s > 0 && window_s > 0)
		printf("At the devices' peaks, all of it takes %s: %.1f%% of the time recorded\n",
		       text_time(time, (uint64_t)(least_s * 1e9)), least_s / window_s * 100);
	for (size_t i = 0; i < kprof_result_nr_rows(r); i++)
		tf32 |= kprof_result_row(r, i)->tf32_peak > 0;
	if (tf32)
		printf("float, faster than floats can be: held against the peak of TF32\n");
	printf("Bytes: that have to be read or written, each once; of peak: at the highest clock\n");
}
