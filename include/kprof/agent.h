/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The interface between the agent in a target (gpu/) and kprof (user/capture): a memory file that
 * both map, and the records that the agent hands over.
 *
 * The agent makes a memfd named KPROF_AGENT_SHM_NAME when it is loaded, and maps it; kprof finds
 * the mapping in /proc/PID/maps and maps the same file. kprof writes commands into its head and
 * wakes the agent's thread (futex on .command, not private); the agent answers by changing .state.
 * While a session records, kprof writes the time into .heartbeat_ns at least four times a second;
 * an agent that has not seen this time change for a second goes inert: it disables every activity,
 * releases CUPTI, and ends its thread (KPROF_AGENT_OPT_WINDOW: that waits for another kprof). The
 * kprof that uses an agent holds a lock (flock) on the file.
 *
 * Records are collected in slots of that file, one per writing thread, so that kprof can still read
 * what a dying target had collected. A full slot, or one older than 100 ms, is handed over by
 * calling kprof_agent_batch(const void *data, uint32_t bytes), an exported function that does
 * nothing: kprof's probe on its entry copies the bytes into the ring buffer (KPROF_WIRE_BATCH).
 * After the call the slot is empty again.
 *
 * Fixed numbers, explicit padding, no pointers. Times: CLOCK_MONOTONIC, ns. A field is never
 * renumbered, only added.
 */
#ifndef KPROF_AGENT_H
#define KPROF_AGENT_H

#include "kprof/wire.h"
#include "kprof/within.h"

#define KPROF_AGENT_MAGIC 0x4147504bu /* "KPGA" */
#define KPROF_AGENT_VERSION 1
#define KPROF_AGENT_SHM_NAME "kprof-agent-shm"  /* in maps: /memfd:kprof-agent-shm (deleted) */
#define KPROF_AGENT_LIBRARY "libkprof_agent.so" /* file, or memfd of this name when injected */
#define KPROF_AGENT_LIBRARIES KPROF_AGENT_LIBRARY " memfd:" KPROF_AGENT_LIBRARY /* both */
#define KPROF_AGENT_BATCH_SYMBOL "kprof_agent_batch"
/*
 * int kprof_agent_start(void): makes the memfd and starts the agent's thread, unless they exist
 * already. Returns 0 or a negative errno.
 */
#define KPROF_AGENT_START_SYMBOL "kprof_agent_start"

enum kprof_agent_command {
	KPROF_AGENT_REST = 0, /* nothing is enabled; the thread waits */
	/* record what .types and .options select, as session number .session */
	KPROF_AGENT_RECORD = 1,
	KPROF_AGENT_LEAVE = 2, /* release CUPTI, free what can be freed, end the agent's thread */
	/*
	 * Release CUPTI; the thread sleeps until the next command, however long that takes, in the
	 * state LOADED. An agent that does not know it rests, and leaves.
	 */
	KPROF_AGENT_STAND_BY = 3,
};

enum kprof_agent_state {
	/* waits for a command, or until the process loads a device runtime */
	KPROF_AGENT_LOADED = 0,
	KPROF_AGENT_RECORDING = 1, /* records session .recording */
	KPROF_AGENT_RESTING = 2,   /* everything of the last session has been handed over */
	KPROF_AGENT_LEFT = 3,      /* inert: the agent's thread has ended */
	KPROF_AGENT_FAILED = 4,    /* see .reason and .detail; nothing is enabled */
};

/* Why the device's activities cannot be recorded: printed on stderr, and kept in the metadata. */
enum kprof_agent_reason {
	KPROF_AGENT_OK = 0,
	KPROF_AGENT_NO_RUNTIME = 1,    /* the process has not loaded a device runtime (yet) */
	KPROF_AGENT_NO_CUPTI = 2,      /* no libcupti was found */
	KPROF_AGENT_BAD_VERSION = 3,   /* a release of CUPTI that this agent does not know */
	KPROF_AGENT_BUSY = 4,          /* CUPTI has another subscriber (Kineto, Nsight, DCGM) */
	KPROF_AGENT_NO_PERMISSION = 5, /* CUPTI_ERROR_INSUFFICIENT_PRIVILEGES */
	KPROF_AGENT_NO_DRIVER = 6,     /* no driver, or one that is too old */
	KPROF_AGENT_NO_MEMORY = 7,
	KPROF_AGENT_OTHER = 8,
	KPROF_AGENT_REASONS, /* the number of reasons */
};

#define KPROF_AGENT_OPT_SYNC 1u   /* synchronization records (--cuda-sync) */
#define KPROF_AGENT_OPT_MEMORY 2u /* allocations and releases of device memory (--cuda-memory) */
#define KPROF_AGENT_OPT_TICKS 4u /* the clock is the time stamp counter: SPANS may have its ticks */
#define KPROF_AGENT_OPT_METRICS 8u   /* measure .metrics (--metrics) */
#define KPROF_AGENT_OPT_INPUTS 16u   /* the inputs of operators (--shapes), as .layout says */
#define KPROF_AGENT_OPT_SEQUENCE 32u /* their sequence numbers (--flow), the same */
#define KPROF_AGENT_OPT_WITHIN 64u   /* only inside of annotations of the name .within */
/*
 * A session of seconds, one of many: another kprof waits for its end; and if the kprof that asked
 * dies, the agent stands by, as after KPROF_AGENT_STAND_BY.
 */
#define KPROF_AGENT_OPT_WINDOW 128u
/* Bits 1 << at::RecordScope of the scopes that are observed in PyTorch. */
#define KPROF_AGENT_OPT_SCOPES(bits) ((bits) << 16)

/* What --metrics may ask for. */
#define KPROF_AGENT_METRICS 24         /* metrics at most, */
#define KPROF_AGENT_METRICS_BYTES 2048 /* in so many bytes with commas and a NUL */

/* How it stands with metrics, in .metrics_state. */
enum kprof_agent_metrics {
	KPROF_AGENT_METRICS_NONE = 0,    /* they were not asked for, or the agent knows of none */
	KPROF_AGENT_METRICS_WAIT = 1,    /* for the process to make a context */
	KPROF_AGENT_METRICS_MEASURE = 2, /* on at least one device */
	KPROF_AGENT_METRICS_FAIL = 3,    /* on a device: see .metrics_reason, .metrics_detail */
};

/* Why metrics cannot be measured. */
enum kprof_agent_metrics_reason {
	KPROF_AGENT_METRICS_OK = 0,
	KPROF_AGENT_METRICS_OLD = 1,        /* CUPTI before CUDA 12.6 */
	KPROF_AGENT_METRICS_UNKNOWN = 2,    /* the device has no such metric */
	KPROF_AGENT_METRICS_PASSES = 3,     /* they need several passes over the same work */
	KPROF_AGENT_METRICS_PERMISSION = 4, /* CUPTI_ERROR_INSUFFICIENT_PRIVILEGES */
	KPROF_AGENT_METRICS_BUSY = 5,       /* the device's counters are in use */
	KPROF_AGENT_METRICS_LIBRARY = 6,    /* libnvperf_host is not there */
	KPROF_AGENT_METRICS_CONTEXT = 7,    /* the program has destroyed the context */
	KPROF_AGENT_METRICS_OTHER = 8,
	KPROF_AGENT_METRICS_REASONS,
};

/* Where PyTorch's objects have what is read of them; offsets in bytes. */
struct kprof_agent_layout {
	/*
	 * RecordFunction: address of its inputs (IValue), and their number; before these is its
	 * sequence number.
	 */
	kprof_u16 inputs_off;
	kprof_u16 forward_off; /* RecordFunction: the number of the thread that made the node */
	kprof_u16 sizes_off;   /* TensorImpl::sizes_and_strides_ */
	/* A list has a vector of IValues there, and behind it the address of its elements' type. */
	kprof_u16 list_off;
	kprof_u8 list_tag;    /* of an IValue that is a list */
	kprof_u8 tensor_kind; /* c10::TypeKind::TensorType */
	kprof_u8 pad[6];
	kprof_u64 type_mask; /* as in struct kprof_inputs_plan */
};

#define KPROF_AGENT_SLOTS 256
#define KPROF_AGENT_SLOT_BYTES 4096
#define KPROF_AGENT_HEAD_BYTES 4096
#define KPROF_AGENT_SHM_BYTES (KPROF_AGENT_HEAD_BYTES + KPROF_AGENT_SLOTS * KPROF_AGENT_SLOT_BYTES)

/* At offset 0 of the memory file. */
struct kprof_agent_shm {
	kprof_u32 magic, version;
	kprof_u32 pid; /* the agent's process id, in its PID namespace */
	kprof_u32 nr_slots;
	/* Written by kprof. */
	kprof_u32 command; /* enum kprof_agent_command; a futex */
	kprof_u32 session; /* a new number with each RECORD command; never 0 */
	kprof_u64 heartbeat_ns;
	kprof_u64 types;   /* bits 1 << enum kprof_activity */
	kprof_u32 options; /* KPROF_AGENT_OPT_* */
	kprof_u32 wanted;  /* bits 1 << enum kprof_agent_runtime that may record; 0: all */
	/* Written by the agent. */
	kprof_u32 state;     /* enum kprof_agent_state; a futex */
	kprof_u32 recording; /* the .session that is recorded now, or was recorded last */
	kprof_u32 reason;    /* enum kprof_agent_reason */
	kprof_u32 runtimes;  /* bits 1 << enum kprof_agent_runtime that record */
	char detail[256];    /* what failed, in words */
	/* as CUDA encodes versions; 0: none */
	kprof_u32 cupti_version, driver_version, runtime_version;
	kprof_u32 clock; /* enum kprof_agent_clock */
	/* Totals of this session. */
	kprof_u64 records;              /* handed over, or in slots; without SPANS and INPUTS */
	kprof_u64 device_dropped;       /* CUPTI's own count of records that it lost */
	kprof_u64 agent_dropped;        /* there was no slot, or no memory for a buffer */
	kprof_u64 unknown_records;      /* records of kinds that were not asked for */
	kprof_u64 buffers, max_buffers; /* buffers that CUPTI holds: now, and the most at once */
	/*
	 * CPU time since the agent was loaded: of its thread, and of CUPTI's threads while they
	 * hand it records.
	 */
	kprof_u64 cpu_ns;
	/*
	 * A runtime loads the agent at its first use, and waits for a session: when it went on
	 * without one (CLOCK_MONOTONIC). UINT64_MAX: it did not; 0: no runtime loaded the agent.
	 */
	kprof_u64 went_on_ns;
	kprof_u64 spans; /* begins and ends in SPANS records that were handed over */
	/* Written by kprof before a RECORD with OPT_METRICS: names with commas in between. */
	char metrics[KPROF_AGENT_METRICS_BYTES];
	kprof_u64 metrics_range_ns; /* how long a range of them is to be, about */
	/* Written by the agent; each is of this session. */
	kprof_u32 metrics_state;      /* enum kprof_agent_metrics */
	kprof_u32 metrics_reason;     /* enum kprof_agent_metrics_reason, of the first failure */
	char metrics_detail[256];     /* the same in words */
	kprof_u64 metrics_ranges;     /* RANGE records */
	kprof_u64 metrics_lost;       /* ranges that were measured, and could not be had */
	kprof_u64 metrics_longest_ns; /* the longest that CUPTI took to start measuring */
	/* Written by kprof before a RECORD with OPT_INPUTS or OPT_SEQUENCE. */
	struct kprof_agent_layout layout;
	char within[KPROF_WITHIN_BYTES]; /* the same, with OPT_WITHIN */
	/* Written by the agent: the options of the session that it knows and does. */
	kprof_u32 options_done;
	/* The same, with OPT_WITHIN: annotations of the name whose inside could not be recorded. */
	kprof_u32 not_entered;
};

enum kprof_agent_clock {
	/* the device runtime itself stamps records with CLOCK_MONOTONIC */
	KPROF_AGENT_CLOCK_MONOTONIC = 0,
	/* the agent converts times to CLOCK_MONOTONIC; see KPROF_AGENT_CLOCK records */
	KPROF_AGENT_CLOCK_CONVERTED = 1,
};

struct kprof_agent_slot {
	kprof_u32 owner; /* thread id in the agent's namespace; 0: free */
	kprof_u32 used;  /* bytes of complete records in data[]; written after the record itself */
	kprof_u64 opened_ns;
	kprof_u32 session;
	kprof_u32 pad[11];
	kprof_u8 data[KPROF_WIRE_BATCH_BYTES];
};

/* ---- records ---- */

enum kprof_agent_runtime {
	KPROF_AGENT_CUDA = 0,
	KPROF_AGENT_OPENCL = 1,
	KPROF_AGENT_PYTORCH = 2, /* no device: its operators, by its own callbacks */
};

enum kprof_agent_kind {
	KPROF_AGENT_NAME = 1, /* struct kprof_agent_name */
	/* struct kprof_agent_activity: device work that no other kind describes */
	KPROF_AGENT_ACTIVITY = 2,
	KPROF_AGENT_KERNEL = 3,    /* struct kprof_agent_kernel */
	KPROF_AGENT_COPY = 4,      /* struct kprof_agent_copy: copies and sets */
	KPROF_AGENT_SYNC = 5,      /* struct kprof_agent_sync */
	KPROF_AGENT_API = 6,       /* struct kprof_agent_api */
	KPROF_AGENT_DEVICE = 7,    /* struct kprof_agent_device */
	KPROF_AGENT_CONTEXT = 8,   /* struct kprof_agent_context */
	KPROF_AGENT_CLOCK = 9,     /* struct kprof_agent_clock_pair */
	KPROF_AGENT_EXTERNAL = 10, /* struct kprof_agent_external */
	KPROF_AGENT_EVENT = 11,    /* struct kprof_agent_event: a device event was recorded */
	KPROF_AGENT_ALLOC = 12,    /* struct kprof_agent_alloc: memory was allocated or released */
	KPROF_AGENT_SPANS = 13,    /* struct kprof_agent_spans: begins and ends of operators */
	KPROF_AGENT_RANGE = 14,    /* struct kprof_agent_range: what metrics were in a range */
	KPROF_AGENT_INPUTS = 15,   /* struct kprof_agent_inputs: what operators were called with */
};

/* First in every record. */
struct kprof_agent_head {
	kprof_u16 kind; /* enum kprof_agent_kind */
	kprof_u16 size; /* of the whole record, a multiple of 8 */
	kprof_u32 name; /* id that a NAME record of this session has introduced; 0: none */
};

/*
 * Each name is reported once per session, in a batch that is handed over before any batch that uses
 * the name. That batch may come from any thread.
 */
struct kprof_agent_name {
	struct kprof_agent_head h; /* .name: the id; ids count from 1 without gaps */
	/* length of text[], which has no NUL and is cut to fit a batch */
	kprof_u32 bytes;
	char text[];
};

/*
 * What operators were called with (enum kprof_input_kind). As names, equal inputs are reported
 * once. They have ids of their own.
 */
#define KPROF_AGENT_INPUTS_WORDS 480
struct kprof_agent_inputs {
	struct kprof_agent_head h; /* .name: the id */
	kprof_u32 nr;              /* of words[] */
	kprof_u32 pad;
	kprof_u64 words[];
};

/* Work of a device. */
struct kprof_agent_activity {
	struct kprof_agent_head h;
	kprof_u64 start_ns, end_ns;
	kprof_u64 queued_ns;   /* when the host queued it; 0: not known */
	kprof_u64 correlation; /* correlation id of the call that launched it; 0: none */
	kprof_u64 bytes;       /* bytes copied or set */
	kprof_u32 device, context, stream;
	kprof_u16 type;   /* enum kprof_activity */
	kprof_u8 runtime; /* enum kprof_agent_runtime */
	kprof_u8 has;     /* KPROF_AGENT_HAS_*: fields that not every release of a runtime tells */
};

#define KPROF_AGENT_HAS_PRIORITY 1u
#define KPROF_AGENT_HAS_CHANNEL 2u

struct kprof_agent_kernel {
	struct kprof_agent_activity a;
	kprof_u32 grid[3], block[3];
	kprof_u32 static_shared_bytes, dynamic_shared_bytes;
	kprof_u32 local_bytes_per_thread;
	kprof_u16 registers; /* per thread */
	kprof_s16 priority;
	kprof_u32 graph; /* id of the CUDA graph; 0: the work belongs to none */
	/* bytes of shared memory that each multiprocessor is configured with; 0: not known */
	kprof_u32 shared_config_bytes;
	kprof_u64 graph_node;
	kprof_u32 channel;     /* the hardware channel by which it came to the device */
	kprof_u8 channel_type; /* CUPTI's CUpti_ChannelType */
	kprof_u8 pad[3];
};

/* Where memory is located. */
enum kprof_agent_memory {
	KPROF_AGENT_MEMORY_UNKNOWN = 0,
	KPROF_AGENT_MEMORY_PAGEABLE = 1,
	KPROF_AGENT_MEMORY_PINNED = 2,
	KPROF_AGENT_MEMORY_DEVICE = 3,
	KPROF_AGENT_MEMORY_ARRAY = 4,
	KPROF_AGENT_MEMORY_MANAGED = 5,
	KPROF_AGENT_MEMORY_DEVICE_STATIC = 6,
	KPROF_AGENT_MEMORY_MANAGED_STATIC = 7,
};

/* CUPTI's CUpti_ActivityMemcpyKind. */
enum kprof_agent_copy_kind {
	KPROF_AGENT_COPY_UNKNOWN = 0,
	KPROF_AGENT_COPY_HTOD = 1,
	KPROF_AGENT_COPY_DTOH = 2,
	KPROF_AGENT_COPY_HTOA = 3,
	KPROF_AGENT_COPY_ATOH = 4,
	KPROF_AGENT_COPY_ATOA = 5,
	KPROF_AGENT_COPY_ATOD = 6,
	KPROF_AGENT_COPY_DTOA = 7,
	KPROF_AGENT_COPY_DTOD = 8,
	KPROF_AGENT_COPY_HTOH = 9,
	KPROF_AGENT_COPY_PTOP = 10,
};

struct kprof_agent_copy {
	struct kprof_agent_activity a;
	kprof_u8 kind;     /* enum kprof_agent_copy_kind; sets: 0 */
	kprof_u8 from, to; /* enum kprof_agent_memory; a set has its memory in `to` */
	kprof_u8 channel_type;
	kprof_u32 graph;
	kprof_u64 graph_node;
	/* set for copies between devices (PTOP) only */
	kprof_u32 from_device, from_context, to_device, to_context;
	kprof_u32 value; /* of a set: the value that was written */
	kprof_u32 channel;
};

/* CUPTI's CUpti_ActivitySynchronizationType. */
enum kprof_agent_sync_kind {
	KPROF_AGENT_SYNC_EVENT = 1,
	KPROF_AGENT_SYNC_STREAM_WAIT_EVENT = 2,
	KPROF_AGENT_SYNC_STREAM = 3,
	KPROF_AGENT_SYNC_CONTEXT = 4,
};

/* In .device: the device of the context, which kprof knows. */
#define KPROF_AGENT_DEVICE_OF_CONTEXT 0xffffffffu

struct kprof_agent_sync {
	/* .type is CUDA_SYNC; .stream is UINT32_MAX where no stream is meant */
	struct kprof_agent_activity a;
	kprof_u32 kind;  /* enum kprof_agent_sync_kind */
	kprof_u32 event; /* id of the event; 0: none */
	/* correlation id of the call that recorded the awaited event; 0: not known */
	kprof_u64 event_correlation;
	kprof_u32 event_stream; /* the stream on which that event was recorded */
	kprof_u32 pad;
};

/*
 * A call of the runtime or driver, as the device's tool interface reports it. It gives the span of
 * that call its correlation id.
 */
struct kprof_agent_api {
	struct kprof_agent_head h; /* .name: the name of the function */
	kprof_u64 start_ns, end_ns;
	kprof_u64 correlation;
	kprof_u32 tid;  /* thread id in the agent's PID namespace */
	kprof_u32 cbid; /* callback id: the number by which the tool interface knows the function */
	kprof_u16 type; /* enum kprof_activity: CUDA_RUNTIME, CUDA_DRIVER, OPENCL_RUNTIME */
	kprof_u16 pad;
	kprof_s32 result;
};

struct kprof_agent_device {
	struct kprof_agent_head h; /* .name: the name of the device */
	kprof_u32 device;          /* ordinal */
	kprof_u32 runtime;         /* enum kprof_agent_runtime */
	kprof_u64 memory_bytes;
	kprof_u64 memory_bandwidth_bytes; /* bytes per second; 0: not known */
	kprof_u32 compute_major, compute_minor;
	kprof_u32 max_threads_per_block, max_threads_per_multiprocessor;
	kprof_u32 registers_per_block, registers_per_multiprocessor;
	kprof_u32 shared_bytes_per_block, shared_bytes_per_multiprocessor;
	kprof_u32 shared_bytes_per_block_optin;
	kprof_u32 warp_size, multiprocessors, max_blocks_per_multiprocessor;
	kprof_u32 clock_khz; /* the highest of its multiprocessors; 0: not known */
	kprof_u32 pad;
};

struct kprof_agent_context {
	struct kprof_agent_head h;
	kprof_u32 context, device;
	kprof_u32 null_stream; /* id of the context's default stream */
	kprof_u32 runtime;
};

/* One moment on both clocks, and the time between the two readings that bracket it. */
struct kprof_agent_clock_pair {
	struct kprof_agent_head h;
	kprof_u64 mono_ns, device_ns;
	kprof_u64 width_ns;
};

struct kprof_agent_external {
	struct kprof_agent_head h;
	kprof_u64 correlation, external;
	kprof_u32 kind; /* CUPTI's CUpti_ExternalCorrelationKind */
	kprof_u32 pad;
};

struct kprof_agent_alloc {
	struct kprof_agent_head h;
	kprof_u64 time_ns;
	kprof_u64 address;
	kprof_u64 bytes; /* of a release, 0: the size was not reported */
	kprof_u64 correlation;
	kprof_u32 device, context;
	kprof_u8 memory; /* enum kprof_agent_memory */
	kprof_u8 release;
	kprof_u16 pad;
	kprof_u32 pad2;
};

/* What was measured from .a.start_ns to .a.end_ns, by the host's clock. */
struct kprof_agent_range {
	/* .type is CUDA_PROFILER_RANGE; .stream is UINT32_MAX: all of the context's */
	struct kprof_agent_activity a;
	kprof_u32 nr; /* values, in the order of .metrics: the record ends after them */
	kprof_u32 pad;
	/* the bits of IEEE doubles; no number: not known */
	kprof_u64 values[KPROF_AGENT_METRICS];
};

struct kprof_agent_event {
	struct kprof_agent_head h;
	kprof_u64 correlation; /* correlation id of the call that recorded the event */
	kprof_u32 event, context, stream;
	kprof_u32 device;  /* or KPROF_AGENT_DEVICE_OF_CONTEXT */
	kprof_u64 time_ns; /* when the device came to it; 0: not known, or not asked for */
};

/*
 * What a thread's operators did, in order of time. The record grows at the end of a slot by one
 * entry at a time; .h.size is written after .used of the slot, and may lag behind it by an entry
 * where the thread was killed.
 */
struct kprof_agent_spans {
	struct kprof_agent_head h;
	kprof_u64 start; /* time of the first entry, in ticks or ns */
	/*
	 * One moment on CLOCK_MONOTONIC and on the processor's time stamp counter, close to the
	 * start. base_ticks 0: times are in ns, else in ticks of that counter.
	 */
	kprof_u64 base_ns, base_ticks;
	kprof_u32 tid;   /* thread id in the agent's PID namespace */
	kprof_u32 depth; /* how many spans are open before the first entry */
	struct kprof_agent_span {
		kprof_u32 after; /* since the start */
		/* KPROF_AGENT_SPAN_*, or scope << 28 | id of a name: a span of this scope begins */
		kprof_u32 what;
	} spans[];
};

#define KPROF_AGENT_SPAN_SCOPE_SHIFT 28
#define KPROF_AGENT_SPAN_NAME 0x0fffffffu
/*
 * | number of spans inside of it that go on: a span ends. Only annotations end before those that
 * were opened inside of them.
 */
#define KPROF_AGENT_SPAN_END 0xf0000000u
/* The innermost span is over; its end was not seen on this thread. */
#define KPROF_AGENT_SPAN_CLOSED 0xe0000000u
/*
 * More of the span that the entry before begins, in the same record: | id of what it was called
 * with, 0: something that is not told; | KPROF_AGENT_SPAN_NODE and the number of a thread: .after
 * is its sequence number, the low half, or the high half if that is not 0.
 */
#define KPROF_AGENT_SPAN_INPUTS 0xd0000000u
#define KPROF_AGENT_SPAN_SEQUENCE 0xc0000000u
#define KPROF_AGENT_SPAN_SEQUENCE_HIGH 0xb0000000u
/* It is a node, and the thread is the one that made it; else the thread is its own. */
#define KPROF_AGENT_SPAN_NODE 0x08000000u
#define KPROF_AGENT_SPAN_THREAD 0x07ffffffu

/* at::RecordScope of PyTorch, by number. */
#define KPROF_AGENT_SCOPES 10

_Static_assert(sizeof(struct kprof_agent_slot) == KPROF_AGENT_SLOT_BYTES, "agent: slot");
_Static_assert(sizeof(struct kprof_agent_shm) <= KPROF_AGENT_HEAD_BYTES, "agent: shm");
_Static_assert(sizeof(struct kprof_agent_activity) == 64, "agent: activity");
_Static_assert(sizeof(struct kprof_agent_kernel) == 128, "agent: kernel");
_Static_assert(sizeof(struct kprof_agent_copy) == 104, "agent: copy");
_Static_assert(sizeof(struct kprof_agent_sync) == 88, "agent: sync");
_Static_assert(sizeof(struct kprof_agent_inputs) + 8 * KPROF_AGENT_INPUTS_WORDS <=
		       KPROF_WIRE_BATCH_BYTES,
	       "agent: inputs");
_Static_assert(sizeof(struct kprof_agent_event) == 40, "agent: event");
_Static_assert(sizeof(struct kprof_agent_api) == 48, "agent: api");

#endif
