// SPDX-License-Identifier: BSD-2-Clause
/* Where Open MPI's numbers are, from functions of our own that look like its; names and handles. */
#include "capture/probe/messages.h"

#include <errno.h>
#include <string.h>

#include "catalog/message.h"
#include "unit.h"

#define FUNCTION(name, code)                                                           \
	__asm__(".text\n.globl " #name "\n" #name ":\n" code "ret\n" #name "_end:\n"); \
	extern const uint8_t name[], name##_end[]

/* (object, where to) */
FUNCTION(mp_number, "push %rbp\nmov %rsi, %rbp\npush %rbx\nmov %rdi, %rbx\ntest %rdi, %rdi\nje 1f\n"
		    "xor %eax, %eax\npop %rbx\npop %rbp\nret\n1: mov 0xe4(%rbx), %eax\n"
		    "mov %eax, 0(%rbp)\npop %rbx\npop %rbp\n");
FUNCTION(mp_plain, "mov 8(%rdi), %edx\nmov %edx, (%rsi)\n");
FUNCTION(mp_lost, "mov %rax, %rdi\nmov 8(%rdi), %edx\nmov %edx, (%rsi)\n");
FUNCTION(mp_elsewhere, "mov 8(%rdi), %edx\nmov %edx, 4(%rsi)\n");
FUNCTION(mp_changed, "mov 8(%rdi), %edx\ninc %edx\nmov %edx, (%rsi)\n");
FUNCTION(mp_after_call, "call 1f\n1: mov 8(%rdi), %edx\nmov %edx, (%rsi)\n");
FUNCTION(mp_dead, "jmp 1f\nmov 8(%rdi), %edx\nmov %edx, (%rsi)\n1:\n");
FUNCTION(mp_number_of,
	 "mov %rdi, %rbx\nmov 0xf8(%rbx), %rax\nmov 0x10(%rax), %eax\nmov %eax, (%rsi)\n");
FUNCTION(mp_number_of_other, "mov 0xf8(%rdi), %rax\nmov 0x10(%rdx), %eax\nmov %eax, (%rsi)\n");

#define BYTES(name) name, (size_t)(name##_end - name)

static void numbers(void)
{
	int32_t off = 0, pointer = 0;

	CHECK_EQ(messages_number(BYTES(mp_number), &off), 0);
	CHECK_EQ(off, 0xe4);
	CHECK_EQ(messages_number(BYTES(mp_plain), &off), 0);
	CHECK_EQ(off, 8);
	CHECK_EQ(messages_number(BYTES(mp_lost), &off), -ENOENT);
	CHECK_EQ(messages_number(BYTES(mp_elsewhere), &off), -ENOENT);
	CHECK_EQ(messages_number(BYTES(mp_changed), &off), -ENOENT);
	CHECK_EQ(messages_number(BYTES(mp_after_call), &off), -ENOENT);
	CHECK_EQ(messages_number(BYTES(mp_dead), &off), -ENOENT);
	CHECK_EQ(messages_number(BYTES(mp_number_of), &off), -ENOENT);
	CHECK_EQ(messages_number_of(BYTES(mp_number_of), &pointer, &off), 0);
	CHECK_EQ(pointer, 0xf8);
	CHECK_EQ(off, 0x10);
	CHECK_EQ(messages_number_of(BYTES(mp_number_of_other), &pointer, &off), -ENOENT);
	CHECK_EQ(messages_number_of(BYTES(mp_plain), &pointer, &off), -ENOENT);
	for (size_t i = 0; i < (size_t)(mp_plain_end - mp_plain) - 1; i++)
		CHECK_EQ(messages_number(mp_plain, i, &off), -ENOENT);
}

static bool type(const char *text, char name[CATALOG_MESSAGE_NAME_BYTES], uint32_t *bytes)
{
	uint64_t words[2] = {0};

	memcpy(words, text, strnlen(text, sizeof(words)));
	return catalog_message_type(words, false, name, bytes);
}

static uint64_t word(const char *text)
{
	uint64_t v = 0;

	memcpy(&v, text, strnlen(text, sizeof(v)));
	return v;
}

static void names(void)
{
	const uint64_t handle[2] = {0x4c00080b, 0}, other[2] = {0x4c00080c, 0}, none[2] = {0};
	char name[CATALOG_MESSAGE_NAME_BYTES];
	uint32_t bytes = 0;

	CHECK(type("MPI_DOUBLE", name, &bytes) && bytes == 8 && !strcmp(name, "MPI_DOUBLE"));
	CHECK(type("MPI_INT", name, &bytes) && bytes == 4);
	CHECK(!type("MPI_INTEGER", name, &bytes));
	CHECK(!type("", name, &bytes));
	/* two names with the same 16 characters, of which no more was read */
	CHECK(!type("MPI_UNSIGNED_LONG_LONG", name, &bytes));
	CHECK(catalog_message_type(handle, true, name, &bytes) && bytes == 8);
	CHECK(!strcmp(name, "MPI_DOUBLE"));
	CHECK(!catalog_message_type(other, true, name, &bytes));
	CHECK(!catalog_message_type(none, true, name, &bytes));
	CHECK(!strcmp(catalog_message_reduction(word("MPI_MAX"), false), "MAX"));
	CHECK(!strcmp(catalog_message_reduction(word("MPI_MAXLOC"), false), "MAXLOC"));
	CHECK(!catalog_message_reduction(word("MPI_NO_OP"), false));
	CHECK(!strcmp(catalog_message_reduction(0x58000003, true), "SUM"));
	CHECK(!catalog_message_reduction(0, true) && !catalog_message_reduction(0, false));
}

UNIT_MAIN(TEST(numbers), TEST(names))
