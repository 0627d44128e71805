// SPDX-License-Identifier: BSD-2-Clause
/*
 * The table of records. The number of a kind is never used for another one. A newer minor version
 * may only add kinds of records, and fields at the end of a record in a chunk of tables. In a
 * record, numbers come before texts.
 */
#include "store/records.h"

#define FIELD_AT(record, member) \
	.offset = offsetof(struct record, member), .bytes = sizeof(((struct record *)0)->member)
/* After of_what come the field's name and, if need be, its note. */
#define FIELD(member, how, of_what, ...)                                          \
	{                                                                         \
		FIELD_AT(store_record, member), .coding = (how), .of = (of_what), \
						.name = __VA_ARGS__               \
	}
#define NUMBER(member, ...) FIELD(member, FIELD_PLAIN, STORE_REF_NONE, __VA_ARGS__)
#define CODED(member, coding, ...) FIELD(member, coding, STORE_REF_NONE, __VA_ARGS__)
#define TEXT(member, coding, ...) FIELD(member, coding, RECORD_OF_TEXT, __VA_ARGS__)
/* A time of the monotonic clock, which a copy may show on another clock. */
#define TIME_AS(member, how, of_cursor, of_what, ...)                                              \
	{                                                                                          \
		FIELD_AT(store_record, member), .coding = (how), .cursor = (of_cursor),            \
						.of = (of_what), .time = true, .name = __VA_ARGS__ \
	}
#define TIME(member, ...) TIME_AS(member, FIELD_PLAIN, 0, STORE_REF_NONE, __VA_ARGS__)
#define REF(member, description, ...) \
	FIELD(member, FIELD_PLAIN, STORE_REF_##description, __VA_ARGS__)
#define DEFINES(member, description, ...)                                           \
	{                                                                           \
		FIELD_AT(store_record, member), .coding = FIELD_PLAIN,              \
						.defines = STORE_REF_##description, \
						.name = __VA_ARGS__                 \
	}
/*
 * A field stored as the difference from its cursor: the value of the latest field with the same
 * cursor, in this record or in the previous one of its kind.
 */
#define DELTA(member, of_cursor, of_what, ...)                                                     \
	{                                                                                          \
		FIELD_AT(store_record, member), .coding = FIELD_SINCE_LAST, .cursor = (of_cursor), \
						.of = (of_what), .name = __VA_ARGS__               \
	}

#define TABLES STORE_CHUNK_TABLES
#define EVENTS STORE_CHUNK_EVENTS
#define DETAILS STORE_CHUNK_DETAILS

/* One field per line, which clang-format would not keep. */
/* clang-format off */

/*
 * In details, the fields that differ from row to row come first, and those that mostly repeat come
 * last, next to the attributes, so that zstd finds one long repetition. An activity starts soon
 * after the one before it has ended: therefore both times have the same cursor.
 */
const struct record_kind record_kinds[RECORD_KINDS_MAX] = {
	[STORE_META] = {"META", TABLES, 0, {
		TEXT(meta.key, FIELD_NAME, "key"),
		TEXT(meta.json, FIELD_TEXT, "JSON value", "nothing checks it"),
	}, "A later one of the same key replaces it"},
	[STORE_STRING] = {"STRING", TABLES, 0, {
		DEFINES(string.id, STRING, "id"),
		TEXT(string.bytes, FIELD_BYTES, "bytes up to the record's end",
			"any but NUL, not always UTF-8"),
	}, "A text, written once"},
	[STORE_PROCESS] = {"PROCESS", TABLES, 0, {
		REF(process.pid, PID, "PID"),
		REF(process.ppid, TASK, "parent's PID"),
		NUMBER(process.ns_pid, "PID in its own PID namespace", "0: the same"),
		REF(process.comm, STRING, "name"),
		REF(process.cmdline, STRING, "command line"),
		TIME(process.start_ns, "start", "mono: when the process was first seen"),
		TIME(process.exit_ns, "exit", "mono; 0: alive at the end"),
	}, "A later one of the same PID and start replaces it"},
	[STORE_THREAD] = {"THREAD", TABLES, 0, {
		DEFINES(thread.index, THREAD, "index"),
		REF(thread.pid, PID, "PID"),
		REF(thread.tid, TASK, "TID"),
		REF(thread.name, STRING, "name"),
		TIME(thread.start_ns, "start"),
		TIME(thread.exit_ns, "exit"),
	}, "A later one of the same index replaces it"},
	[STORE_DESCRIPTION] = {"DESCRIPTION", TABLES, 0, {
		DEFINES(description.id, DESCRIPTION, "id"),
		REF(description.name, STRING, "name"),
		REF(description.overload, STRING, "overload"),
		REF(description.category, STRING, "category"),
		REF(description.source, SOURCE, "source"),
		NUMBER(description.flags, "flags", "8: its name could not be read"),
	}, "An event description: what a span is"},
	[STORE_BEGIN] = {"BEGIN", EVENTS, 0, {
		TIME(begin.time_ns, "time"),
		REF(begin.thread, THREAD, "thread"),
		REF(begin.description, DESCRIPTION, "DESCRIPTION"),
	}, "Opens a span of the thread"},
	[STORE_END] = {"END", EVENTS, 0, {
		TIME(end.time_ns, "time"),
		REF(end.thread, THREAD, "thread"),
		NUMBER(end.flags, "flags", "1: the end was not seen exactly; 16: the call's result was seen"),
	}, "Closes the thread's innermost open span"},
	[STORE_GAP] = {"GAP", TABLES, 0, {
		REF(gap.pid, PID_OR_ALL, "PID", "0: of all processes"),
		REF(gap.what, STRING, "what was not seen"),
		REF(gap.reason, STRING, "reason"),
		TIME(gap.start_ns, "start", "mono"),
		TIME(gap.end_ns, "end", "mono"),
	}, "A stretch of time in which something was not seen"},
	[STORE_SOURCE] = {"SOURCE", TABLES, 0, {
		DEFINES(source.index, SOURCE, "index"),
		REF(source.name, STRING, "name"),
		NUMBER(source.fired, "fired"),
		NUMBER(source.captured, "captured"),
		NUMBER(source.dropped, "dropped"),
		NUMBER(source.missed, "missed"),
		NUMBER(source.begins, "begins"),
		NUMBER(source.ends_exact, "exact ends"),
		NUMBER(source.ends_closed, "closed ends"),
		NUMBER(source.orphan_ends, "orphan ends"),
	}, "Cumulative counts: the last one of an index holds"},
	[STORE_CLOCK] = {"CLOCK", TABLES, 0, {
		TIME(clock.mono_ns, "mono"),
		NUMBER(clock.real_ns, "Unix time in ns"),
	}, "Both are read at the same moment"},
	[STORE_FINISH] = {"FINISH", TABLES, 0, {
		TIME(finish.time_ns, "end of the recording", "mono"),
	}, "The last record of a complete capture, in a chunk of its own"},
	[STORE_ARGS] = {"ARGS", DETAILS, 1, {
		DELTA(args.span, 1, STORE_REF_SPAN, "number of the span"),
	}, "Attributes of a span; several records of one span add up"},
	[STORE_ACTIVITY] = {"ACTIVITY", DETAILS, 1, {
		TIME_AS(activity.start_ns, FIELD_SINCE_LAST, 1, RECORD_OF_TIME63, "start",
			"mono"),
		TIME_AS(activity.queued_ns, FIELD_UNTIL_PREV, 0, RECORD_OF_TIME63, "queued",
			"mono"),
		TIME_AS(activity.end_ns, FIELD_SINCE_LAST, 1, STORE_REF_NONE, "end", "mono"),
		DELTA(activity.correlation, 2, STORE_REF_NONE, "correlation", "0: none"),
		REF(activity.name, STRING, "name"),
		NUMBER(activity.type, "type"),
		NUMBER(activity.stream, "stream"),
		NUMBER(activity.context, "context"),
		NUMBER(activity.device, "device"),
		REF(activity.pid, PID, "PID"),
	}, "Work of a device, or the like; not ordered by time"},
	[STORE_API] = {"API", DETAILS, 1, {
		TIME_AS(api.start_ns, FIELD_SINCE_LAST, 1, STORE_REF_NONE, "start", "mono"),
		TIME_AS(api.end_ns, FIELD_SINCE_PREV, 0, STORE_REF_NONE, "end", "mono"),
		DELTA(api.correlation, 2, STORE_REF_NONE, "correlation", "0: none"),
		REF(api.name, STRING, "name"),
		NUMBER(api.type, "type"),
		REF(api.thread, THREAD, "thread"),
	}, "A device call as the device's tool interface saw it"},
	[STORE_INSTANT] = {"INSTANT", DETAILS, 1, {
		TIME_AS(instant.time_ns, FIELD_SINCE_LAST, 1, STORE_REF_NONE, "time", "mono"),
		REF(instant.thread, THREAD, "thread"),
		REF(instant.description, DESCRIPTION, "DESCRIPTION"),
	}, "A moment on a thread"},
	[STORE_COUNTER] = {"COUNTER", DETAILS, 1, {
		TIME_AS(counter.time_ns, FIELD_SINCE_LAST, 1, STORE_REF_NONE, "time", "mono"),
		CODED(counter.value, FIELD_SIGNED, "value"),
		REF(counter.name, STRING, "name"),
		REF(counter.pid, PID, "PID"),
		NUMBER(counter.device, "device", "2³²−1: the value is of the process"),
	}, "A value that holds from its time on"},
	[STORE_MODULE] = {"MODULE", TABLES, 2, {
		DEFINES(module.id, MODULE, "id"),
		NUMBER(module.kind, "kind", "0 file, 1 kernel, 2 vDSO, 3 JIT code"),
		REF(module.path, STRING, "path"),
		REF(module.build_id, STRING, "build id", "in hex"),
	}, "A file or region that code lies in"},
	[STORE_FRAME] = {"FRAME", TABLES, 2, {
		DEFINES(frame.id, FRAME, "id"),
		NUMBER(frame.kind, "kind", "1 native, 2 Python, 3 kernel"),
		REF(frame.module, MODULE, "module", "0: not known"),
		NUMBER(frame.address, "address"),
		REF(frame.op, STRING, "operator"),
		NUMBER(frame.nr_lines, "number of lines", "at most 64"),
		TEXT(frame.lines, FIELD_LINES, "lines"),
	}, "A place in code; a later one of the same id replaces it"},
	[STORE_STACK] = {"STACK", TABLES, 2, {
		DEFINES(stack.id, STACK, "id"),
		REF(stack.parent, STACK, "parent", "0: none"),
		REF(stack.frame, FRAME, "frame"),
	}, "A frame and the stack that it was called from"},
	[STORE_SAMPLE] = {"SAMPLE", DETAILS, 2, {
		TIME_AS(sample.time_ns, FIELD_SINCE_LAST, 1, STORE_REF_NONE, "time", "mono"),
		REF(sample.thread, THREAD, "thread"),
		DELTA(sample.stack, 2, STORE_REF_STACK, "stack", "0: not known"),
		NUMBER(sample.weight_ns, "weight in ns", "the time that the sample counts for"),
		NUMBER(sample.flags, "flags"),
	}, "The stack of a thread at a moment"},
	[STORE_THREAD_NAME] = {"THREAD_NAME", TABLES, 3, {
		REF(thread_name.thread, THREAD, "thread"),
		REF(thread_name.name, STRING, "name",
			"what its language calls it: Python's `threading.Thread`"),
	}, "A later one of the same thread replaces it"},
	[STORE_WAIT] = {"WAIT", DETAILS, 4, {
		TIME_AS(wait.start_ns, FIELD_SINCE_LAST, 1, STORE_REF_NONE, "start", "mono: it left the CPU"),
		TIME_AS(wait.wake_ns, FIELD_SINCE_PREV, 0, STORE_REF_NONE, "woken", "mono: it could go on"),
		TIME_AS(wait.end_ns, FIELD_SINCE_PREV, 0, STORE_REF_NONE, "end", "mono: it got a CPU"),
		REF(wait.thread, THREAD, "thread"),
		DELTA(wait.stack, 2, STORE_REF_STACK, "stack", "0: not taken"),
		NUMBER(wait.call, "system call", "its number + 1; 0: in none"),
		REF(wait.object, STRING, "what the call's file is"),
		NUMBER(wait.flags, "flags"),
		REF(wait.waker_pid, TASK, "waker's PID", "0: not seen"),
		REF(wait.waker_tid, TASK, "waker's TID"),
		REF(wait.waker_comm, STRING, "waker's name"),
		REF(wait.waker_stack, STACK, "waker's stack", "0: not taken"),
		NUMBER(wait.left_cpu, "CPU that it left", "its number + 1; 0: not seen"),
		NUMBER(wait.got_cpu, "CPU that it got", "the same"),
		NUMBER(wait.waker_cpu, "CPU on which it was woken", "the same"),
	}, "A thread was off the CPU"},
	[STORE_THREAD_TIME] = {"THREAD_TIME", TABLES, 4, {
		REF(thread_time.thread, THREAD, "thread"),
		TIME(thread_time.start_ns, "start", "mono"),
		TIME(thread_time.end_ns, "end", "mono"),
		NUMBER(thread_time.on_ns, "ns on a CPU"),
		NUMBER(thread_time.runnable_ns, "ns runnable"),
		NUMBER(thread_time.blocked_ns, "ns blocked"),
		NUMBER(thread_time.switches, "times that it left a CPU"),
		NUMBER(thread_time.told, "waits with a record"),
	}, "A later one of the same thread replaces it"},
	[STORE_OWNER] = {"OWNER", TABLES, 4, {
		REF(owner.pid, PID, "PID"),
		TIME(owner.start_ns, "start", "that of the PROCESS"),
		NUMBER(owner.uid, "effective user id"),
		REF(owner.user, STRING, "user", "the name in the machine's /etc/passwd; 0: none"),
		REF(owner.cgroup, STRING, "cgroup", "its path; 0: not known"),
	}, "Whose a process is. A later one of the same PID and start replaces it"},
	[STORE_NN_MODULE] = {"NN_MODULE", TABLES, 4, {
		REF(nn_module.description, DESCRIPTION, "DESCRIPTION"),
		NUMBER(nn_module.number, "number", "among those of its class in its process, from 0"),
		REF(nn_module.class_name, STRING, "class"),
		REF(nn_module.path, STRING, "path", "of attributes, from the outermost module on; 0: not known"),
		REF(nn_module.outermost, STRING, "outermost module", "its class and number"),
	}, "Spans of this description are calls of a module of PyTorch. A later one replaces it"},
	[STORE_THREAD_WINDOW] = {"THREAD_WINDOW", TABLES, 5, {
		REF(thread_window.thread, THREAD, "thread"),
		TIME(thread_window.start_ns, "start", "mono"),
		TIME(thread_window.end_ns, "end", "mono"),
	}, "When a thread was recorded, where that is not all of the capture's time. A later one of the same thread replaces it"},
	[STORE_PYTHON_FRAME] = {"PYTHON_FRAME", TABLES, 6, {
		REF(python_frame.frame, FRAME, "FRAME"),
		NUMBER(python_frame.first_line, "first line", "of its function"),
		NUMBER(python_frame.instr, "instruction", "its offset in bytes"),
		NUMBER(python_frame.flags, "flags", "1: of a generator or coroutine"),
		NUMBER(python_frame.loop, "loop",
			"begin of the outermost loop around the instruction, in bytes, and 1; 0: it is in none"),
	}, "Where in its function a frame of Python is. A later one of the same frame replaces it"},
	[STORE_PROCESS_EXIT] = {"PROCESS_EXIT", TABLES, 7, {
		REF(process_exit.pid, PID, "PID"),
		TIME(process_exit.start_ns, "start", "that of the PROCESS"),
		NUMBER(process_exit.status, "status",
			"as from wait(2): its exit status times 256, or the signal that ended it, + 128 with a core dump"),
	}, "How a process ended. Comes before the PROCESS that says when"},
	[STORE_EXECUTABLE] = {"EXECUTABLE", TABLES, 8, {
		REF(executable.pid, PID, "PID"),
		TIME(executable.start_ns, "start", "that of the PROCESS"),
		REF(executable.path, STRING, "path", "of the file, in the process's mounts"),
	}, "What a process runs. A later one of the same PID and start replaces it"},
};

#define LINE(member, of_what, ...)                                                                \
	{                                                                                         \
		FIELD_AT(store_line, member), .coding = FIELD_PLAIN,                              \
			.of = STORE_REF_##of_what, .name = __VA_ARGS__                            \
	}

const struct record_field record_line_fields[] = {
	LINE(function, STRING, "function"),
	LINE(file, STRING, "file"),
	LINE(line, NONE, "line", "0: not known"),
	LINE(flags, NONE, "flags", "0 so far"),
	{0},
};

const struct attr_kind record_attrs[] = {
	[STORE_ATTR_U64] = {STORE_REF_NONE, "unsigned number: varint"},
	[STORE_ATTR_I64] = {STORE_REF_NONE, "signed number: zigzag"},
	[STORE_ATTR_HEX] = {STORE_REF_NONE, "address: varint"},
	[STORE_ATTR_STRING] = {STORE_REF_STRING, "string"},
	[STORE_ATTR_DOUBLE] =
		{STORE_REF_NONE,
		 "IEEE double: a varint of its eight bytes in big-endian order read as a little-endian number (round "
		 "numbers are short)"},
	[STORE_ATTR_DIM3] = {STORE_REF_NONE,
			     "three dimensions: three varints, below 2³², 2¹⁶, 2¹⁶"},
	[STORE_ATTR_JSON] = {STORE_REF_STRING,
			     "string that is JSON (nothing checks it)"},
	[STORE_ATTR_STACK] = {STORE_REF_STACK, "stack: its id, 0 for none (since 1.2)"},
	[STORE_ATTR_COUNT] = {STORE_REF_NONE,
			      "what a span had of the counter that its key names: varint (since 1.4)"},
};

/* clang-format on */
