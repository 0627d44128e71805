/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writes Python's pickles, of protocol 2, by the opcodes that PyTorch's viewer in the browser knows
 * as well: dictionaries, lists, texts, integers, and references to what was written before.
 */
#ifndef KPROF_SINK_PICKLE_H
#define KPROF_SINK_PICKLE_H

#include "sink/write/write.h"

void pickle_begin(struct jsonw *w);
void pickle_end(struct jsonw *w);
/* What follows until the close is keys and values in turn, or items. */
void pickle_open_dict(struct jsonw *w);
void pickle_close_dict(struct jsonw *w);
void pickle_open_list(struct jsonw *w);
void pickle_close_list(struct jsonw *w);
void pickle_int(struct jsonw *w, uint64_t v); /* below 2^63 */
/* Any bytes: those that are no UTF-8 become \xNN. */
void pickle_text(struct jsonw *w, const char *text);
/* After a value: gives it this number, by which pickle_again() writes it once more. */
void pickle_remember(struct jsonw *w, uint32_t number);
void pickle_again(struct jsonw *w, uint32_t number);

#endif
