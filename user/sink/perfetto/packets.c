// SPDX-License-Identifier: BSD-2-Clause
/*
 * Packets. An event is collected in struct pftrace, and packed when it is complete. A name is
 * written once, in the first packet that uses it; later packets refer to it by number.
 */
#include "sink/perfetto/impl.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "catalog/runtime.h"
#include "symbol/names/names.h"
#include "util/error.h"
#include "util/utf8.h"
#include "util/util.h"

#define SEQUENCE_STATE_NEEDED 2
#define TRACE_PACKET_TAG 0x0a /* protobuf tag: field 1 of a trace, length-delimited */

int pf_no_memory(struct pftrace *p)
{
	if (!p->err)
		p->err = error_set(-ENOMEM, NULL, "no memory for the trace");
	return p->err;
}

char *pf_own(struct pftrace *p, char *text)
{
	if (!text) {
		pf_no_memory(p);
	} else if (vec_grow((void **)&p->texts, &p->cap_texts, p->nr_texts, sizeof(*p->texts))) {
		pf_no_memory(p);
		free(text);
		text = NULL;
	} else {
		p->texts[p->nr_texts++] = text;
	}
	return text ? text : (char *)"";
}

char *pf_text(struct pftrace *p, const char *text)
{
	size_t left = strlen(text), n;
	const char *from = text;
	char *out, *at;

	for (; left && (n = utf8_len(from, left)); left -= n)
		from += n;
	if (!left)
		return (char *)text;
	out = at = malloc(strlen(text) * 4 + 1);
	from = text;
	for (left = out ? strlen(text) : 0; left; from += n, left -= n) {
		n = utf8_len(from, left);
		if (n)
			at = mempcpy(at, from, n);
		else
			at += sprintf(at, "\\x%02x", (uint8_t)*from);
		n += !n;
	}
	if (out)
		*at = 0;
	return pf_own(p, out);
}

uint64_t pf_intern(struct pftrace *p, struct pf_intern *in, const void *key, bool *fresh)
{
	uint64_t *slot = map64__at(&in->map, (uintptr_t)key);

	*fresh = false;
	if (!slot) {
		pf_no_memory(p);
		return 0;
	}
	if (!*slot) {
		*slot = ++*in->nr;
		*fresh = true;
	}
	return *slot;
}

/* ---- packets ---- */

/* Writes the length that precedes a packet. */
static size_t put_length(uint8_t *at, size_t len)
{
	size_t n = 0;

	at[n++] = TRACE_PACKET_TAG;
	for (; len > 0x7f; len >>= 7)
		at[n++] = (uint8_t)(len | 0x80);
	at[n++] = (uint8_t)len;
	return n;
}

void pf_packet(struct pftrace *p, Pf__Packet *packet)
{
	uint8_t head[12], *whole;
	size_t bytes, n;

	if (!packet->sequence)
		packet->sequence = packet->track_descriptor ? PF_SEQUENCE_TRACKS : PF_SEQUENCE;
	packet->has_sequence_flags = packet->sequence != PF_SEQUENCE_TRACKS;
	if (!packet->sequence_flags)
		packet->sequence_flags = SEQUENCE_STATE_NEEDED;
	if (p->err)
		return;
	bytes = pf__packet__get_packed_size(packet);
	n = put_length(head, bytes);
	if (bytes + n <= JSONW_BUFFER_BYTES) {
		uint8_t *at = (uint8_t *)jsonw__reserve(&p->w, bytes + n);

		memcpy(at, head, n);
		pf__packet__pack(packet, at + n);
		p->w.pos += bytes + n;
	} else {
		whole = malloc(bytes);
		if (!whole) {
			pf_no_memory(p);
			return;
		}
		pf__packet__pack(packet, whole);
		jsonw__raw(&p->w, (char *)head, n);
		jsonw__raw(&p->w, (char *)whole, bytes);
		free(whole);
	}
	p->err = p->w.err;
}

void pf_packet_done(struct pftrace *p)
{
	for (size_t i = 0; i < p->nr_texts; i++)
		free(p->texts[i]);
	p->nr_texts = p->nr_flows = 0;
	p->new_names.nr = p->new_categories.nr = p->new_keys.nr = p->new_strings.nr = 0;
	p->nr_values = 0;
}

void pf_free(struct pftrace *p)
{
	struct pf_intern *const interns[] = {&p->names,      &p->api_names,  &p->demangled,
					     &p->wait_names, &p->categories, &p->keys,
					     &p->strings};

	pf_packet_done(p);
	for (size_t i = 0; i < ARRAY_SIZE(interns); i++)
		map64__free(&interns[i]->map);
	map64__free(&p->processes);
	map64__free(&p->counter_of);
	free(p->counters);
	free(p->texts);
	free(p->flows);
	bulk__free(&p->span_calls);
}

/* ---- events ---- */

void pf_event(struct pftrace *p, enum pf_event type, uint64_t track)
{
	pf__track_event__init(&p->event);
	p->event.annotations = p->annotations;
	p->event.type = type;
	p->event.track = track;
}

static void new_name(struct pf_names *names, uint64_t iid, char *text)
{
	Pf__InternedName *n = &names->list[names->nr];

	pf__interned_name__init(n);
	n->iid = iid;
	n->name = text;
	names->at[names->nr++] = n;
}

static bool name_of_event(struct pftrace *p, struct pf_intern *in, const char *name)
{
	bool fresh;

	p->event.has_name_iid = true;
	p->event.name_iid = pf_intern(p, in, name, &fresh);
	return fresh;
}

void pf_name(struct pftrace *p, const char *name)
{
	if (name_of_event(p, &p->names, name))
		new_name(&p->new_names, p->event.name_iid, pf_text(p, name));
}

void pf_name_demangled(struct pftrace *p, const char *name)
{
	if (strncmp(name, "_Z", 2))
		pf_name(p, name);
	else if (name_of_event(p, &p->demangled, name))
		new_name(&p->new_names, p->event.name_iid, pf_text(p, pf_own(p, demangle(name))));
}

void pf_name_api(struct pftrace *p, const char *name)
{
	size_t len = catalog_call_stem(name);

	if (!name[len])
		pf_name(p, name);
	else if (name_of_event(p, &p->api_names, name))
		new_name(&p->new_names, p->event.name_iid,
			 pf_text(p, pf_own(p, strndup(name, len))));
}

void pf_name_wait(struct pftrace *p, const char *reason)
{
	char name[TRACE_WAIT_NAME_BYTES];

	if (!name_of_event(p, &p->wait_names, reason))
		return;
	trace__wait_name(reason, name);
	new_name(&p->new_names, p->event.name_iid, pf_text(p, pf_own(p, strdup(name))));
}

void pf_category(struct pftrace *p, const char *category)
{
	bool fresh;

	p->category = pf_intern(p, &p->categories, category, &fresh);
	p->event.n_category_iids = 1;
	p->event.category_iids = &p->category;
	if (fresh)
		new_name(&p->new_categories, p->category, pf_text(p, category));
}

static void add_flow(struct pftrace *p, uint64_t id)
{
	if (vec_grow((void **)&p->flows, &p->cap_flows, p->nr_flows, sizeof(*p->flows)))
		pf_no_memory(p);
	else
		p->flows[p->nr_flows++] = id;
}

void pf_flow(struct pftrace *p, uint64_t id)
{
	add_flow(p, id);
	p->event.n_flow_ids = p->nr_flows;
	p->event.flow_ids = p->flows;
}

void pf_flow_end(struct pftrace *p, uint64_t id)
{
	add_flow(p, id);
	p->event.n_terminating_flow_ids = p->nr_flows;
	p->event.terminating_flow_ids = p->flows;
}

static void put_time(struct pftrace *p, Pf__Packet *packet, uint64_t mono_ns)
{
	packet->has_timestamp = true;
	if (p->in_order && mono_ns >= p->clock_ns) {
		packet->timestamp = mono_ns - p->clock_ns;
		p->clock_ns = mono_ns;
		return;
	}
	packet->timestamp = mono_ns;
	packet->has_timestamp_clock = true;
	packet->timestamp_clock = PF_CLOCK_MONOTONIC;
}

void pf_put(struct pftrace *p, uint64_t mono_ns)
{
	Pf__InternedData interned = PF__INTERNED_DATA__INIT;
	Pf__Packet packet = PF__PACKET__INIT;

	interned.n_event_names = p->new_names.nr;
	interned.event_names = p->new_names.at;
	interned.n_categories = p->new_categories.nr;
	interned.categories = p->new_categories.at;
	interned.n_annotation_names = p->new_keys.nr;
	interned.annotation_names = p->new_keys.at;
	interned.n_strings = p->new_strings.nr;
	interned.strings = p->new_strings.at;
	if (p->new_names.nr + p->new_categories.nr + p->new_keys.nr + p->new_strings.nr)
		packet.interned = &interned;
	packet.track_event = &p->event;
	if (!p->err) /* after an error the packet is not written, and neither is the clock's step */
		put_time(p, &packet, mono_ns);
	pf_packet(p, &packet);
	pf_packet_done(p);
}

void pf_cover(struct pftrace *p, uint64_t start_ns, uint64_t end_ns)
{
	if (start_ns < p->first_ns)
		p->first_ns = start_ns;
	if (end_ns > p->last_ns)
		p->last_ns = end_ns;
	p->slices++;
}

void pf_slice(struct pftrace *p, uint64_t track, uint64_t start_ns, uint64_t end_ns)
{
	p->event.type = start_ns == end_ns ? PF_INSTANT : PF_BEGIN;
	p->event.track = track;
	pf_cover(p, start_ns, end_ns);
	pf_put(p, start_ns);
}

void pf_slice_end(struct pftrace *p, uint64_t track, uint64_t start_ns, uint64_t end_ns)
{
	if (start_ns == end_ns)
		return;
	pf_event(p, PF_END, track);
	pf_put(p, end_ns);
}
