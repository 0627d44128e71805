/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * PyTorch's operator schemas, read from the library's own strings ("add.Tensor(Tensor self, …) -> Tensor"
 * in .rodata): they say how at::_ops::add_Tensor is called by users (aten::add, overload Tensor) with
 * no table of ours that a release could make untrue.
 */
#ifndef KPROF_SCHEMA_H
#define KPROF_SCHEMA_H
#include <stddef.h>
#include "symbol/elf/elf.h"

struct schemas;
int schemas__load(const struct elffile *e, struct schemas **out);
/*
 * struct_name: "add_Tensor". On success *name is "aten::add", *overload "Tensor" or "", *schema the whole
 * text, "" where the library has only the name; they live as long as s. -ENOENT: unknown (then a
 * caller uses "aten::" + struct_name).
 */
int schemas__find(const struct schemas *s, const char *struct_name, const char **name,
		  const char **overload, const char **schema);
void schemas__free(struct schemas *s);

/*
 * The struct's name in a mangled member of at::_ops: "_ZN2at4_ops10add_Tensor4callE…" gives
 * "add_Tensor". -ENOENT: another symbol; -ENAMETOOLONG: longer than buf.
 */
int schema_struct_name(const char *mangled, char *buf, size_t bytes);
#endif
