// SPDX-License-Identifier: BSD-2-Clause
/*
 * Schemas read from a file's .rodata: this program's own, which the strings below put there. That
 * every operator of the PyTorch releases is named right is checked by the suites that have them.
 */
#include <errno.h>

#include "symbol/names/names.h"
#include "unit.h"

/* Each behind and before a NUL. Not volatile: that would not go to .rodata. */
static const char strings[] __attribute__((used)) =
	"\0add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor"
	"\0aten::add.Tensor(Tensor a, Tensor b, *, Scalar alpha=1) -> Tensor"
	"\0div_.Tensor_mode(Tensor(a!) self, Tensor other, *, str? mode) -> Tensor(a!)"
	"\0relu(Tensor self) -> Tensor"
	"\0aten::only_prefixed.out(Tensor self) -> (Tensor, Tensor)"
	"\0quantized::relu6(Tensor qx, bool inplace=False) -> Tensor"
	"\0pad(Tensor self, str mode=\"a)(b\") -> Tensor"
	"\0no_result(Tensor self)"
	"\0unclosed(Tensor self -> Tensor"
	"\0a.b.c(Tensor self) -> Tensor"
	"\0behind text(Tensor self) -> Tensor"
	"\0aten::softmax"
	"\0aten::log"
	"\0aten::log_softmax"
	"\0aten::transpose_"
	"\0to.Dimname(Tensor self) -> Tensor"
	"\0aten::half\1";

static struct schemas *load(void)
{
	struct elffile *e = NULL;
	struct schemas *s = NULL;

	CHECK_EQ(elffile__open("/proc/self/exe", &e), 0);
	if (e)
		CHECK_EQ(schemas__load(e, &s), 0);
	elffile__close(e);
	return s;
}

static void expect(const struct schemas *s, const char *struct_name, const char *name,
		   const char *overload, const char *text)
{
	const char *got_name, *got_overload, *got_text;

	CHECK_EQ(schemas__find(s, struct_name, &got_name, &got_overload, &got_text), 0);
	if (schemas__find(s, struct_name, &got_name, &got_overload, &got_text))
		return;
	CHECK_STR(got_name, name);
	CHECK_STR(got_overload, overload);
	CHECK_STR(got_text, text);
}

static void by_schema(void)
{
	struct schemas *s = load();

	if (!s)
		return;
	/* The registered text wins over the one with a namespace. */
	expect(s, "add_Tensor", "aten::add", "Tensor",
	       "add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor");
	expect(s, "div__Tensor_mode", "aten::div_", "Tensor_mode",
	       "div_.Tensor_mode(Tensor(a!) self, Tensor other, *, str? mode) -> Tensor(a!)");
	expect(s, "relu", "aten::relu", "", "relu(Tensor self) -> Tensor");
	expect(s, "only_prefixed_out", "aten::only_prefixed", "out",
	       "aten::only_prefixed.out(Tensor self) -> (Tensor, Tensor)");
	expect(s, "pad", "aten::pad", "", "pad(Tensor self, str mode=\"a)(b\") -> Tensor");
	schemas__free(s);
}

static void by_bare_name(void)
{
	struct schemas *s = load();

	if (!s)
		return;
	expect(s, "softmax_Dimname", "aten::softmax", "Dimname", "");
	/* The longest name: not aten::log with an overload softmax_Dimname. */
	expect(s, "log_softmax_Dimname", "aten::log_softmax", "Dimname", "");
	expect(s, "transpose_", "aten::transpose_", "", "");
	schemas__free(s);
}

static void unknown(void)
{
	static const char *const names[] = {
		"relu6", "no_result",     "unclosed", "a_b_c", "behind",
		"text",  "softmax_Other", "half",     "",      "_",
	};
	struct schemas *s = load();
	const char *name, *overload, *text;

	for (size_t i = 0; s && i < sizeof(names) / sizeof(names[0]); i++) {
		int err = schemas__find(s, names[i], &name, &overload, &text);

		if (err != -ENOENT)
			printf("# \"%s\" should be unknown\n", names[i]);
		CHECK_EQ(err, -ENOENT);
	}
	schemas__free(s);
	schemas__free(NULL);
}

static void struct_names(void)
{
	char buf[16];

	CHECK_EQ(schema_struct_name("_ZN2at4_ops10add_Tensor4callERKNS_6TensorES4_", buf,
				    sizeof(buf)),
		 0);
	CHECK_STR(buf, "add_Tensor");
	CHECK_EQ(schema_struct_name("_ZN2at4_ops10add_Tensor4callE", buf, 11), 0);
	CHECK_EQ(schema_struct_name("_ZN2at4_ops10add_Tensor4callE", buf, 10), -ENAMETOOLONG);
	CHECK_EQ(schema_struct_name("_ZN2at4_ops10add_Ten", buf, sizeof(buf)), -ENOENT);
	CHECK_EQ(schema_struct_name("_ZN2at4_ops10add_TensorE", buf, sizeof(buf)), -ENOENT);
	CHECK_EQ(schema_struct_name("_ZN2at4_ops99999999999999999999a", buf, sizeof(buf)), -ENOENT);
	CHECK_EQ(schema_struct_name("_ZN2at4_ops", buf, sizeof(buf)), -ENOENT);
	CHECK_EQ(schema_struct_name("_ZN3c104call", buf, sizeof(buf)), -ENOENT);
	CHECK_EQ(schema_struct_name("", buf, sizeof(buf)), -ENOENT);
}

UNIT_MAIN(TEST(by_schema), TEST(by_bare_name), TEST(unknown), TEST(struct_names))
