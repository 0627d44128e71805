/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How events are named, and what attributes they carry. This room offers:
 *
 *   names.h         hits of probes → event descriptions
 *   inputs.h        inputs of operators → attributes of their spans (inputs_text.c: as text)
 *   sequences.h     sequence numbers → attributes of operators and nodes
 *   calls.h         arguments and results of device calls → attributes of their spans
 *   collectives.h   what collectives communicate → attributes of their spans
 *   text_args.h     what annotations have beside their text → attributes
 *   marks.h         annotations that applications compiled in → spans, instants, activities,
 *                   metadata
 *   memory.h        allocations and frees → instants, and what is in use
 *   messages.h      calls of MPI → attributes: what is communicated
 *   alive.h         what is in use, kept for as long as it is
 *   inside.h        processes of which only what functions or modules of one name do is recorded
 *   modules.h       the calls of PyTorch's modules that threads are in → spans
 *   steps.h         annotations that are steps → when a recording of some begins and ends
 *   thread_names.h  the names that Python gives its threads
 */
#ifndef KPROF_CAPTURE_EVENT_H
#define KPROF_CAPTURE_EVENT_H

#include "capture/event/alive.h"
#include "capture/event/calls.h"
#include "capture/event/collectives.h"
#include "capture/event/inputs.h"
#include "capture/event/inside.h"
#include "capture/event/marks.h"
#include "capture/event/memory.h"
#include "capture/event/messages.h"
#include "capture/event/modules.h"
#include "capture/event/names.h"
#include "capture/event/sequences.h"
#include "capture/event/steps.h"
#include "capture/event/text_args.h"
#include "capture/event/thread_names.h"

#endif
