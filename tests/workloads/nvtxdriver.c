// SPDX-License-Identifier: BSD-2-Clause
/*
 * NVTX's functions as a test double (-DNVTX_LIBRARY: libnvToolsExt.so.1, which no tool uses: they
 * do nothing), and a program that calls them and counts. Compiled in one piece the program stands
 * for one that has the headers of version 3 in it. The layout of the attributes is that of
 * nvToolsExt.h. Protocol: see protocol.py.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>
#include <wchar.h>

struct attributes {
	uint16_t version, size;
	uint32_t category;
	int32_t color_type;
	uint32_t color;
	int32_t payload_type, reserved;
	uint64_t payload;
	int32_t message_type;
	const char *message;
};
_Static_assert(offsetof(struct attributes, message) == 40, "nvtx: message");

int nvtxRangePushA(const char *message);
int nvtxRangePushW(const wchar_t *message);
int nvtxRangePushEx(const struct attributes *a);
int nvtxDomainRangePushEx(void *domain, const struct attributes *a);
int nvtxRangePop(void);
int nvtxDomainRangePop(void *domain);
void nvtxMarkA(const char *message);
void nvtxMarkEx(const struct attributes *a);
void nvtxDomainMarkEx(void *domain, const struct attributes *a);
uint64_t nvtxRangeStartA(const char *message);
void nvtxRangeEnd(uint64_t id);

#ifndef NVTX_PROGRAM
#define NOTHING __attribute__((noinline, noipa, visibility("default")))

NOTHING int nvtxRangePushA(const char *message)
{
	return -2;
}

NOTHING int nvtxRangePushW(const wchar_t *message)
{
	return -2;
}

NOTHING int nvtxRangePushEx(const struct attributes *a)
{
	return -2;
}

NOTHING int nvtxDomainRangePushEx(void *domain, const struct attributes *a)
{
	return -2;
}

NOTHING int nvtxRangePop(void)
{
	return -2;
}

NOTHING int nvtxDomainRangePop(void *domain)
{
	return -2;
}

NOTHING void nvtxMarkA(const char *message)
{
	__asm__ volatile("");
}

NOTHING void nvtxMarkEx(const struct attributes *a)
{
	__asm__ volatile("");
}

NOTHING void nvtxDomainMarkEx(void *domain, const struct attributes *a)
{
	__asm__ volatile("");
}

NOTHING uint64_t nvtxRangeStartA(const char *message)
{
	return 0;
}

NOTHING void nvtxRangeEnd(uint64_t id)
{
	__asm__ volatile("");
}
#endif

#ifndef NVTX_LIBRARY
enum { ROUNDS = 30 };

int main(void)
{
	struct attributes a = {.version = 3, .size = sizeof(a), .message_type = 1};
	/* payload types: 1 and 2 are 64 bits without and with a sign, 3 is a double, 5 an int */
	struct attributes more = {.version = 3,
				  .size = sizeof(more),
				  .message_type = 1,
				  .category = 7,
				  .color_type = 1,
				  .color = 0xff102030,
				  .payload_type = 2,
				  .payload = (uint64_t)-5};
	struct attributes half = {.version = 3,
				  .size = sizeof(half),
				  .message_type = 1,
				  .payload_type = 3,
				  .payload = 0x3fe0000000000000}; /* 0.5 */
	char line[8];

	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("READY %d\n", getpid());
	if (!fgets(line, sizeof(line), stdin))
		return 9;
	for (int i = 0; i < ROUNDS; i++) {
		nvtxRangePushA("plain");
		more.message = "with attributes";
		nvtxRangePushEx(&more);
		a.message = "in a domain";
		nvtxDomainRangePushEx(&a, &a);
		a.message = NULL;
		nvtxRangePushEx(&a); /* its name is not known */
		nvtxRangePushW(L"wide");
		nvtxMarkA("a mark");
		half.message = "a mark with attributes";
		nvtxMarkEx(&half);
		nvtxDomainMarkEx(&a, &half);
		nvtxRangePop();
		nvtxRangePop();
		nvtxDomainRangePop(&a);
		nvtxRangePop();
		nvtxRangePop();
		nvtxRangeEnd(nvtxRangeStartA("anywhere"));
	}
	printf("{\"rounds\": %d}\n", ROUNDS);
	return fgets(line, sizeof(line), stdin) != NULL;
}
#endif
