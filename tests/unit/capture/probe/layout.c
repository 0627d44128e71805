// SPDX-License-Identifier: BSD-2-Clause
/* Offsets learnt from this very program, which plays the library that has them. */
#include "capture/probe/layout.h"

#include <errno.h>

#include "unit.h"
#include "util/util.h"

/* const std::string &C::name() const, returned by value through rdi, this in rsi. */
__asm__(".text\n"
	".type kl_accessor, @function\nkl_accessor:\n"
	"push %rbx\nmov %rdi, %rbx\nmov 0x48(%rsi), %rax\nmov %rax, (%rbx)\nmov %rbx, %rax\n"
	"pop %rbx\nret\n.size kl_accessor, . - kl_accessor\n"
	".type kl_no_field, @function\nkl_no_field:\n"
	"push %rbx\nxor %eax, %eax\nnop\nnop\nnop\nnop\npop %rbx\nret\n.size kl_no_field, . - "
	"kl_no_field\n"
	".globl kl_vtable\n.type kl_vtable, @object\n.data\n.balign 64\nkl_vtable: .quad 0, 0, 0\n"
	".size kl_vtable, 24\n.text\n");
extern const char kl_vtable[];

const uint32_t Py_Version = 0x030b02f0; /* as CPython 3.11.2 has it */

static struct elffile *self;
static const char *name;
static struct layout_env env;

static void start(const char *base_name)
{
	if (!self && elffile__open("/proc/self/exe", &self))
		abort();
	name = base_name;
	env = (struct layout_env){.files = &self, .names = &name, .nr = 1};
}

static void as_it_stands(void)
{
	const struct catalog_row row = {
		.value = {.reg = KPROF_REG_ARG1, .nr_off = 1, .off = {8}},
		.text = {.reg = KPROF_REG_ARG3, .add = 5},
	};
	struct kprof_wire_probe p = {0};

	start("libkl.so");
	CHECK(!layout_fill(&env, &row, &p));
	CHECK(!memcmp(&p.value, &row.value, sizeof(p.value)));
	CHECK(!memcmp(&p.text, &row.text, sizeof(p.text)));
	CHECK_EQ(p.text_conditional, 0);
}

static void field(void)
{
	struct catalog_row row = {
		.text = {.reg = KPROF_REG_ARG2, .nr_off = 2, .off = {1, 2}},
		.layout = CATALOG_LAYOUT_FIELD,
		.layout_library = "libkl.so*",
		.layout_symbol = "kl_absent* kl_access*",
		.layout_at = 1,
	};
	struct kprof_wire_probe p = {0};

	start("libkl.so.1");
	CHECK(!layout_fill(&env, &row, &p));
	CHECK_EQ(p.text.reg, KPROF_REG_ARG2);
	CHECK_EQ(p.text.off[0], 1);
	CHECK_EQ(p.text.off[1], 0x48);
	CHECK_EQ(env.nr_fields, 1);
	row.layout_at = -1; /* the recipe's last step instead; learnt already */
	CHECK(!layout_fill(&env, &row, &p));
	CHECK_EQ(p.text.add, 0x48);
	CHECK_EQ(p.text.off[1], 2);
	CHECK_EQ(env.nr_fields, 1);
}

/* What cannot be learnt is said, and not read. */
static void no_field(void)
{
	struct catalog_row row = {
		.value = {.reg = KPROF_REG_ARG1},
		.text = {.reg = KPROF_REG_ARG2},
		.layout = CATALOG_LAYOUT_FIELD,
		.layout_library = "libkl.so*",
		.layout_symbol = "kl_absent",
		.layout_at = -1,
	};
	struct kprof_wire_probe p = {0};

	start("libkl.so");
	CHECK(layout_fill(&env, &row, &p));
	CHECK_EQ(p.text.reg, KPROF_REG_NONE);
	CHECK_EQ(p.value.reg, KPROF_REG_ARG1); /* the rest of the event stays */
	row.layout_symbol = "kl_no_field";     /* there, but it reads nothing of the object */
	CHECK(layout_fill(&env, &row, &p));
	row.layout_symbol = "kl_accessor";
	row.layout_library = "libelse.so*";
	p = (struct kprof_wire_probe){0};
	start("libkl.so");
	CHECK(layout_fill(&env, &row, &p));
	CHECK_EQ(p.text.reg, KPROF_REG_NONE);
}

/* More than the table has room for: said, no overrun. */
static void many_fields(void)
{
	static char names[12][16];
	struct catalog_row row = {.text = {.reg = KPROF_REG_ARG2}, .layout = CATALOG_LAYOUT_FIELD};
	struct kprof_wire_probe p;

	start("libkl.so");
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		snprintf(names[i], sizeof(names[i]), "kl_absent%zu", i);
		row.layout_symbol = names[i];
		memset(&p, 0, sizeof(p));
		CHECK(layout_fill(&env, &row, &p));
		CHECK_EQ(p.text.reg, KPROF_REG_NONE);
	}
	CHECK_EQ(env.nr_fields, ARRAY_SIZE(env.fields));
}

static int32_t text_start(void)
{
	const struct catalog_row row = {
		.text = {.reg = KPROF_REG_ARG2, .nr_off = 1},
		.layout = CATALOG_LAYOUT_PYUNICODE,
		.layout_at = 0,
	};
	struct kprof_wire_probe p = {0};

	CHECK(!layout_fill(&env, &row, &p));
	return p.text.off[0];
}

/* Where a str's characters begin: 3.12 dropped a pointer before them. */
static void python(void)
{
	start("libpython3.11.so.1.0");
	CHECK_EQ(text_start(), 48);
	CHECK_EQ(env.python_hex, Py_Version);
	start("python3.8"); /* no such constant before 3.11 */
	env.nr = 0;
	CHECK_EQ(text_start(), 48);
	start("libkl.so");
	env.python_hex = 0x030c00f0;
	CHECK_EQ(text_start(), 40);
}

static void vtable(void)
{
	struct catalog_row row = {
		.value = {.reg = KPROF_REG_ARG1},
		.text = {.reg = KPROF_REG_ARG2},
		.layout_library = "libkl.so*",
		.text_for_vtable = "kl_vtable",
	};
	struct kprof_wire_probe p = {0};

	start("libkl.so");
	CHECK(!layout_fill(&env, &row, &p));
	CHECK_EQ(p.text_conditional, 1);
	/* An object's pointer shows the same low bits wherever the library is loaded. */
	CHECK_EQ(p.text_if_value_low12, ((uintptr_t)kl_vtable + 16) & 0xfff);
	row.text_for_vtable = "kl_absent";
	p = (struct kprof_wire_probe){0};
	CHECK(layout_fill(&env, &row, &p));
	CHECK_EQ(p.text.reg, KPROF_REG_NONE);
	CHECK_EQ(p.text_conditional, 0);
}

UNIT_MAIN(TEST(as_it_stands), TEST(field), TEST(no_field), TEST(many_fields), TEST(python),
	  TEST(vtable))
