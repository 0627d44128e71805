// SPDX-License-Identifier: BSD-2-Clause
/*
 * Reads the sections: descriptions of functions (FDEs) and what those have in common (CIEs).
 * cfi_run.c executes their instructions.
 */
#include "symbol/unwind/cfi.h"

#include <dwarf.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "symbol/unwind/cfi_priv.h"

#define EH_PE_FORMAT 0x0f /* of DW_EH_PE_*: how a number is written */
#define EH_PE_BASE 0x70   /* what it is relative to */

#define CIE_CACHE 16

struct entry {                 /* a length-prefixed record of the section */
	struct cfi_bytes body; /* the bytes after the id */
	uint64_t id;
	size_t id_at; /* offset of the id in the section */
	bool wide;    /* 64-bit DWARF */
};

struct reader {
	const struct cfi_section *section;
	struct cfi_cie cies[CIE_CACHE];
	uint64_t cie_at[CIE_CACHE]; /* offset of the CIE + 1; 0: empty */
	uint64_t work;              /* how many bytes of instructions may still be executed */
};

/* ---- numbers ---- */

static uint64_t get_encoded(struct cfi_bytes *b, uint8_t encoding,
			    const struct cfi_section *section)
{
	uint64_t at = section->vaddr + (uint64_t)(b->at - section->bytes), v;

	switch (encoding & EH_PE_FORMAT) {
	case DW_EH_PE_udata2:
		v = cfi_fixed(b, 2);
		break;
	case DW_EH_PE_sdata2:
		v = (uint64_t)(int16_t)cfi_fixed(b, 2);
		break;
	case DW_EH_PE_udata4:
		v = cfi_fixed(b, 4);
		break;
	case DW_EH_PE_sdata4:
		v = (uint64_t)(int32_t)cfi_fixed(b, 4);
		break;
	case DW_EH_PE_absptr:
	case DW_EH_PE_udata8:
	case DW_EH_PE_sdata8:
		v = cfi_fixed(b, 8);
		break;
	default:
		b->bad = true;
		return 0;
	}
	if ((encoding & EH_PE_BASE) == DW_EH_PE_pcrel)
		v += at;
	else if (encoding & EH_PE_BASE)
		b->bad = true; /* relative to a base that files for x86-64 do not use */
	return v;
}

/* ---- records ---- */

/* Reads the record at *at. False: none is left. A length that leaves the section ends it. */
static bool next_entry(const struct cfi_section *s, size_t *at, struct entry *e)
{
	struct cfi_bytes b = {.at = s->bytes + *at, .end = s->bytes + s->size};
	uint64_t length = cfi_fixed(&b, 4);

	e->wide = length == UINT32_MAX;
	if (e->wide)
		length = cfi_fixed(&b, 8);
	if (b.bad || !length || length > (uint64_t)(b.end - b.at))
		return false;
	b.end = b.at + length;
	e->id_at = (size_t)(b.at - s->bytes);
	e->id = cfi_fixed(&b, e->wide && s->debug_frame ? 8 : 4);
	e->body = b;
	*at = (size_t)(b.end - s->bytes);
	return true;
}

static bool is_cie(const struct cfi_section *s, const struct entry *e)
{
	if (!s->debug_frame)
		return e->id == 0;
	return e->id == (e->wide ? UINT64_MAX : UINT32_MAX);
}

/* Offset of the CIE that a description refers to; SIZE_MAX: outside of the section. */
static size_t cie_offset(const struct cfi_section *s, const struct entry *e)
{
	if (s->debug_frame)
		return e->id < s->size ? (size_t)e->id : SIZE_MAX;
	return e->id <= e->id_at ? e->id_at - (size_t)e->id : SIZE_MAX;
}

static void parse_augmentation(struct cfi_bytes *b, const char *augmentation,
			       const struct cfi_section *s, struct cfi_cie *cie)
{
	for (const char *a = augmentation; *a && !b->bad; a++) {
		uint8_t encoding;

		switch (*a) {
		case 'R':
			cie->encoding = (uint8_t)cfi_fixed(b, 1);
			break;
		case 'L':
			cfi_fixed(b, 1);
			break;
		case 'P':
			encoding = (uint8_t)cfi_fixed(b, 1);
			/* Only the pointer's size is needed, not its value. */
			if (encoding != DW_EH_PE_omit)
				get_encoded(b, encoding & EH_PE_FORMAT, s);
			break;
		case 'S':
			cie->signal = true;
			break;
		case 'B':
			break;
		default: /* an unknown letter: the rest of the augmentation data is skipped */
			return;
		}
	}
}

static bool parse_cie(const struct cfi_section *s, size_t at, struct cfi_cie *cie)
{
	struct entry e;
	struct cfi_bytes b, data;
	const char *augmentation;
	uint64_t version;

	memset(cie, 0, sizeof(*cie));
	if (!next_entry(s, &at, &e) || !is_cie(s, &e))
		return false;
	b = e.body;
	version = cfi_fixed(&b, 1);
	augmentation = cfi_string(&b);
	if (b.bad || (version != 1 && version != 3 && version != 4))
		return false;
	if (version == 4) {
		b.bad |= cfi_fixed(&b, 1) != 8; /* address size */
		b.bad |= cfi_fixed(&b, 1) != 0; /* segment selector size */
	}
	if (!strncmp(augmentation, "eh", 2))
		cfi_fixed(&b, 8);
	cie->code_align = cfi_uleb(&b);
	cie->data_align = cfi_sleb(&b);
	cie->return_register = version == 1 ? cfi_fixed(&b, 1) : cfi_uleb(&b);
	cie->encoding = DW_EH_PE_absptr;
	if (*augmentation == 'z') {
		data = cfi_take(&b, cfi_uleb(&b));
		parse_augmentation(&data, augmentation + 1, s, cie);
		cie->augmented = true;
		b.bad |= data.bad;
	} else if (*augmentation && strcmp(augmentation, "eh")) {
		return false;
	}
	cie->instructions = b;
	return !b.bad && !(cie->encoding & DW_EH_PE_indirect);
}

/* The CIE at this offset, from the cache if it is there. NULL: damaged. */
static const struct cfi_cie *find_cie(struct reader *r, size_t at)
{
	struct cfi_cie *cie;
	size_t slot = at / 8 % CIE_CACHE;

	if (at >= r->section->size)
		return NULL;
	cie = &r->cies[slot];
	if (r->cie_at[slot] == at + 1)
		return cie;
	r->cie_at[slot] = 0;
	if (!parse_cie(r->section, at, cie) || cfi_run_initial(cie, &r->work))
		return NULL;
	r->cie_at[slot] = at + 1;
	return cie;
}

/* Reads one description. 0; -1: damaged; less: what a callback has returned. */
static int read_range(struct reader *r, const struct entry *e, const struct cfi_ops *ops,
		      struct cfi_stats *stats)
{
	const struct cfi_cie *cie = find_cie(r, cie_offset(r->section, e));
	struct cfi_bytes b = e->body;
	struct cfi_range range;
	uint64_t length;
	int err;

	if (!cie)
		return CFI_DAMAGED;
	range.start = get_encoded(&b, cie->encoding, r->section);
	length = get_encoded(&b, cie->encoding & EH_PE_FORMAT, r->section);
	if (cie->augmented)
		cfi_take(&b, cfi_uleb(&b));
	range.end = range.start + length;
	if (b.bad || range.end < range.start)
		return CFI_DAMAGED;
	if (!length)
		return 0;
	stats->ranges++;
	err = ops->range(ops->ctx, &range);
	if (err)
		return err < 0 ? err : 0;
	return cfi_run(cie, b, &range, ops, stats, &r->work);
}

int cfi_read(const struct cfi_section *section, const struct cfi_ops *ops, struct cfi_stats *stats)
{
	/*
	 * Usually each byte of instructions is executed once, those of CIEs a few times. In a
	 * hostile file every description could execute a long CIE of its own; this bound ends that.
	 */
	struct reader r = {.section = section, .work = 64 * (uint64_t)section->size + 4096};
	struct entry e;
	size_t at = 0;
	int err;

	memset(stats, 0, sizeof(*stats));
	while (next_entry(section, &at, &e)) {
		if (is_cie(section, &e))
			continue;
		err = read_range(&r, &e, ops, stats);
		if (err == CFI_DAMAGED)
			stats->malformed++;
		else if (err)
			return err;
	}
	return 0;
}

int cfi_read_at(const struct cfi_section *section, size_t offset, const struct cfi_ops *ops)
{
	struct reader r = {.section = section, .work = 64 * (uint64_t)section->size + 4096};
	struct cfi_stats stats = {0};
	struct entry e;
	int err;

	if (offset >= section->size || !next_entry(section, &offset, &e) || is_cie(section, &e))
		return -ENOENT;
	err = read_range(&r, &e, ops, &stats);
	return err == CFI_DAMAGED ? -ENOENT : err;
}
