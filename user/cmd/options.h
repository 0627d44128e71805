/* SPDX-License-Identifier: BSD-2-Clause */
/* Values of options, and the options that attach and run have in common. */
#ifndef KPROF_CMD_OPTIONS_H
#define KPROF_CMD_OPTIONS_H

#include <getopt.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "cmd/cmd.h"
#include "cmd/message.h"
#include "kprof.h"

/* ---- values: false when the text is none -------------------------------------------------------- */

/* "5s", "500ms", "2m", "1h", "250us", "1.5" (seconds); more than nothing, less than ten years. */
bool option_duration(const char *text, uint64_t *ns);
/* "4096", "512K", "64M", "1G" (powers of 1024; "MB" and "MiB" too). */
bool option_size(const char *text, uint64_t *bytes);
/* Decimal digits only, within the limits. */
bool option_uint(const char *text, uint64_t least, uint64_t most, uint64_t *value);
/* A process number. */
bool option_pid(const char *text, pid_t *pid);

/*
 * getopt_long() over argv that says on stderr what it does not know. Returns as getopt_long() does,
 * '?' after a message. "--help" is 'h' in every command.
 */
int option_next(const struct command *c, int argc, char **argv, const char *shorts,
		const struct option *longs);

/* The one operand, a capture, at argv[optind]: -1 when it is there and alone, else an exit status after a message. */
int option_capture(const struct command *c, int argc, char **argv);

/* ---- recording ------------------------------------------------------------------------------- */

struct option_list {
	char **items; /* each malloc'ed */
	size_t nr;
};

struct record_opts {
	pid_t *pids;
	size_t nr_pids;
	char **argv;          /* run: the command; NULL: attach. Not owned */
	uint64_t duration_ns; /* 0: until Ctrl-C, or the targets' end */
	const char *output;   /* NULL: the default name */
	struct option_list ops, exclude;
	enum kprof_children children;
	uint64_t ring_bytes; /* 0: by the machine */
	uint32_t max_probes; /* without uprobe_multi; 0: default */
	bool no_multi;
	bool strict;
	enum kprof_agent_mode agent;
	const char *activities, *types; /* as given; NULL: not given */
	bool cuda_sync;
	bool with_stack;
	uint32_t stack_rate; /* 0: all */
	uint32_t sample_hz;  /* 0: no samples; sample presets it */
	bool gil_only;       /* only samples of threads that hold the interpreter's lock */
	bool samples_only;
	struct option_list config; /* what the configuration file says, as options */
	struct message_opts message;
};

#define RECORD_OPTIONS_HELP                                                                                    \
	"  -d, --duration TIME   stop after 5s, 500ms, 2m …; without: at Ctrl-C or the end of the targets\n" \
	"  -o, --output FILE     .json, .json.gz: Chrome trace; .pftrace, .pftrace.gz: Perfetto;\n"            \
	"                        .kprof: capture; %p in the name: one file per process.\n"                     \
	"                        Default: HOST_PID.NANOSECONDS.pt.trace.json.gz\n"                             \
	"      --ops GLOBS       record only these operators: 'aten::*conv*,aten::mm'\n"                       \
	"      --exclude GLOBS   leave these out\n"                                                            \
	"      --stacks          samples of what runs on each CPU, with native and Python stacks\n"            \
	"  -F, --frequency HZ    how often to sample (99); implies --stacks\n"                                 \
	"      --with-stack      the Python and native stack at each operator and device call\n"               \
	"      --stack-rate N    … of at most N of them a second and thread (0: all; 1000)\n"                \
	"      --activities SETS of torch.profiler: cpu,cuda,xpu,hpu,mtia,privateuse1[=NAME]\n"                \
	"      --types TYPES     single types: kernel,gpu_memcpy …; list: prints them\n"                     \
	"      --cuda-sync       what each synchronization with a GPU waited for\n"                            \
	"      --no-agent        put nothing into any process: calls of the GPU's runtime are seen,\n"         \
	"                        its own activities are not\n"                                                 \
	"      --agent           do, where /etc/kprof.conf says no-agent\n"                                    \
	"      --no-children     only the given processes, none of their descendants\n"                        \
	"      --children HOW    follow: descendants get probes when they appear (default);\n"                 \
	"                        exact: from their first instruction, at a cost for every process\n"           \
	"                        that has mapped the same libraries\n"                                         \
	"      --ring SIZE       of all ring buffers together, e.g. 64M; default: by the machine\n"            \
	"      --no-multi        place single uprobes even where uprobe_multi works\n"                         \
	"      --max-probes N    how many to place at most without uprobe_multi; default: 160\n"               \
	"      --config FILE     defaults, an option a line, instead of those in /etc/kprof.conf\n"            \
	"      --strict          exit with 4 when any event was lost\n"                                        \
	"  -q, --quiet           no progress and no summary, only warnings\n"                                  \
	"  -v, --verbose         say what is being done\n"                                                     \
	"  -h, --help            this text\n"

enum record_command { RECORD_ATTACH, RECORD_RUN, RECORD_SAMPLE };
/*
 * Parses the options of these commands; *first is the index of the first argument that is none.
 * -1: go on; else the exit code to end with. The options are freed by record_opts_free() in
 * either case.
 */
int record_opts_parse(const struct command *c, int argc, char **argv, enum record_command which,
		      struct record_opts *opts, int *first);
void record_opts_free(struct record_opts *opts);

/* ---- configuration ---------------------------------------------------------------------------- */

#define CONFIG_PATH "/etc/kprof.conf"

/*
 * Reads a file of long options, one a line without their dashes, "ring = 64M" or "no-agent"; # begins a comment.
 * Adds "--ring=64M" and so on to the list. required: that there is no such file is an error. -1: fine; else the
 * exit code, after a message.
 */
int config_read(const char *path, bool required, const struct option *longs,
		struct option_list *list);
bool option_list_add(struct option_list *list, const char *text, size_t len);

#endif
