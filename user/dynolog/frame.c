// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <stdlib.h>

#include "dynolog/impl.h"

#define FIRST_BYTES 1024

static int take_head(struct frame *f, const char **at, size_t *left)
{
	size_t n = sizeof(f->head) - f->have_head;
	int32_t length;

	n = n < *left ? n : *left;
	memcpy(f->head + f->have_head, *at, n);
	f->have_head += n;
	*at += n;
	*left -= n;
	if (f->have_head < sizeof(f->head))
		return 0;
	memcpy(&length, f->head, sizeof(length));
	if (length < 1 || length > FRAME_MOST_BYTES)
		return -EBADMSG;
	f->length = (uint32_t)length;
	return 0;
}

static int make_room(struct frame *f, size_t more)
{
	size_t cap = f->cap ? f->cap : FIRST_BYTES;
	char *data;

	while (cap < f->have + more + 1)
		cap *= 2;
	if (cap == f->cap)
		return 0;
	data = realloc(f->data, cap);
	if (!data)
		return -ENOMEM;
	f->data = data;
	f->cap = cap;
	return 0;
}

int frame__feed(struct frame *f, const void *data, size_t bytes)
{
	const char *at = data;
	int err = 0;

	if (f->have_head < sizeof(f->head) && bytes)
		err = take_head(f, &at, &bytes);
	if (err || !f->length)
		return err;
	bytes = bytes < f->length - f->have ? bytes : f->length - f->have;
	err = make_room(f, bytes);
	if (err)
		return err;
	if (bytes)
		memcpy(f->data + f->have, at, bytes);
	f->have += bytes;
	f->data[f->have] = '\0';
	return f->have == f->length;
}

void frame__free(struct frame *f)
{
	free(f->data);
	*f = (struct frame){0};
}
