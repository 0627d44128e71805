// SPDX-License-Identifier: BSD-2-Clause
/* The daemon's options: on its command line, and below [daemon] in the configuration file. */
#include <stdlib.h>
#include <string.h>

#include "cmd/daemon/daemon.h"
#include "cmd/daemon/watch/triggers.h"
#include "kprof/dynolog.h"

#define MIB (1ull << 20)
#define GIB (1ull << 30)
#define SECOND_NS 1000000000ull

#define OPT(FIELD) OPTION_FIELD(struct daemon_opts, FIELD)

static int check_overhead(const struct command *c, void *opts, const char *text)
{
	double share;

	if (value_percent(text, &share) && share <= 1 && share >= 0.001)
		return -1;
	return message_usage(c->name, "--max-overhead: '%s' is no share such as 1%% (0.1 … 100)",
			     text);
}

static int check_triggers(const struct command *c, void *opts, const char *text)
{
	struct value_list list = {0};
	struct trigger_rule rule;
	int code = -1;

	value_list_split(&list, text);
	for (size_t i = 0; i < list.nr && code < 0; i++)
		if (!trigger_parse(list.items[i], &rule))
			code = message_usage(
				c->name,
				"--trigger: '%s' is no rule (step>500ms, step>p99*1.5, "
				"gpu-idle>50%%, runnable>20%%, mark:NAME, call:NAME, "
				"signal, signal:SEGV+KILL, asked:URG (or WINCH, CONT), oom, "
				"kmsg:GLOB)",
				list.items[i]);
	value_list_free(&list);
	return code;
}

static int check_path(const struct command *c, void *opts, const char *text)
{
	if (text[0] == '/' && strlen(text) < DAEMON_PATH_BYTES / 2)
		return -1;
	return message_usage(c->name, "'%s' is no absolute path", text);
}

static const struct option_choice engines[] = {{"auto", KINETO_ENGINE_AUTO},
					       {"kineto", KINETO_ENGINE_KINETO},
					       {"kprof", KINETO_ENGINE_KPROF},
					       {0}};

/* clang-format off */
const struct option_row daemon_options[] = {
	{.name = "state", .kind = OPTION_TEXT, OPT(state), .check = check_path,
	 .argument = "FOLDER", .words = "<file>",
	 .help = "what is recorded goes there (/var/lib/kprof)"},
	{.name = "socket", .kind = OPTION_TEXT, OPT(socket), .check = check_path,
	 .argument = "PATH", .words = "<file>",
	 .help = "where `kprof ctl` asks (" KPROF_DAEMON_SOCKET ")"},
	{.name = "group", .kind = OPTION_TEXT, OPT(group), .argument = "GROUP",
	 .help = "its members may have any process recorded, as root may (kprof, if there is one)"},
	{.name = "allow-owner", .kind = OPTION_FLAG, OPT(allow_owner),
	 .help = "whoever owns a process may have it recorded, and the process itself may"},
	{.name = "no-sampling", .kind = OPTION_FLAG, OPT(no_sampling),
	 .help = "record nothing until asked"},
	{.name = "frequency", .letter = 'F', .kind = OPTION_NUMBER, OPT(hz), .least = 1,
	 .most = 1000, .argument = "HZ", .wrong = "frequency (1 … 1000 samples a second)",
	 .help = "how often to look at what each CPU does (19)"},
	{.name = "min-wait", .kind = OPTION_DURATION, OPT(min_wait_ns), .argument = "TIME",
	 .help = "sample waits, too, of at least so long (10ms; 0: none)"},
	{.name = "user", .kind = OPTION_LIST, OPT(chosen.users), .argument = "USERS",
	 .wrong = "list of users", .help = "sample, and watch, only processes of these users"},
	{.name = "cgroup", .kind = OPTION_LIST, OPT(chosen.cgroups), .argument = "GLOBS",
	 .wrong = "list of cgroups, containers or pods",
	 .help = "sample, and watch, only those in these cgroups, by path, container or pod id"},
	{.name = "comm", .kind = OPTION_LIST, OPT(chosen.comms), .argument = "GLOBS",
	 .wrong = "list of names of processes",
	 .help = "sample only those with these names: 'python*'"},
	{.name = "exclude-user", .kind = OPTION_LIST, OPT(chosen.exclude_users),
	 .argument = "USERS", .wrong = "list of users", .help = "sample, and watch, none of these users"},
	{.name = "exclude-cgroup", .kind = OPTION_LIST, OPT(chosen.exclude_cgroups),
	 .argument = "GLOBS", .wrong = "list of cgroups, containers or pods",
	 .help = "sample, and watch, none in these cgroups"},
	{.name = "exclude-comm", .kind = OPTION_LIST, OPT(chosen.exclude_comms), .argument = "GLOBS",
	 .wrong = "list of names of processes", .help = "sample, and watch, none with these names"},
	{.name = "record-cmdline", .kind = OPTION_FLAG, OPT(record_cmdline),
	 .help = "record command lines, too, with passwords that are in them; without: names of "
		 "programs only"},
	{.name = "chunk", .kind = OPTION_DURATION, OPT(chunk_ns), .least = SECOND_NS,
	 .argument = "TIME", .help = "how much one capture of samples holds (1m)"},
	{.name = "keep", .kind = OPTION_DURATION, OPT(keep_ns), .argument = "TIME",
	 .help = "samples are removed when they are older (24h)"},
	{.name = "keep-bytes", .kind = OPTION_SIZE, OPT(keep_bytes), .least = MIB,
	 .most = UINT64_MAX, .argument = "SIZE", .wrong = "size (1M …)",
	 .help = "… and when there are more (1G)"},
	{.name = "watch", .kind = OPTION_LIST, OPT(watch), .argument = "GLOBS",
	 .wrong = "list of names of processes",
	 .help = "the flight recorder: what processes with these names (instead of --comm) did last "
		 "is kept in full detail, for `kprof ctl dump`; default: none"},
	{.name = "flight", .kind = OPTION_DURATION, OPT(flight_ns), .least = SECOND_NS,
	 .argument = "TIME", .help = "… so much of it (60s)"},
	{.name = "flight-bytes", .kind = OPTION_SIZE, OPT(flight_bytes), .least = MIB,
	 .most = UINT64_MAX, .argument = "SIZE", .wrong = "size (1M …)",
	 .help = "… and at most so many bytes (512M)"},
	{.name = "flight-chunk", .kind = OPTION_DURATION, OPT(flight_chunk_ns),
	 .least = SECOND_NS / 2, .argument = "TIME",
	 .help = "… in captures of so much each (5s)"},
	{.name = "trigger", .kind = OPTION_LIST, OPT(triggers), .check = check_triggers,
	 .argument = "RULES", .wrong = "list of rules",
	 .help = "… and dumped when one of these is met: step>500ms, step>p99*1.5, gpu-idle>50%, "
		 "runnable>20%, mark:NAME, call:NAME, signal (that ended one of them; all but those "
		 "that ask for an end), signal:SEGV+KILL, asked:URG (its owner or root sends it that), "
		 "oom, kmsg:GLOB"},
	{.name = "trigger-pause", .kind = OPTION_DURATION, OPT(trigger_pause_ns),
	 .argument = "TIME", .help = "… but by each rule not sooner than this after its last dump (60s)"},
	{.name = "device-window", .kind = OPTION_DURATION, OPT(device_window_ns),
	 .argument = "TIME",
	 .help = "record what GPUs do, for so long now and then; default: never. Nothing is put into "
		 "processes: kernels are seen of those that were started with "
		 "CUDA_INJECTION64_PATH, calls of all" },
	{.name = "device-every", .kind = OPTION_DURATION, OPT(device_every_ns),
	 .least = SECOND_NS, .argument = "TIME",
	 .help = "… so often, at random times; less often where it costs more than its share (60s)"},
	{.name = "device-comm", .kind = OPTION_LIST, OPT(device_comms), .argument = "GLOBS",
	 .wrong = "list of names of processes", .help = "… only of processes with these names"},
	{.name = "device-inject", .kind = OPTION_FLAG, OPT(device_inject),
	 .help = "… and put the agent into those that use a GPU and have none: once, it stays there "
		 "and sleeps between"},
	PUSH_OPTIONS(struct daemon_opts, push),
	{.name = "dynolog", .kind = OPTION_FLAG, OPT(dynolog),
	 .help = "serve what dynolog's daemon serves: processes started with KINETO_USE_DAEMON, and "
		 "dyno's port"},
	{.name = "dynolog-folder", .kind = OPTION_LIST, OPT(dynolog_folders), .argument = "FOLDERS",
	 .wrong = "list of folders",
	 .help = "… with a socket in each of these, too, for KINETO_IPC_SOCKET_DIR in containers"},
	{.name = "dyno-port", .kind = OPTION_NUMBER, OPT(dyno_port), .most = 65535,
	 .argument = "PORT", .wrong = "port (0: none)",
	 .help = "… for dyno at this port (1778; 0: none)"},
	{.name = "dyno-address", .kind = OPTION_LIST, OPT(dyno_addresses), .argument = "ADDRESSES",
	 .wrong = "list of IP addresses",
	 .help = "… of these addresses; who reaches them may record any process (::1,127.0.0.1)"},
	{.name = "engine", .kind = OPTION_CHOICE, OPT(engine), .choices = engines,
	 .argument = "WHO",
	 .help = "who records what dyno means: kineto inside of the process; kprof from outside; "
		 "auto: Kineto where it asks for configs, else kprof (default)"},
	{.name = "trace-folder", .kind = OPTION_LIST, OPT(trace_folders), .argument = "FOLDERS",
	 .wrong = "list of folders",
	 .help = "… and their traces have to lie below one of these (/tmp)"},
	{.name = "listen", .kind = OPTION_LIST, OPT(listen), .argument = "ADDRESSES",
	 .wrong = "list of addresses with ports",
	 .help = "serve /metrics at these: 0.0.0.0:11778 (127.0.0.1:11778,[::1]:11778)"},
	{.name = "no-listen", .kind = OPTION_FLAG, OPT(no_listen),
	 .help = "serve nothing by HTTP"},
	{.name = "metrics-anyone", .kind = OPTION_FLAG, OPT(metrics_anyone),
	 .help = "/metrics needs no token, also on addresses that other machines reach"},
	{.name = "web", .kind = OPTION_FLAG, OPT(web),
	 .help = "serve a page to look at, too, with the token"},
	{.name = "page-anyone", .kind = OPTION_FLAG, OPT(page_anyone),
	 .help = "… without the token, to all users of this machine"},
	{.name = "web-token-file", .kind = OPTION_TEXT, OPT(web_token_file), .check = check_path,
	 .argument = "FILE", .words = "<file>",
	 .help = "has the token; made if it is not there (web-token, in the state folder)"},
	{.name = "web-host", .kind = OPTION_LIST, OPT(web_hosts), .argument = "NAMES",
	 .wrong = "list of names",
	 .help = "clients may call it by these names, besides localhost and addresses"},
	{.name = "web-perfetto", .kind = OPTION_TEXT, OPT(web_perfetto), .argument = "ORIGIN",
	 .help = "where the page opens traces (https://ui.perfetto.dev)"},
	{.name = "max-overhead", .kind = OPTION_TEXT, OPT(max_overhead), .check = check_overhead,
	 .argument = "PERCENT",
	 .help = "what all that is recorded without being asked for may cost, of the machine's busy "
		 "CPU time (1%)"},
	{.name = "max-memory", .kind = OPTION_SIZE, OPT(max_memory), .least = 32 * MIB,
	 .most = UINT64_MAX, .argument = "SIZE", .wrong = "size (32M …)",
	 .help = "what that may take, in processes and in the kernel (250M)"},
	{.name = "min-free", .kind = OPTION_SIZE, OPT(min_free), .most = UINT64_MAX,
	 .argument = "SIZE", .wrong = "size",
	 .help = "so much of the disk stays free: what is oldest is removed before (512M)"},
	{.name = "keep-recordings", .kind = OPTION_DURATION, OPT(keep_recordings_ns),
	 .argument = "TIME", .help = "recordings on demand are removed when they are older (7d)"},
	{.name = "recordings-bytes", .kind = OPTION_SIZE, OPT(recordings_bytes), .least = MIB,
	 .most = UINT64_MAX, .argument = "SIZE", .wrong = "size (1M …)",
	 .help = "… and when there are more (4G)"},
	{.name = "longest", .kind = OPTION_DURATION, OPT(longest_ns), .least = SECOND_NS,
	 .argument = "TIME", .help = "a recording on demand ends after so long (1h)"},
	{.name = "config", .kind = OPTION_CONFIG, OPT(config), .value = 1, .argument = "FILE",
	 .words = "<file>", .only_given = true,
	 .help = "its part [daemon] has options, instead of that in " CONFIG_PATH},
	{.name = "verbose", .letter = 'v', .kind = OPTION_FLAG, OPT(message.verbose),
	 .help = "say what is being done"},
	{0},
};
/* clang-format on */

int daemon_opts_parse(const struct command *c, int argc, char **argv, struct daemon_opts *opts)
{
	int first, code;

	*opts = (struct daemon_opts){
		.state = "/var/lib/kprof",
		.socket = KPROF_DAEMON_SOCKET,
		.hz = 19,
		.min_wait_ns = 10 * SECOND_NS / 1000,
		.chunk_ns = 60 * SECOND_NS,
		.keep_ns = 24 * 3600 * SECOND_NS,
		.keep_bytes = GIB,
		.flight_ns = 60 * SECOND_NS,
		.flight_bytes = 512 * MIB,
		.flight_chunk_ns = 5 * SECOND_NS,
		.trigger_pause_ns = 60 * SECOND_NS,
		.device_every_ns = 60 * SECOND_NS,
		.dyno_port = KPROF_DYNOLOG_PORT,
		.overhead = 0.01,
		.max_memory = 250 * MIB,
		.min_free = 512 * MIB,
		.keep_recordings_ns = 7 * 24 * 3600 * SECOND_NS,
		.recordings_bytes = 4 * GIB,
		.longest_ns = 3600 * SECOND_NS,
	};
	code = options_parse(c, argc, argv, opts, &first);
	if (code >= 0)
		return code;
	if (first < argc)
		return message_usage(c->name, "'%s' is no option", argv[first]);
	if (opts->device_window_ns > opts->device_every_ns / 2)
		return message_usage(c->name, "--device-window: at most half of --device-every");
	if (opts->max_overhead)
		value_percent(opts->max_overhead, &opts->overhead);
	if (!opts->trace_folders.nr && !value_list_add(&opts->trace_folders, "/tmp", 4))
		return message_no_memory();
	return chosen_find_users(c, &opts->chosen);
}

void daemon_opts_free(const struct command *c, struct daemon_opts *opts)
{
	options_free(c, opts);
	chosen_free(&opts->chosen);
}
