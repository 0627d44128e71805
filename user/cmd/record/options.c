// SPDX-License-Identifier: BSD-2-Clause
#include "cmd/record/options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/export/export.h"
#include "kprof/client.h"
#include "kprof/counters.h"

/* One page: too small for use, but the accounting must hold even then. */
#define LEAST_RING_BYTES 4096
#define MOST_RING_BYTES (1ull << 40)
#define LEAST_MEMORY_BYTES (4ull << 20)
#define DEFAULT_MEMORY_BYTES (64ull << 20) /* for each of the two, with -a */
/* Not a round number, so that sampling does not fall in step with a program. */
#define DEFAULT_HZ 99
#define MOST_HZ 10000
#define DEFAULT_STACK_RATE 1000
#define DEFAULT_MIN_WAIT_NS 100000 /* of sample; attach and run record all waits */
#define MOST_STACK_RATE 1000000
#define LEAST_OVERHEAD 0.001
#define MOST_STEPS 1000000000
#define MOST_REPEATS 1000
#define DEFAULT_OVERHEAD 0.02 /* with -a */

/* Checks sets and types one by one, so that the message names the option that is wrong. */
static int check_activities(const struct command *c, void *opts, const char *text)
{
	struct kprof_session_opts trial;

	return kprof_session_opts_activities(&trial, text, NULL) ? message_error() : -1;
}

static int check_types(const struct command *c, void *opts, const char *text)
{
	struct kprof_session_opts trial;
	const char *name;

	if (strcmp(text, "list"))
		return kprof_session_opts_activities(&trial, NULL, text) ? message_error() : -1;
	for (size_t i = 0; (name = kprof_activity_name(i)); i++)
		puts(name);
	return EXIT_DONE;
}

static int check_only(const struct command *c, void *opts, const char *text)
{
	struct kprof_session_opts trial;

	return kprof_session_opts_only(&trial, text) ? message_error() : -1;
}

static int check_scopes(const struct command *c, void *opts, const char *text)
{
	struct kprof_session_opts trial;

	return kprof_session_opts_scopes(&trial, text) ? message_error() : -1;
}

static const char *counter_name(size_t i)
{
	struct kprof_counter c;

	return kprof_counter_at(i, &c) ? NULL : c.name;
}

static int check_counters(const struct command *c, void *opts, const char *text)
{
	struct kprof_counter counter;

	if (strcmp(text, "list"))
		return kprof_counters_check(text) ? message_error() : -1;
	for (size_t i = 0; !kprof_counter_at(i, &counter); i++)
		printf("%-24s  %s%s\n", counter.name, counter.what,
		       counter.works ? "" : " (not on this machine, or not allowed)");
	return EXIT_DONE;
}

static int check_overhead(const struct command *c, void *opts, const char *text)
{
	double share;

	if (value_percent(text, &share) && share <= 1 && (!share || share >= LEAST_OVERHEAD))
		return -1;
	return message_usage(
		c->name, "--max-overhead: '%s' is no share such as 2%% (0.1 … 100; 0: no bound)",
		text);
}

bool record_steps_or_time(const char *text, uint64_t *steps, uint64_t *ns)
{
	size_t digits = strspn(text, "0123456789"), len = strlen(text);
	char number[24];

	*steps = *ns = 0;
	if (strcmp(text + digits, "steps") && strcmp(text + digits, "step"))
		return len && value_duration(text, ns);
	if (!digits || digits >= sizeof(number))
		return false;
	snprintf(number, sizeof(number), "%.*s", (int)digits, text);
	return value_uint(number, 0, MOST_STEPS, steps);
}

static int check_warm_up(const struct command *c, void *opts, const char *text)
{
	uint64_t steps, ns;

	if (record_steps_or_time(text, &steps, &ns))
		return -1;
	return message_usage(c->name, "--warm-up: '%s' is neither a time nor steps (5s, 3steps)",
			     text);
}

static int check_wait(const struct command *c, void *opts, const char *text)
{
	uint64_t steps, ns;

	if (record_steps_or_time(text, &steps, &ns) && (steps || ns))
		return -1;
	return message_usage(c->name, "--wait: '%s' is neither a time nor steps (5m, 100steps)",
			     text);
}

char *record_meta_key(const char *text, const char **json)
{
	const char *equals = strchr(text, '=');

	*json = equals ? equals + 1 : NULL;
	return strndup(text, equals ? (size_t)(equals - text) : strlen(text));
}

static int check_meta(const struct command *c, void *opts, const char *text)
{
	const char *json;
	char *key = record_meta_key(text, &json);
	int code = -1;

	if (!key)
		code = message_no_memory();
	else if (!json)
		code = message_usage(c->name, "--meta: '%s' is no KEY=JSON", text);
	else if (kprof_metadata_check(key, json))
		code = message_error();
	free(key);
	return code;
}

static const struct option_choice children[] = {{"auto", KPROF_CHILDREN_AUTO},
						{"follow", KPROF_CHILDREN_FOLLOW},
						{"exact", KPROF_CHILDREN_EXACT},
						{0}};

#define PROBES (RECORD_ATTACH | RECORD_RUN | RECORD_CTL) /* the commands that place probes */
#define MANY (RECORD_ATTACH | RECORD_SAMPLE)             /* those that may record all processes */
#define NO_AGENT_SAID ((enum kprof_agent_mode) - 1)
#define OPT(FIELD) OPTION_FIELD(struct record_opts, FIELD)

/* clang-format off */
const struct option_row record_options[] = {
	{.name = "pid", .letter = 'p', .kind = OPTION_PIDS, OPT(pids),
	 .on = MANY | RECORD_CTL, .argument = "PID[,PID…]", .only_given = true,
	 .help = "the processes; may be given again"},
	{.name = "all", .letter = 'a', .kind = OPTION_FLAG, OPT(session.all_processes),
	 .on = RECORD_SAMPLE, .only_given = true,
	 .help = "all processes of the machine, those that start meanwhile, too"},
	{.name = "all", .letter = 'a', .kind = OPTION_FLAG, OPT(session.all_processes),
	 .on = RECORD_ATTACH, .only_given = true,
	 .help = "all that map a known framework, or will; no agent is put into them unasked"},
	{.name = "tid", .kind = OPTION_PIDS, OPT(tids), .on = RECORD_ATTACH | RECORD_CTL,
	 .argument = "TID[,TID…]", .wrong = "thread number", .only_given = true,
	 .help = "only these threads of the processes; no children, no agent"},
	{.name = "user", .kind = OPTION_LIST, OPT(chosen.users), .on = MANY,
	 .argument = "USERS", .wrong = "list of users", .only_given = true,
	 .help = "of all processes, only those of these users (names or numbers)"},
	{.name = "cgroup", .kind = OPTION_LIST, OPT(chosen.cgroups), .on = MANY,
	 .argument = "GLOBS", .wrong = "list of cgroups, containers or pods", .only_given = true,
	 .help = "only those in these cgroups, by path, container or pod id: '/system.slice/*'"},
	{.name = "comm", .kind = OPTION_LIST, OPT(chosen.comms), .on = MANY,
	 .argument = "GLOBS", .wrong = "list of names of processes", .only_given = true,
	 .help = "only those with these names, as ps -o comm shows them: 'python*'"},
	{.name = "exclude-user", .kind = OPTION_LIST, OPT(chosen.exclude_users), .on = MANY,
	 .argument = "USERS", .wrong = "list of users", .only_given = true,
	 .help = "none of those of these users"},
	{.name = "exclude-cgroup", .kind = OPTION_LIST, OPT(chosen.exclude_cgroups), .on = MANY,
	 .argument = "GLOBS", .wrong = "list of cgroups, containers or pods", .only_given = true,
	 .help = "none of those in these cgroups"},
	{.name = "exclude-comm", .kind = OPTION_LIST, OPT(chosen.exclude_comms), .on = MANY,
	 .argument = "GLOBS", .wrong = "list of names of processes", .only_given = true,
	 .help = "none of those with these names"},
	{.name = "duration", .letter = 'd', .kind = OPTION_DURATION, OPT(duration_ns), .least = 1,
	 .argument = "TIME",
	 .help = "stop after 5s, 500ms, 2m …; without: at Ctrl-C or the end of the targets"},
	{.name = "steps", .kind = OPTION_NUMBER, OPT(schedule.steps), .least = 1, .most = MOST_STEPS,
	 .on = PROBES, .argument = "N", .wrong = "number of steps",
	 .help = "record so many steps of a training, whole, then stop"},
	{.name = "warm-up", .kind = OPTION_TEXT, OPT(warm_up), .check = check_warm_up, .on = PROBES,
	 .argument = "LENGTH",
	 .help = "… after so many steps or so much time with probes in place: 3steps, 5s"},
	{.name = "wait", .kind = OPTION_TEXT, OPT(wait), .check = check_wait,
	 .on = RECORD_ATTACH | RECORD_RUN, .argument = "LENGTH",
	 .help = "… and before, so many steps or so much time with hardly any: 100steps, 5m"},
	{.name = "repeat", .kind = OPTION_NUMBER, OPT(repeat), .least = 1, .most = MOST_REPEATS,
	 .on = PROBES, .argument = "N", .wrong = "number of rounds (1 … 1000)",
	 .help = "… all that so often, each time to a file of its own: out.1.json …"},
	{.name = "step-at", .kind = OPTION_TEXT, OPT(schedule.annotation), .on = PROBES,
	 .argument = "NAME",
	 .help = "… that annotations of this name are, with or without a number behind, or calls of "
		 "a function of native code: symbol:NAME; default: ProfilerStep#N, else what is "
		 "called a step or an iteration, else optimizer steps"},
	{.name = "step-multiple", .kind = OPTION_NUMBER, OPT(schedule.multiple_of), .least = 1,
	 .most = MOST_STEPS, .on = PROBES, .argument = "N", .wrong = "number of steps",
	 .help = "… and begin with one whose number (ProfilerStep#N) is a multiple of this: with the "
		 "same one in all ranks"},
	{.name = "output", .letter = 'o', .kind = OPTION_TEXT, OPT(output),
	 .on = RECORD_ATTACH | RECORD_RUN,
	 .check = export_check_output, .argument = "FILE", .words = "<file>",
	 .help = ".json, .json.gz: Chrome trace; .pftrace, .pftrace.gz: Perfetto; .kprof: "
		 "capture; %p in the name: one file per process. Default: "
		 "HOST_PID.NANOSECONDS.pt.trace.json.gz"},
	{.name = "output", .letter = 'o', .kind = OPTION_TEXT, OPT(output), .on = RECORD_SAMPLE,
	 .check = export_check_output, .argument = "FILE", .words = "<file>",
	 .help = ".svg: flame graph; .folded; .speedscope.json; .pb.gz: pprof; .pftrace; "
		 ".json.gz: Chrome trace; .kprof: capture; %p in the name: one file per process. "
		 "Default: HOST_PID.NANOSECONDS.svg"},
	{.name = "output", .letter = 'o', .kind = OPTION_TEXT, OPT(output), .on = RECORD_CTL,
	 .check = export_check_output, .argument = "FILE", .words = "<file>", .only_given = true,
	 .help = "get, dump: where to: a capture (.kprof), or any of the formats of `kprof export`"},
	{.name = "round", .kind = OPTION_NUMBER, OPT(round), .least = 1, .most = MOST_REPEATS,
	 .on = RECORD_CTL, .argument = "N", .wrong = "number of a round (1 … 1000)",
	 .only_given = true,
	 .help = "get: this one of the rounds of --repeat (the last one)"},
	{.name = "start-at", .kind = OPTION_TEXT, OPT(start_at), .on = RECORD_CTL,
	 .argument = "TIME", .only_given = true,
	 .help = "start: at this time of the clock, the same on many machines: seconds since 1970, "
		 "12:30:00 of today or tomorrow, or +5s from now"},
	{.name = "last", .kind = OPTION_DURATION, OPT(last_ns), .on = RECORD_CTL,
	 .argument = "TIME", .only_given = true,
	 .help = "dump: only so much (all that the flight recorder has)"},
	{.name = "socket", .kind = OPTION_TEXT, OPT(socket), .on = RECORD_CTL, .argument = "PATH",
	 .words = "<file>", .only_given = true,
	 .help = "where the daemon listens (" KPROF_DAEMON_SOCKET ")"},
	{.name = "json", .kind = OPTION_FLAG, OPT(as_json), .on = RECORD_CTL, .only_given = true,
	 .help = "what the daemon answers, as JSON"},
	{.name = "ops", .kind = OPTION_LIST, OPT(ops), .on = PROBES, .argument = "GLOBS",
	 .wrong = "list of operator names",
	 .help = "record only these operators: 'aten::*conv*,aten::mm'"},
	{.name = "exclude", .kind = OPTION_LIST, OPT(exclude), .on = PROBES, .argument = "GLOBS",
	 .wrong = "list of operator names",
	 .help = "leave these operators out"},
	{.name = "stacks", .kind = OPTION_FLAG, OPT(stacks), .on = PROBES,
	 .help = "samples of what runs on each CPU, with native and Python stacks"},
	{.name = "frequency", .letter = 'F', .kind = OPTION_NUMBER, OPT(session.sample_hz),
	 .least = 1, .most = MOST_HZ, .on = PROBES, .argument = "HZ",
	 .wrong = "frequency (1 … 10000 samples a second)",
	 .help = "how often to sample (99); implies --stacks"},
	{.name = "frequency", .letter = 'F', .kind = OPTION_NUMBER, OPT(session.sample_hz),
	 .least = 1, .most = MOST_HZ, .on = RECORD_SAMPLE, .argument = "HZ",
	 .wrong = "frequency (1 … 10000 samples a second)",
	 .help = "how often to look at what each CPU does (99)"},
	{.name = "gil", .kind = OPTION_FLAG, OPT(session.gil_only), .on = RECORD_SAMPLE,
	 .help = "only of threads that hold the interpreter's lock (GIL) at that moment"},
	{.name = "off-cpu", .kind = OPTION_FLAG, OPT(session.waits), .on = RECORD_SAMPLE,
	 .help = "when threads wait, too: where, what for, how long, who wakes them; files of "
		 "samples then show the waits"},
	{.name = "sched", .kind = OPTION_FLAG, OPT(session.waits), .on = PROBES,
	 .help = "when threads wait: where, what for, how long, who wakes them"},
	{.name = "min-wait", .kind = OPTION_DURATION, OPT(session.min_wait_ns), .argument = "TIME",
	 .help = "… of waits of at least so long; shorter ones are counted (sample: 100us; "
		 "others: 0)"},
	{.name = "ask-jvm", .kind = OPTION_FLAG, OPT(session.ask_jvm),
	 .help = "ask Java's virtual machines for names of their compiled code (JDK 17 and later)"},
	{.name = "with-stack", .kind = OPTION_FLAG, OPT(session.with_stack), .on = PROBES,
	 .help = "the Python and native stack at each operator and device call"},
	{.name = "stack-rate", .kind = OPTION_NUMBER, OPT(session.stack_rate),
	 .most = MOST_STACK_RATE, .on = PROBES, .argument = "N",
	 .wrong = "number of stacks (0: all)",
	 .help = "… of at most N of them a second and thread (0: all; 1000)"},
	{.name = "shapes", .kind = OPTION_FLAG, OPT(session.shapes), .on = PROBES,
	 .help = "sizes, types and strides of each operator's tensors, and its other inputs"},
	{.name = "flops", .kind = OPTION_FLAG, OPT(session.flops), .on = PROBES,
	 .help = "… and FLOPs of matrix products, convolutions and attention, in reports"},
	{.name = "flow", .kind = OPTION_FLAG, OPT(session.flow), .on = PROBES,
	 .help = "sequence numbers, with arrows from operators to the autograd nodes they made"},
	{.name = "memory", .kind = OPTION_FLAG, OPT(session.memory), .on = PROBES,
	 .help = "what PyTorch allocates and frees, of the CPU and of GPUs, by operator"},
	{.name = "modules", .kind = OPTION_FLAG, OPT(session.modules), .on = PROBES,
	 .help = "which calls of PyTorch's modules (nn.Module) each operator ran in"},
	{.name = "counters", .kind = OPTION_TEXT, OPT(session.counters), .check = check_counters,
	 .on = PROBES, .argument = "NAMES", .word = counter_name,
	 .help = "what each call had of these: cycles,page-faults,context-switches …; list: prints "
		 "them"},
	{.name = "activities", .kind = OPTION_TEXT, OPT(activities), .check = check_activities,
	 .on = PROBES, .argument = "SETS", .words = "cpu cuda xpu privateuse1",
	 .help = "of torch.profiler: cpu,cuda,xpu,privateuse1"},
	{.name = "types", .kind = OPTION_TEXT, OPT(types), .check = check_types, .on = PROBES,
	 .argument = "TYPES", .word = kprof_activity_name,
	 .help = "single types: kernel,gpu_memcpy …; list: prints them"},
	{.name = "only", .kind = OPTION_TEXT, OPT(only), .check = check_only, .on = PROBES,
	 .argument = "KINDS", .words = "nvtx itt mark",
	 .help = "nothing but these annotations: nvtx,itt,mark; probes nothing else, no agent"},
	{.name = "cuda-sync", .kind = OPTION_FLAG, OPT(session.cuda_sync), .on = PROBES,
	 .help = "what each synchronization with a GPU waited for"},
	{.name = "cuda-memory", .kind = OPTION_FLAG, OPT(session.cuda_memory), .on = PROBES,
	 .help = "how much memory of each GPU is allocated, as a counter"},
	{.name = "metrics", .kind = OPTION_TEXT, OPT(session.metrics), .on = PROBES,
	 .argument = "NAMES",
	 .help = "of each GPU's hardware, by CUPTI's names: sm__inst_executed.sum,"
		 "dram__bytes.sum.per_second; launches wait a while when it begins"},
	{.name = "metrics-range", .kind = OPTION_DURATION, OPT(session.metrics_range_ns),
	 .on = PROBES, .argument = "TIME",
	 .help = "… of ranges of this length (100ms, which is the shortest)"},
	{.name = "no-agent", .kind = OPTION_SET, OPT(session.agent), .value = KPROF_AGENT_NONE,
	 .on = PROBES,
	 .help = "put nothing into any process: calls of the GPU's runtime are seen, its own "
		 "activities are not"},
	{.name = "agent", .kind = OPTION_SET, OPT(session.agent), .value = KPROF_AGENT_AUTO,
	 .on = PROBES,
	 .help = "do, with -a, or where " CONFIG_PATH " says no-agent"},
	{.name = "observer", .kind = OPTION_FLAG, OPT(observer), .on = PROBES,
	 .help = "operators and annotations by PyTorch's own callbacks, by an agent that is put into "
		 "the process: a fraction of the probes' cost, and ranges of C++, too"},
	{.name = "scopes", .kind = OPTION_TEXT, OPT(scopes), .check = check_scopes, .on = PROBES,
	 .argument = "SCOPES", .word = kprof_scope_name,
	 .help = "of PyTorch only these scopes: FUNCTION,BACKWARD_FUNCTION,TORCHSCRIPT_FUNCTION,"
		 "USER_SCOPE; with --observer others, too; default: all"},
	{.name = "within", .kind = OPTION_TEXT, OPT(session.within), .on = PROBES, .argument = "NAME",
	 .help = "only what threads do inside of annotations of this name; function:NAME of a "
		 "Python function, module:CLASS of calls of such modules, symbol:NAME of a function "
		 "of native code; * and ? stand for any characters: 'forward*'"},
	{.name = "no-children", .kind = OPTION_SET, OPT(session.children),
	 .value = KPROF_CHILDREN_NONE,
	 .help = "only the given processes, none of their descendants"},
	{.name = "children", .kind = OPTION_CHOICE, OPT(session.children), .choices = children,
	 .argument = "HOW",
	 .help = "exact: descendants are recorded from their first instruction, at a cost for every "
		 "process that has mapped the same libraries; follow: from when they are seen; "
		 "auto: exact where no other process has mapped them (default)"},
	{.name = "trust-files", .kind = OPTION_FLAG, OPT(session.trust_files),
	 .help = "rely on the processes' file systems to answer, also on FUSE and on overlays that "
		 "users have mounted"},
	{.name = "ring", .kind = OPTION_SIZE, OPT(session.ring_bytes), .least = LEAST_RING_BYTES,
	 .most = MOST_RING_BYTES, .argument = "SIZE",
	 .wrong = "size for the ring buffers (4K … 1T)",
	 .help = "of all ring buffers together, e.g. 64M; default: by the machine"},
	{.name = "kernel-memory", .kind = OPTION_SIZE, OPT(session.kernel_bytes),
	 .least = LEAST_MEMORY_BYTES, .most = MOST_RING_BYTES, .argument = "SIZE",
	 .wrong = "size for the kernel's memory (4M … 1T)",
	 .help = "for unwind tables and mappings, at most, e.g. 32M; default: 64M with -a, else "
		 "what the kernel's maps hold"},
	{.name = "own-memory", .kind = OPTION_SIZE, OPT(session.own_bytes),
	 .least = LEAST_MEMORY_BYTES, .most = MOST_RING_BYTES, .on = RECORD_SAMPLE, .argument = "SIZE",
	 .wrong = "size for kprof's own memory (4M … 1T)",
	 .help = "of kprof itself with -a, about: beyond, processes that were not met for longest "
		 "are forgotten until they are met again (64M)"},
	{.name = "no-multi", .kind = OPTION_FLAG, OPT(session.no_multi), .on = PROBES,
	 .help = "place single uprobes even where uprobe_multi works"},
	{.name = "max-probes", .kind = OPTION_NUMBER, OPT(session.max_single_probes), .least = 1,
	 .most = UINT32_MAX, .on = PROBES, .argument = "N", .wrong = "number of probes",
	 .help = "how many to place at most without uprobe_multi; default: 160"},
	{.name = "max-overhead", .kind = OPTION_TEXT, OPT(max_overhead), .check = check_overhead,
	 .argument = "PERCENT",
	 .help = "what recording may cost, of the CPU time that the processes use, e.g. 2%: beyond, "
		 "it samples less often, then records fewer operators, and says so; 0: no bound. "
		 "Default: none, with -a 2%"},
	{.name = "meta", .kind = OPTION_TEXTS, OPT(meta), .check = check_meta, .argument = "KEY=JSON",
	 .help = "a key at the top of the trace, and its value as JSON: lr=0.1, 'note=\"a text\"'; "
		 "may be given again"},
	{.name = "trace-id", .kind = OPTION_TEXT, OPT(session.trace_id), .argument = "ID",
	 .help = "the trace's id; default: made of the host and the time"},
	{.name = "trace-name", .kind = OPTION_TEXT, OPT(session.trace_name), .argument = "NAME",
	 .help = "name of the span that stands for the whole recording"},
	{.name = "config", .kind = OPTION_CONFIG, OPT(config), .argument = "FILE",
	 .words = "<file>", .only_given = true,
	 .help = "defaults, an option a line, instead of those in " CONFIG_PATH},
	{.name = "strict", .kind = OPTION_FLAG, OPT(strict),
	 .help = "exit with 4 when any event or sample was lost"},
	{.name = "quiet", .letter = 'q', .kind = OPTION_FLAG, OPT(message.quiet),
	 .help = "no progress and no summary, only warnings"},
	{.name = "verbose", .letter = 'v', .kind = OPTION_FLAG, OPT(message.verbose),
	 .help = "say what is being done"},
	{0},
};
/* clang-format on */

static int take_choice(const struct command *c, struct record_opts *opts)
{
	struct kprof_choice *choice = &opts->session.choice;
	int code = chosen_find_users(c, &opts->chosen);

	if (code >= 0)
		return code;
	chosen_fill(&opts->chosen, choice);
	choice->tids = opts->tids.items;
	choice->nr_tids = opts->tids.nr;
	if (!opts->session.all_processes &&
	    (choice->nr_uids || choice->nr_cgroups || choice->nr_comms || choice->nr_exclude_uids ||
	     choice->nr_exclude_cgroups || choice->nr_exclude_comms))
		return message_usage(c->name,
				     "--user, --cgroup, --comm, and the same with --exclude-, "
				     "choose among all processes (-a)");
	return -1;
}

static int take_schedule(const struct command *c, struct record_opts *opts)
{
	struct kprof_schedule *schedule = &opts->schedule;

	const char *more = opts->warm_up           ? "--warm-up"
			   : schedule->annotation  ? "--step-at"
			   : schedule->multiple_of ? "--step-multiple"
			   : opts->wait            ? "--wait"
			   : opts->repeat          ? "--repeat"
						   : NULL;

	if (!schedule->steps && more && c->bit != RECORD_CTL)
		return message_usage(c->name, "%s says more of --steps, which is not given", more);
	if (opts->repeat > 1 && opts->output && !strcmp(opts->output, "-"))
		return message_usage(c->name, "--repeat writes several files, not standard output");
	if (schedule->annotation && !*schedule->annotation)
		return message_usage(c->name, "--step-at: no annotation has an empty name");
	if (opts->warm_up)
		record_steps_or_time(opts->warm_up, &schedule->warm_up_steps,
				     &schedule->warm_up_ns);
	if (schedule->steps)
		opts->session.schedule = schedule;
	return -1;
}

int record_opts_parse(const struct command *c, int argc, char **argv, struct record_opts *opts,
		      int *first)
{
	struct kprof_session_opts *session = &opts->session;
	bool agent_asked;
	int code;

	session->sz = sizeof(*session);
	session->stack_rate = DEFAULT_STACK_RATE;
	session->min_wait_ns = UINT64_MAX;
	session->agent = NO_AGENT_SAID;
	session->samples_only = c->bit == RECORD_SAMPLE;
	code = options_parse(c, argc, argv, opts, first);
	if (code >= 0)
		return code;
	agent_asked = session->agent == KPROF_AGENT_AUTO;
	if (session->agent == NO_AGENT_SAID) {
		bool unasked = session->all_processes || (c->bit == RECORD_CTL && !opts->observer &&
							  !opts->activities && !opts->types);

		session->agent = unasked ? KPROF_AGENT_NONE : KPROF_AGENT_AUTO;
	}
	if (session->min_wait_ns == UINT64_MAX)
		session->min_wait_ns = session->samples_only ? DEFAULT_MIN_WAIT_NS : 0;
	if ((opts->stacks || session->samples_only) && !session->sample_hz)
		session->sample_hz = DEFAULT_HZ;
	session->ops = (const char *const *)opts->ops.items;
	session->nr_ops = opts->ops.nr;
	session->exclude = (const char *const *)opts->exclude.items;
	session->nr_exclude = opts->exclude.nr;
	if (session->all_processes && session->samples_only && !session->kernel_bytes)
		session->kernel_bytes = DEFAULT_MEMORY_BYTES;
	if (session->all_processes && session->samples_only && !session->own_bytes)
		session->own_bytes = DEFAULT_MEMORY_BYTES;
	if (session->all_processes)
		session->max_overhead = DEFAULT_OVERHEAD;
	if (opts->max_overhead)
		value_percent(opts->max_overhead, &session->max_overhead);
	code = take_choice(c, opts);
	if (code < 0)
		code = take_schedule(c, opts);
	if (code >= 0)
		return code;
	message_listen(&opts->message); /* for warnings about sets that are not fully available */
	if (kprof_session_opts_activities(session, opts->activities, opts->types))
		return message_error();
	if (opts->only && kprof_session_opts_only(session, opts->only))
		return message_error();
	if (session->only && (opts->activities || opts->types || agent_asked))
		return message_usage(c->name, "--only contradicts %s",
				     agent_asked ? "--agent" : "--activities and --types");
	if (opts->scopes && !opts->observer &&
	    kprof_session_opts_probed_scopes(session, opts->scopes))
		return message_error();
	if (opts->observer && kprof_session_opts_scopes(session, opts->scopes))
		return message_error();
	if (kprof_session_opts_check(session))
		return message_error();
	if (opts->output && !session->sample_hz && !session->waits &&
	    kprof_export_of_samples(opts->output))
		return message_usage(c->name,
				     "'%s' is a file of samples, and none are taken (--stacks)",
				     opts->output);
	return -1;
}
