// SPDX-License-Identifier: BSD-2-Clause
/* Any bytes as code: the answers lie within the code, and agree with each other. */
#include "fuzz.h"
#include "symbol/x86/x86.h"

static void check_entry(const uint8_t *code, size_t bytes)
{
	struct insn_entry e;

	insn_entry_site(code, bytes, &e);
	REQUIRE(e.skip_bytes <= bytes && e.skip_bytes <= 4 + 16);
	REQUIRE(insn_cost(code + e.skip_bytes, bytes - e.skip_bytes) == e.cost);
}

static void check_return(const uint8_t *code, size_t bytes)
{
	struct insn_return r;

	insn_return_site(code, bytes, &r);
	switch (r.kind) {
	case INSN_RETURN_SITE:
		REQUIRE(r.skip_bytes < bytes && r.sp_delta_bytes >= 0);
		REQUIRE(r.cost != INSN_FORBIDDEN);
		REQUIRE(insn_cost(code + r.skip_bytes, bytes - r.skip_bytes) == r.cost);
		REQUIRE(r.result.reg < CODE_NR && (r.result.in_memory || !r.result.disp_bytes));
		REQUIRE(r.skip_bytes || (r.keeps_result && r.result.reg == CODE_AX));
		break;
	case INSN_RETURN_FOLLOW:
		REQUIRE(r.follow_bytes >= 0);
		break;
	default:
		break;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	/* Of exactly that size, so that the sanitizer sees a byte read too far. */
	uint8_t *code = malloc(bytes ? bytes : 1);
	int32_t disp;

	REQUIRE(code);
	if (bytes)
		memcpy(code, data, bytes);
	check_entry(code, bytes);
	check_return(code, bytes);
	if (!insn_first_field(code, bytes, 1 + (int)(bytes % 6), 1, &disp))
		REQUIRE(disp >= 1);
	free(code);
	return 0;
}
