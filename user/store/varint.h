/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Variable-length unsigned integers (LEB128, as in DWARF): seven bits per byte, least significant
 * first, with the top bit set on all bytes but the last. A 64-bit value takes at most ten bytes.
 */
#ifndef KPROF_STORE_VARINT_H
#define KPROF_STORE_VARINT_H

#include <stdbool.h>
#include <stdint.h>

#define VARINT_MAX_BYTES 10

/* Writes v where the caller has room for VARINT_MAX_BYTES. Returns where the next byte goes. */
static inline uint8_t *varint_put(uint8_t *to, uint64_t v)
{
	while (v >= 0x80) {
		*to++ = (uint8_t)(v | 0x80);
		v >>= 7;
	}
	*to++ = (uint8_t)v;
	return to;
}

/* Reads a number and advances *at. False: it goes beyond `end`, or has more than 64 bits. */
static inline bool varint_get(const uint8_t **at, const uint8_t *end, uint64_t *v)
{
	const uint8_t *p = *at;
	uint64_t value = 0;

	if (p < end && *p < 0x80) { /* nearly always */
		*v = *p;
		*at = p + 1;
		return true;
	}
	for (unsigned int shift = 0; p < end && shift < 64; shift += 7) {
		uint8_t byte = *p++;

		if (shift == 63 && byte > 1)
			return false;
		value |= (uint64_t)(byte & 0x7f) << shift;
		if (byte < 0x80) {
			*at = p;
			*v = value;
			return true;
		}
	}
	return false;
}

/* Maps signed numbers (as two's complement) to unsigned ones, so that those near 0 are small. */
static inline uint64_t zigzag(uint64_t v)
{
	return v << 1 ^ -(v >> 63);
}

static inline uint64_t unzigzag(uint64_t v)
{
	return v >> 1 ^ -(v & 1);
}

#endif
