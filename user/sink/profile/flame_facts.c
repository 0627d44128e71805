// SPDX-License-Identifier: BSD-2-Clause
#include "sink/profile/flame_impl.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "sink/write/write.h"
#include "util/error.h"
#include "util/util.h"

#define COUNT_BYTES 32

void flame_printf(struct jsonw *w, const char *fmt, ...)
{
	char text[1024];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	jsonw__text(w, text);
}

static const char *format_time(char *out, size_t bytes, uint64_t ns)
{
	static const struct {
		const char *unit;
		double ns;
	} units[] = {{"s", 1e9}, {"ms", 1e6}, {"µs", 1e3}};

	for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
		double v = (double)ns / units[i].ns;

		if (v >= 1) {
			snprintf(out, bytes,
				 v < 10    ? "%.2f %s"
				 : v < 100 ? "%.1f %s"
					   : "%.0f %s",
				 v, units[i].unit);
			return out;
		}
	}
	snprintf(out, bytes, "%" PRIu64 " ns", ns);
	return out;
}

static const char *format_count(char *out, size_t bytes, uint64_t n)
{
	char digits[24], *to = out;
	size_t len = (size_t)snprintf(digits, sizeof(digits), "%" PRIu64, n);

	for (size_t i = 0; i < len && to < out + bytes - 2; i++) {
		if (i && (len - i) % 3 == 0)
			*to++ = ',';
		*to++ = digits[i];
	}
	*to = '\0';
	return out;
}

void flame_put_time(struct jsonw *w, uint64_t ns)
{
	char text[COUNT_BYTES];

	jsonw__text(w, format_time(text, sizeof(text), ns));
}

void flame_put_count(struct jsonw *w, uint64_t n)
{
	char text[COUNT_BYTES];

	jsonw__text(w, format_count(text, sizeof(text), n));
}

/* The command line of process pid or, if 0, of the first recorded process. */
static char *command_of(const struct kprof_capture *t, pid_t pid)
{
	const struct tl_process *p;
	char *text;

	for (size_t i = 0; (p = timeline__process(t, i)); i++) {
		if (pid && p->pid != pid)
			continue;
		if (*p->cmdline)
			return strdup(p->cmdline);
		if (*p->comm)
			return strdup(p->comm);
	}
	text = timeline__meta_text(t, "command");
	return text ? text : strdup("flame graph");
}

static char *facts_of(struct kprof_capture *t, const struct stack_counts *n,
		      const struct kprof_export_opts *opts)
{
	const struct kprof_capture_info *info = kprof_capture_info(t);
	struct stack_rate rate = stack_rate_of(t);
	time_t seconds = (time_t)(info->start_real_ns / NSEC_PER_SEC);
	char hz[32] = "", pid[32] = "", when[64] = "", whole[64] = "";
	char samples[COUNT_BYTES], lost[COUNT_BYTES], weight[COUNT_BYTES], window[COUNT_BYTES];
	struct tm tm;

	if (rate.hz > 0)
		snprintf(hz, sizeof(hz), "%g Hz · ", rate.hz);
	if (opts->pid)
		snprintf(pid, sizeof(pid), "process %d · ", opts->pid);
	if (gmtime_r(&seconds, &tm))
		strftime(when, sizeof(when), " from %F %T UTC", &tm);
	if (n->walked)
		snprintf(whole, sizeof(whole), "%.1f %% whole stacks · ",
			 100 * (double)n->whole / (double)n->walked);
	if (timeline__shows_waits(t))
		return xasprintf("%stime off the CPU: %s in waits of at least %s · %s%s%s%s", pid,
				 format_time(weight, sizeof(weight), n->weight_ns),
				 format_time(samples, sizeof(samples),
					     timeline__waits_number(t, "min_wait_ns")),
				 whole,
				 format_time(window, sizeof(window),
					     info->end_mono_ns - info->start_mono_ns),
				 when, info->complete ? "" : " · the recording was cut short");
	return xasprintf(
		"%s%s%s samples of %s%s · %s lost · %s%s%s%s", pid, hz,
		format_count(samples, sizeof(samples), n->samples),
		format_time(weight, sizeof(weight), n->weight_ns), n->off_cpu_ns ? "" : " CPU time",
		format_count(lost, sizeof(lost), rate.lost), whole,
		format_time(window, sizeof(window), info->end_mono_ns - info->start_mono_ns), when,
		info->complete ? "" : " · the recording was cut short");
}

int flame_facts__read(struct flame_facts *f, struct kprof_capture *t, const struct stack_tree *tree,
		      const struct kprof_export_opts *opts)
{
	f->counts = *stack_tree__counts(tree);
	f->of_waits = timeline__shows_waits(t);
	for (uint32_t i = 0; i < stack_tree__nr_nodes(tree); i++) {
		const struct stack_node *n = stack_tree__node(tree, i);

		f->self_ns[n->symbol->kind] += n->self_ns;
	}
	f->command = command_of(t, opts->pid);
	f->facts = facts_of(t, &f->counts, opts);
	if (!f->command || !f->facts)
		return error_set(-ENOMEM, NULL, "no memory for a flame graph");
	return 0;
}

void flame_facts__free(struct flame_facts *f)
{
	free(f->command);
	free(f->facts);
}

void flame_put_facts(struct jsonw *w, const struct flame_facts *f, unsigned int x)
{
	flame_printf(w, "<text class=\"title fit\" x=\"%u\" y=\"24\">", x);
	text_xml(w, f->command, 120);
	flame_printf(w, "</text>\n<text class=\"facts fit\" x=\"%u\" y=\"43\">", x);
	text_xml(w, f->facts, 0);
	if (f->left_out) {
		jsonw__text(w, " · ");
		flame_put_count(w, f->left_out);
		jsonw__text(w, " frames too narrow to draw");
	}
	jsonw__text(w, "</text>\n");
}
