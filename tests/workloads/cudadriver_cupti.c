/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cudadriver: a client of CUPTI, as Kineto is one: proof that CUPTI can be used (after kprof has
 * left, say), and the way in which the simulator's own test sees what CUPTI hands out: every record
 * a line of JSON in --records.
 */
#include <dlfcn.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "cudadriver.h"
#include "cupti_abi.h"

static struct {
	__typeof__(&cuptiGetVersion) get_version;
	__typeof__(&cuptiSubscribe) subscribe;
	__typeof__(&cuptiUnsubscribe) unsubscribe;
	__typeof__(&cuptiEnableDomain) enable_domain;
	__typeof__(&cuptiActivityRegisterCallbacks) register_callbacks;
	__typeof__(&cuptiActivityRegisterTimestampCallback) register_timestamp;
	__typeof__(&cuptiActivityEnable) enable;
	__typeof__(&cuptiActivityDisable) disable;
	__typeof__(&cuptiActivityFlushAll) flush;
	__typeof__(&cuptiActivityGetNextRecord) next;
	__typeof__(&cuptiActivityGetNumDroppedRecords) dropped;
	__typeof__(&cuptiSetThreadIdType) thread_id_type;
	__typeof__(&cuptiActivityPushExternalCorrelationId) push;
	__typeof__(&cuptiActivityPopExternalCorrelationId) pop;
} cupti;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static FILE *out;
static uint64_t nr_records, nr_dropped, nr_enter, nr_exit, nr_buffers;

static bool find(void *lib)
{
	bool all = true;

#define FIND(member, fn) all &= (*(void **)&cupti.member = dlsym(lib, #fn)) != NULL
	FIND(get_version, cuptiGetVersion);
	FIND(subscribe, cuptiSubscribe);
	FIND(unsubscribe, cuptiUnsubscribe);
	FIND(enable_domain, cuptiEnableDomain);
	FIND(register_callbacks, cuptiActivityRegisterCallbacks);
	FIND(register_timestamp, cuptiActivityRegisterTimestampCallback);
	FIND(enable, cuptiActivityEnable);
	FIND(disable, cuptiActivityDisable);
	FIND(flush, cuptiActivityFlushAll);
	FIND(next, cuptiActivityGetNextRecord);
	FIND(dropped, cuptiActivityGetNumDroppedRecords);
	FIND(thread_id_type, cuptiSetThreadIdType);
	FIND(push, cuptiActivityPushExternalCorrelationId);
	FIND(pop, cuptiActivityPopExternalCorrelationId);
	return all;
}

/* ---- records ---- */

static void print_work(const void *record)
{
	const struct cupti_record_kernel *k = record;
	const struct cupti_record_memcpy *c = record;
	const struct cupti_record_peer *p = record;
	const struct cupti_record_memset *s = record;

	switch (*(const uint32_t *)record) {
	case CUPTI_KIND_CONCURRENT_KERNEL:
		fprintf(out,
			"{\"t\":\"kernel\",\"name\":\"%s\",\"start\":%" PRIu64 ",\"end\":%" PRIu64
			",\"corr\":%u,"
			"\"device\":%u,\"context\":%u,\"stream\":%u,\"grid\":[%d,%d,%d],\"block\":[%d,%d,%d],"
			"\"static_shared\":%d,\"dynamic_shared\":%d,\"registers\":%u,\"graph\":%u,\"node\":%" PRIu64
			"}\n",
			k->name, k->start, k->end, k->correlationId, k->deviceId, k->contextId,
			k->streamId, k->gridX, k->gridY, k->gridZ, k->blockX, k->blockY, k->blockZ,
			k->staticSharedMemory, k->dynamicSharedMemory, k->registersPerThread,
			k->graphId, k->graphNodeId);
		break;
	case CUPTI_KIND_MEMCPY:
		fprintf(out,
			"{\"t\":\"copy\",\"copy_kind\":%u,\"start\":%" PRIu64 ",\"end\":%" PRIu64
			",\"corr\":%u,\"device\":%u,"
			"\"context\":%u,\"stream\":%u,\"bytes\":%" PRIu64
			",\"graph\":%u,\"node\":%" PRIu64 "}\n",
			c->copyKind, c->start, c->end, c->correlationId, c->deviceId, c->contextId,
			c->streamId, c->bytes, c->graphId, c->graphNodeId);
		break;
	case CUPTI_KIND_MEMCPY2:
		fprintf(out,
			"{\"t\":\"copy\",\"copy_kind\":%u,\"start\":%" PRIu64 ",\"end\":%" PRIu64
			",\"corr\":%u,\"device\":%u,"
			"\"context\":%u,\"stream\":%u,\"bytes\":%" PRIu64
			",\"from_device\":%u,\"to_device\":%u,\"graph\":%u,"
			"\"node\":%" PRIu64 "}\n",
			p->copyKind, p->start, p->end, p->correlationId, p->deviceId, p->contextId,
			p->streamId, p->bytes, p->srcDeviceId, p->dstDeviceId, p->graphId,
			p->graphNodeId);
		break;
	default:
		fprintf(out,
			"{\"t\":\"set\",\"start\":%" PRIu64 ",\"end\":%" PRIu64
			",\"corr\":%u,\"device\":%u,\"context\":%u,"
			"\"stream\":%u,\"bytes\":%" PRIu64
			",\"value\":%u,\"graph\":%u,\"node\":%" PRIu64 "}\n",
			s->start, s->end, s->correlationId, s->deviceId, s->contextId, s->streamId,
			s->bytes, s->value, s->graphId, s->graphNodeId);
	}
}

static void print(const void *record)
{
	const struct cupti_record_api *a = record;
	const struct cupti_record_sync *s = record;
	const struct cupti_record_event *v = record;
	const struct cupti_record_external *e = record;
	const struct cupti_record_device *d = record;
	const struct cupti_record_context *c = record;
	uint32_t kind = *(const uint32_t *)record;

	switch (kind) {
	case CUPTI_KIND_CONCURRENT_KERNEL:
	case CUPTI_KIND_MEMCPY:
	case CUPTI_KIND_MEMCPY2:
	case CUPTI_KIND_MEMSET:
		print_work(record);
		break;
	case CUPTI_KIND_RUNTIME:
	case CUPTI_KIND_DRIVER:
		fprintf(out,
			"{\"t\":\"api\",\"domain\":\"%s\",\"cbid\":%u,\"start\":%" PRIu64
			",\"end\":%" PRIu64 ",\"tid\":%u,"
			"\"corr\":%u,\"result\":%u}\n",
			kind == CUPTI_KIND_RUNTIME ? "runtime" : "driver", a->cbid, a->start,
			a->end, a->threadId, a->correlationId, a->returnValue);
		break;
	case CUPTI_KIND_SYNCHRONIZATION:
		fprintf(out,
			"{\"t\":\"sync\",\"sync_kind\":%u,\"start\":%" PRIu64 ",\"end\":%" PRIu64
			",\"corr\":%u,\"context\":%u,"
			"\"stream\":%d,\"event\":%u}\n",
			s->type, s->start, s->end, s->correlationId, s->contextId, (int)s->streamId,
			s->cudaEventId == UINT32_MAX ? 0 : s->cudaEventId);
		break;
	case CUPTI_KIND_CUDA_EVENT:
		fprintf(out,
			"{\"t\":\"event\",\"corr\":%u,\"context\":%u,\"stream\":%u,\"event\":%u}\n",
			v->correlationId, v->contextId, v->streamId, v->eventId);
		break;
	case CUPTI_KIND_EXTERNAL_CORRELATION:
		fprintf(out, "{\"t\":\"external\",\"corr\":%u,\"kind\":%u,\"id\":%" PRIu64 "}\n",
			e->correlationId, e->externalKind, e->externalId);
		break;
	case CUPTI_KIND_DEVICE:
		fprintf(out,
			"{\"t\":\"device\",\"id\":%u,\"name\":\"%s\",\"memory\":%" PRIu64 "}\n",
			d->id, d->name, d->globalMemorySize);
		break;
	case CUPTI_KIND_CONTEXT:
		fprintf(out, "{\"t\":\"context\",\"id\":%u,\"device\":%u,\"null_stream\":%u}\n",
			c->contextId, c->deviceId, c->nullStreamId);
		break;
	default:
		fprintf(out, "{\"t\":\"other\",\"kind\":%u}\n", kind);
	}
}

static void requested(uint8_t **buffer, size_t *size, size_t *max_records)
{
	*size = 64 << 10;
	*buffer = aligned_alloc(8, *size);
	*max_records = 0;
	__atomic_fetch_add(&nr_buffers, 1, __ATOMIC_RELAXED);
}

static void completed(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid)
{
	void *record = NULL;
	size_t lost = 0;

	pthread_mutex_lock(&lock);
	while (!cupti.next(buffer, valid, &record)) {
		nr_records++;
		if (out)
			print(record);
	}
	cupti.dropped(NULL, 0, &lost);
	nr_dropped += lost;
	pthread_mutex_unlock(&lock);
	free(buffer);
}

static void called(void *userdata, int domain, uint32_t cbid, const void *data)
{
	const struct cupti_callback_data *d = data;

	__atomic_fetch_add(d->callbackSite ? &nr_exit : &nr_enter, 1, __ATOMIC_RELAXED);
}

/* ---- the mode ---- */

static const int kinds[] = {CUPTI_KIND_MEMCPY,
			    CUPTI_KIND_MEMCPY2,
			    CUPTI_KIND_MEMSET,
			    CUPTI_KIND_DRIVER,
			    CUPTI_KIND_RUNTIME,
			    CUPTI_KIND_DEVICE,
			    CUPTI_KIND_CONTEXT,
			    CUPTI_KIND_CUDA_EVENT,
			    CUPTI_KIND_SYNCHRONIZATION,
			    CUPTI_KIND_CONCURRENT_KERNEL,
			    CUPTI_KIND_EXTERNAL_CORRELATION};

static void *open_cupti(void)
{
	static const char *const names[] = {"libcupti.so.13", "libcupti.so.12"};
	int version = 0;

	cudaRuntimeGetVersion(&version);
	return dlopen(names[version < 13000], RTLD_NOW);
}

void mode_cupti(const struct options *o, struct result *r)
{
	struct cupti_subscriber *subscriber;
	void *lib = open_cupti();
	uint32_t version;
	uint64_t id;
	size_t lost = 0;

	must(lib && find(lib) ? 0 : 1, 0, "libcupti");
	out = o->records ? fopen(o->records, "we") : NULL;
	must(cupti.get_version(&version), 0, "cuptiGetVersion");
	must(cupti.subscribe(&subscriber, called, NULL), 0, "cuptiSubscribe");
	must(cupti.thread_id_type(1), 0, "cuptiSetThreadIdType");
	must(cupti.register_timestamp(now_ns), 0, "cuptiActivityRegisterTimestampCallback");
	must(cupti.register_callbacks(requested, completed), 0, "cuptiActivityRegisterCallbacks");
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		must(cupti.enable(kinds[i]), 0, "cuptiActivityEnable");
	must(cupti.enable_domain(1, subscriber, 2), 0, "cuptiEnableDomain");
	for (uint64_t i = 1; i <= 3; i++) {
		must(cupti.push(3, 1000 + i), 0, "cuptiActivityPushExternalCorrelationId");
		mode_graph(o, r);
		mode_copies(o, r);
		must(cupti.pop(3, &id), 0, "cuptiActivityPopExternalCorrelationId");
		r->ok &= id == 1000 + i;
	}
	mode_events(o, r);
	mode_threads(o, r);
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		must(cupti.disable(kinds[i]), 0, "cuptiActivityDisable");
	must(cupti.flush(1), 0, "cuptiActivityFlushAll");
	must(cupti.unsubscribe(subscriber), 0, "cuptiUnsubscribe");
	must(cupti.dropped(NULL, 0, &lost), 0, "cuptiActivityGetNumDroppedRecords");
	launch_tiny(NULL); /* of this there is no record */
	OK(cudaDeviceSynchronize);
	r->ok &= nr_enter == nr_exit && nr_enter > 0;
	fprintf(r->more,
		", \"cupti_version\": %u, \"records\": %" PRIu64 ", \"dropped\": %" PRIu64
		", \"callbacks\": %" PRIu64 ", \"buffers\": %" PRIu64,
		version, nr_records, nr_dropped + lost, nr_enter, nr_buffers);
	if (out)
		fclose(out);
	out = NULL;
}
