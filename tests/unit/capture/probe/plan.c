// SPDX-License-Identifier: BSD-2-Clause
/* Plans over this very program, whose functions below play a framework's library. */
#include "capture/probe/plan.h"

#include <errno.h>

#include "kprof.h"
#include "unit.h"
#include "util/util.h"

#define FUNCTION(name, code)                                                           \
	".globl " name "\n.type " name ", @function\n" name ":\n" code "\n.size " name \
	", . - " name "\n"

/* Code of our own choosing, so that it is known where a probe belongs. */
__asm__(".text\n" FUNCTION("kp_push", "push %rbp\nmov %rsp, %rbp\npop %rbp\nret") FUNCTION(
	"kp_endbr", "endbr64\npush %rbx\npop %rbx\nret") FUNCTION("kp_other",
								  "push %rbx\npop %rbx\nret")
		FUNCTION("kp_dear", "mov %rdi, %rax\nadd $1, %rax\nret") FUNCTION(
			"kp_trap", "int3\nret") FUNCTION("kp_split.cold",
							 "push %rbx\npop %rbx\nret")
			FUNCTION("kp_better_way", "push %rbx\npop %rbx\nret") FUNCTION(
				"_ZN2at4_ops10add_Tensor4callEv",
				"push %rbx\npop %rbx\nret") FUNCTION("_ZN2at4_ops3sub4callEv",
								     "push %rbx\npop %rbx\nret")
				FUNCTION(
					"_ZN2at4_ops7no_such4callEv",
					"push %rbx\npop %rbx\nret") ".globl kp_alias\n.type kp_alias, @function\n.set kp_alias, kp_push\n.size kp_alias, 6\n"
								    ".type kp_data, @object\n.data\nkp_data: .quad 0\n.size kp_data, 8\n.text\n");

/*
 * Of a library with an optional<> of its own; and the function from which the layout of tensors is
 * learnt (tests/unit/capture/probe/tensors.c).
 */
__asm__(".text\n" FUNCTION("_ZN2at4_ops4mean4callERKNS_6TensorEN3c1016OptionalArrayRefIlEE",
			   "push %rbx\npop %rbx\nret")
		FUNCTION("_ZN2at4_ops3std4callERKNS_6TensorEN3c108optionalIlEE",
			 "push %rbx\npop %rbx\nret")
			FUNCTION("kp_strides", "testb $0x18, 167(%rdi)\ntestb $0x10, 166(%rdi)\n"
					       "mov 56(%rdi), %rdx\ncmp $5, %rdx\nret"));

/* Where the operators' names come from. */
const char kp_schemas[] =
	"add.Tensor(Tensor self, Tensor other) -> Tensor\0sub(Tensor self) -> Tensor\0"
	"mean(Tensor self, int[]? dim) -> Tensor\0std(Tensor self, int? dim) -> Tensor";

static struct elffile *self;
static struct plan_files files;

#define FIXED(sym, nm)                                                                    \
	{                                                                                 \
		.source = "ops", .library = "libkp.so*", .symbols = sym, .name = nm,      \
		.category = "cpu_op", .shape = CATALOG_SPAN, .naming = CATALOG_NAME_FIXED \
	}

static struct plan plan_of(const struct catalog_row *rows, size_t nr,
			   const struct plan_filter *filter, const char *base_name,
			   const char *const *hidden)
{
	static struct catalog_framework fw;
	struct plan_filter none = {0};
	struct plan plan;

	fw = (struct catalog_framework){.name = "kp",
					.tensor_library = "libkp.so*",
					.tensor_symbol = "kp_strides",
					.rows = rows,
					.nr_rows = nr,
					.hidden = hidden,
					.common = "common*"};
	if (!self && elffile__open("/proc/self/exe", &self))
		abort();
	files = (struct plan_files){.files = {self}, .names = {base_name}, .nr = 1};
	CHECK_EQ(plan_library(&fw, self, base_name, &files, filter ? filter : &none, &plan), 0);
	return plan;
}

#define PLAN(rows, filter) plan_of(rows, ARRAY_SIZE(rows), filter, "libkp.so.1", NULL)

static uint64_t offset_of(const char *symbol)
{
	struct elffile_symbol sym;

	if (elffile__symbol(self, symbol, &sym))
		abort();
	return elffile__offset(self, sym.vaddr);
}

static void places_and_costs(void)
{
	const struct catalog_row rows[] = {FIXED("kp_push", "a"), FIXED("kp_endbr", "b"),
					   FIXED("kp_dear", "c"), FIXED("kp_trap", "d")};
	struct plan plan = PLAN(rows, NULL);

	CHECK_EQ(plan.nr, 3);
	CHECK_EQ(plan.nr_rows, 4);
	for (size_t i = 0; i < plan.nr; i++) {
		struct plan_probe *p = &plan.probes[i];

		CHECK_EQ(p->sp_bias_bytes, 0);
		CHECK_STR(p->overload, "");
		if (!strcmp(p->name, "a"))
			CHECK_EQ(p->offset, offset_of("kp_push"));
		if (!strcmp(p->name, "b")) /* past the endbr64 */
			CHECK_EQ(p->offset, offset_of("kp_endbr") + 4);
		CHECK_EQ(p->cost, strcmp(p->name, "c") ? INSN_EMULATED : INSN_STEPPED);
	}
	CHECK_EQ(plan.rows[0].probes, 1);
	CHECK_EQ(plan.rows[0].by_cost[INSN_EMULATED], 1);
	CHECK_EQ(plan.rows[2].by_cost[INSN_STEPPED], 1);
	CHECK_EQ(plan.rows[3].probes, 0); /* a breakpoint is no place for another */
	CHECK_EQ(plan.rows[3].by_cost[INSN_FORBIDDEN], 1);
	plan_free(&plan);
}

/* Two names of one place are one probe; a function's cold part and data are none. */
static void aliases_and_parts(void)
{
	const struct catalog_row rows[] = {FIXED("kp_alias kp_push kp_split* kp_data*", "a")};
	struct plan plan = PLAN(rows, NULL);

	CHECK_EQ(plan.nr, 1);
	CHECK_EQ(plan.rows[0].probes, 1);
	CHECK_EQ(plan.rows[0].by_cost[INSN_EMULATED], 1);
	plan_free(&plan);
}

static void unless(void)
{
	struct catalog_row rows[] = {FIXED("kp_push kp_other kp_endbr", "a")};
	struct plan plan;

	rows[0].unless = "kp_pu* kp_end*";
	plan = PLAN(rows, NULL);
	CHECK_EQ(plan.nr, 1);
	if (plan.nr)
		CHECK_EQ(plan.probes[0].offset, offset_of("kp_other"));
	plan_free(&plan);
}

/* A symbol belongs to the first row that wants it. */
static void first_row_wins(void)
{
	const struct catalog_row rows[] = {FIXED("kp_oth*", "a"), FIXED("kp_other", "b")};
	struct plan plan = PLAN(rows, NULL);

	CHECK_EQ(plan.nr, 1);
	CHECK_EQ(plan.rows[0].probes, 1);
	CHECK_EQ(plan.rows[1].probes, 0);
	plan_free(&plan);
}

static void only_without(void)
{
	struct catalog_row rows[] = {FIXED("kp_other", "a"), FIXED("kp_push", "b"),
				     FIXED("kp_endbr", "c"), FIXED("kp_dear", "d")};
	struct plan plan;

	rows[0].only_without = "kp_better_*";
	rows[1].only_without = "kp_absent*";
	rows[2].only_without = "kp_better_*";
	rows[2].only_without_in = "libkp.so*";
	rows[3].only_without = "kp_better_*";
	rows[3].only_without_in = "libelse.so*"; /* not there */
	plan = PLAN(rows, NULL);
	CHECK(plan.rows[0].not_needed);
	CHECK_EQ(plan.rows[0].probes, 0);
	CHECK_EQ(plan.rows[0].by_cost[INSN_EMULATED], 0);
	CHECK(!plan.rows[1].not_needed);
	CHECK_EQ(plan.rows[1].probes, 1);
	CHECK(plan.rows[2].not_needed);
	CHECK_EQ(plan.rows[2].probes, 0);
	CHECK_EQ(plan.rows[3].probes, 1);
	CHECK_EQ(plan.nr, 2);
	for (size_t i = 0; i < plan.nr; i++)
		CHECK(!strcmp(plan.probes[i].name, "b") || !strcmp(plan.probes[i].name, "d"));
	plan_free(&plan);
}

static void other_library(void)
{
	const struct catalog_row rows[] = {FIXED("kp_push", "a")};
	struct plan plan = plan_of(rows, 1, NULL, "libelse.so", NULL);

	CHECK_EQ(plan.nr, 0);
	CHECK_EQ(plan.rows[0].library_matches, false);
	plan_free(&plan);
}

static void filters(void)
{
	const char *ops[] = {"aten::a*"}, *exclude[] = {"aten::ab*", "other"};
	struct plan_filter filter = {.ops = ops, .nr_ops = 1};
	struct catalog_row rows[] = {FIXED("kp_push", "aten::a"), FIXED("kp_endbr", "aten::abc"),
				     FIXED("kp_other", "aten::b"), FIXED("kp_dear", "other")};
	struct plan plan;

	rows[3].category = "user_annotation"; /* --ops is about operators only */
	plan = PLAN(rows, &filter);
	CHECK_EQ(plan.nr, 3);
	CHECK_EQ(plan.rows[2].probes, 0);
	plan_free(&plan);

	filter = (struct plan_filter){.exclude = exclude, .nr_exclude = 2};
	plan = PLAN(rows, &filter);
	CHECK_EQ(plan.nr, 2);
	CHECK_EQ(plan.filtered, 2);
	plan_free(&plan);

	/* Whatever ends a range must be seen, called as it may be. */
	rows[3].shape = CATALOG_RANGE_END;
	plan = PLAN(rows, &filter);
	CHECK_EQ(plan.nr, 3);
	plan_free(&plan);

	/* Annotations alone: what ends them among operators is placed for it. */
	filter = (struct plan_filter){.types = 1ull << KPROF_ACTIVITY_USER_ANNOTATION};
	rows[0].range_end_text = "exit";
	plan = PLAN(rows, &filter);
	CHECK_EQ(plan.nr, 2);
	CHECK_EQ(plan.rows[0].probes, 1);
	plan_free(&plan);
	filter.types = 1ull << KPROF_ACTIVITY_KERNEL;
	plan = PLAN(rows, &filter);
	CHECK_EQ(plan.nr, 0);
	plan_free(&plan);

	/* Allocations: only where memory is recorded, and never kept out by --ops or --types. */
	filter = (struct plan_filter){.ops = ops, .nr_ops = 1};
	rows[0] = (struct catalog_row)FIXED("kp_push", "[memory]");
	rows[0].category = "cpu_instant_event";
	rows[0].memory = CATALOG_MEMORY_ALLOCATED;
	plan = plan_of(rows, 1, &filter, "libkp.so.1", NULL);
	CHECK_EQ(plan.nr, 0);
	plan_free(&plan);
	filter.memory = true;
	plan = plan_of(rows, 1, &filter, "libkp.so.1", NULL);
	CHECK_EQ(plan.nr, 1);
	plan_free(&plan);
	filter.types = 1ull << KPROF_ACTIVITY_CPU_OP;
	plan = plan_of(rows, 1, &filter, "libkp.so.1", NULL);
	CHECK_EQ(plan.nr, 1);
	plan_free(&plan);

	filter = (struct plan_filter){.exclude = exclude, .nr_exclude = 2};
	CHECK(plan_filter_accepts(&filter, "cpu_op", "aten::a"));
	CHECK(!plan_filter_accepts(&filter, "cpu_op", "aten::ab"));
	filter = (struct plan_filter){.ops = ops, .nr_ops = 1, .exclude = exclude, .nr_exclude = 2};
	CHECK(!plan_filter_accepts(&filter, "cpu_op", "aten::b"));
	CHECK(plan_filter_accepts(&filter, "user_annotation", "aten::b"));
	CHECK(!plan_filter_accepts(&filter, "user_annotation", "other"));
}

static void only_annotations(void)
{
	const struct plan_filter nvtx = {.only = KPROF_ONLY_NVTX}, mark = {.only = KPROF_ONLY_MARK};
	const struct catalog_row row = FIXED("kp_push", "range");
	struct catalog_framework fw = {.name = "a", .rows = &row, .nr_rows = 1};
	struct plan plan;

	CHECK_EQ(plan_library(&fw, self, "libkp.so.1", &files, &nvtx, &plan), 0);
	CHECK_EQ(plan.nr, 0);
	plan_free(&plan);
	fw.annotations = KPROF_ONLY_NVTX;
	CHECK_EQ(plan_library(&fw, self, "libkp.so.1", &files, &nvtx, &plan), 0);
	CHECK_EQ(plan.nr, 1);
	plan_free(&plan);
	CHECK_EQ(plan_library(&fw, self, "libkp.so.1", &files, &mark, &plan), 0);
	CHECK_EQ(plan.nr, 0);
	plan_free(&plan);
}

static void hidden_and_common(void)
{
	const char *const hidden[] = {"secret", NULL};
	const struct plan_filter filter = {.mark_common = true};
	const struct catalog_row rows[] = {FIXED("kp_push", "secret"),
					   FIXED("kp_endbr", "common one"),
					   FIXED("kp_other", "rare")};
	struct plan plan = plan_of(rows, 3, &filter, "libkp.so", hidden);

	CHECK_EQ(plan.nr, 2);
	CHECK_EQ(plan.hidden, 1);
	for (size_t i = 0; i < plan.nr; i++)
		CHECK_EQ(plan.probes[i].common, !strcmp(plan.probes[i].name, "common one"));
	plan_free(&plan);
}

/* Operators are called as the library's own schemas say. */
static void schema_names(void)
{
	struct catalog_row rows[] = {FIXED("_ZN2at4_ops*4callEv", "aten::%s")};
	struct plan plan;
	int found = 0;

	rows[0].naming = CATALOG_NAME_SCHEMA;
	plan = PLAN(rows, NULL);
	CHECK_EQ(plan.nr, 3);
	for (size_t i = 0; i < plan.nr; i++) {
		struct plan_probe *p = &plan.probes[i];

		if (p->offset == offset_of("_ZN2at4_ops10add_Tensor4callEv")) {
			CHECK_STR(p->name, "aten::add");
			CHECK_STR(p->overload, "Tensor");
			found++;
		} else if (p->offset == offset_of("_ZN2at4_ops3sub4callEv")) {
			CHECK_STR(p->name, "aten::sub");
			CHECK_STR(p->overload, "");
			found++;
		} else { /* no schema: its own name must do */
			CHECK_STR(p->name, "aten::no_such");
			CHECK_STR(p->overload, "");
			found++;
		}
	}
	CHECK_EQ(found, 3);
	CHECK(kp_schemas[0] == 'a');
	plan_free(&plan);
}

/* Named at each hit: by what the recipes read. */
static void recipes(void)
{
	struct catalog_row rows[] = {FIXED("kp_push", NULL)};
	struct plan plan;

	rows[0].naming = CATALOG_NAME_TEXT;
	rows[0].text = (struct kprof_recipe){.reg = KPROF_REG_ARG2, .nr_off = 1, .off = {16}};
	rows[0].value = (struct kprof_recipe){.reg = KPROF_REG_ARG1};
	plan = PLAN(rows, NULL);
	CHECK_EQ(plan.nr, 1);
	if (plan.nr) {
		CHECK(!plan.probes[0].name);
		CHECK_EQ(plan.probes[0].wire.text.reg, KPROF_REG_ARG2);
		CHECK_EQ(plan.probes[0].wire.text.off[0], 16);
		CHECK_EQ(plan.probes[0].wire.value.reg, KPROF_REG_ARG1);
		CHECK_EQ(plan.probes[0].wire.text_conditional, 0);
	}
	plan_free(&plan);
}

/* Named by their symbols; variants are the call without what their names end in. */
static void named_by_symbol(void)
{
	struct catalog_row rows[] = {FIXED("kp_pu kp_endbr", NULL), FIXED("kp_o*", NULL)};
	struct plan plan;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		rows[i].naming = CATALOG_NAME_SYMBOL;
	plan = PLAN(rows, NULL);
	CHECK_EQ(plan.rows[0].probes, 1); /* no suffixes, no variants */
	plan_free(&plan);
	rows[0].suffixes = "_x sh h s";
	rows[1].suffixes = "er";
	plan = PLAN(rows, NULL);
	CHECK_EQ(plan.nr, 3);
	for (size_t i = 0; i < plan.nr; i++) {
		const char *name = plan.probes[i].name;

		if (plan.probes[i].offset == offset_of("kp_push"))
			CHECK_STR(name, "kp_pu");
		else if (plan.probes[i].offset == offset_of("kp_other"))
			CHECK_STR(name, "kp_oth");
		else
			CHECK_STR(name, "kp_endbr");
	}
	plan_free(&plan);
}

static void arguments(void)
{
	struct catalog_row rows[] = {FIXED("kp_push", "a"), FIXED("kp_other", "b")};
	struct plan plan;

	rows[0].args[0] = (struct catalog_arg){
		.name = "bytes", .kind = CATALOG_ARG_BYTES, .from = {.reg = KPROF_REG_ARG3}};
	rows[0].args[1] =
		(struct catalog_arg){.name = "stream handle",
				     .kind = CATALOG_ARG_STREAM,
				     .from = {.reg = KPROF_REG_SP, .deref = 1, .off = 16}};
	plan = PLAN(rows, NULL);
	CHECK_EQ(plan.nr, 2);
	for (size_t i = 0; i < plan.nr; i++) {
		const struct kprof_arg *args = plan.probes[i].wire.args;
		bool a = !strcmp(plan.probes[i].name, "a");

		CHECK_EQ(args[0].reg, a ? KPROF_REG_ARG3 : KPROF_REG_NONE);
		CHECK_EQ(args[1].reg, a ? KPROF_REG_SP : KPROF_REG_NONE);
		CHECK_EQ(args[1].off, a ? 16 : 0);
		CHECK_EQ(args[1].deref, a);
		CHECK_EQ(args[2].reg, KPROF_REG_NONE);
	}
	plan_free(&plan);
}

/* Which types of activity are recorded: a row's own, or its category's. */
static void types(void)
{
	struct catalog_row rows[] = {FIXED("kp_push", "a"), FIXED("kp_other", "b")};
	struct plan_filter calls = {.types = 1ull << KPROF_ACTIVITY_CUDA_DRIVER};
	struct plan_filter ops = {.types = 1ull << KPROF_ACTIVITY_CPU_OP};
	struct plan plan;

	rows[1].category = "whatever";
	rows[1].activity = KPROF_ACTIVITY_CUDA_DRIVER;
	plan = PLAN(rows, &calls);
	CHECK_EQ(plan.nr, 1);
	if (plan.nr)
		CHECK_STR(plan.probes[0].name, "b");
	plan_free(&plan);
	plan = PLAN(rows, &ops);
	CHECK_EQ(plan.nr, 1);
	if (plan.nr)
		CHECK_STR(plan.probes[0].name, "a");
	plan_free(&plan);
	CHECK_EQ(catalog_row_type(&rows[0]), KPROF_ACTIVITY_CPU_OP);
	rows[1].activity = KPROF_ACTIVITY_NONE;
	CHECK_EQ(catalog_row_type(&rows[1]),
		 KPROF_ACTIVITY_CPU_OP); /* unknown ones are the CPU's */
}

static uint64_t set_of(const struct catalog_framework *fw)
{
	for (size_t i = 0; catalog_frameworks[i]; i++)
		if (catalog_frameworks[i] == fw)
			return 1ull << i;
	return 0;
}

/* How arguments are passed depends on the whole library, not on what --ops chooses of it. */
static void inputs(void)
{
	static const char *const ops[] = {"aten::mean"};
	const struct catalog_row rows[] = {{.source = "ops",
					    .library = "libkp.so*",
					    .symbols = "_ZN2at4_ops*4callE*",
					    .category = "cpu_op",
					    .shape = CATALOG_SPAN,
					    .naming = CATALOG_NAME_SCHEMA,
					    .inputs = CATALOG_INPUTS_SIGNATURE}};
	struct plan_filter filter = {.inputs = true, .ops = ops, .nr_ops = 1};
	struct plan plan = PLAN(rows, &filter);
	const struct signature *s = plan.nr ? plan.probes[0].signature : NULL;

	CHECK_EQ(plan.nr, 1);
	CHECK(s && s->own_optional && s->plan.nr == 2);
	if (s) {
		CHECK_EQ(s->plan.sizes_off, 56);
		CHECK_EQ(s->plan.in[1].read, KPROF_INPUT_NUMBERS);
		CHECK_EQ(s->plan.in[1].at, 2);
	}
	CHECK(!plan.no_tensors && !plan.unread);
	plan_free(&plan);
	filter.inputs = false;
	plan = PLAN(rows, &filter);
	CHECK(plan.nr == 1 && !plan.probes[0].signature);
	plan_free(&plan);
}

static void frameworks(void)
{
	char names[256], little[8];

	uint64_t torch = set_of(&catalog_pytorch) | set_of(&catalog_itt); /* of its annotations */

	CHECK_EQ(plan_frameworks_of("libtorch_cpu.so"), torch);
	CHECK_EQ(plan_frameworks_of("libtorch_cpu.so.1.13.0"), torch);
	CHECK_EQ(plan_frameworks_of("libcudart.so.12.1.105"), set_of(&catalog_cuda));
	CHECK_EQ(plan_frameworks_of("libcudart-d0da41ae.so.11.0"), set_of(&catalog_cuda));
	CHECK_EQ(plan_frameworks_of("libcuda.so.1"), set_of(&catalog_cuda));
	CHECK_EQ(plan_frameworks_of("libcudadebugger.so.1"), 0);
	CHECK_EQ(plan_frameworks_of("libc.so.6"), 0);
	CHECK_EQ(plan_frameworks_of(""), 0);
	CHECK(plan_embedded_with("libcuda.so.535.104.05") & set_of(&catalog_cuda));
	CHECK(!(plan_embedded_with("libcudart.so.12") & set_of(&catalog_cuda)));
	CHECK_EQ(plan_embedded_in(self, PLAN_ALL_FRAMEWORKS), 0);
	plan_library_names(names, sizeof(names));
	CHECK(strstr(names, "libtorch_cpu.so"));
	plan_library_names(little, sizeof(little)); /* cut, not overrun */
	CHECK(strlen(little) < sizeof(little));
}

UNIT_MAIN(TEST(places_and_costs), TEST(aliases_and_parts), TEST(unless), TEST(first_row_wins),
	  TEST(only_without), TEST(other_library), TEST(filters), TEST(only_annotations),
	  TEST(hidden_and_common), TEST(schema_names), TEST(recipes), TEST(named_by_symbol),
	  TEST(arguments), TEST(types), TEST(inputs), TEST(frameworks))
