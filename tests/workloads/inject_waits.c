// SPDX-License-Identifier: BSD-2-Clause
/* Says READY, and waits for the end of its input: with whatever C library, or none. */
#ifdef NO_LIBC
void _start(void);

void _start(void)
{
	static const char ready[] = "READY 0\n";
	char c;
	int n;

	__asm__ volatile("int $0x80" : "=a"(n) : "a"(4), "b"(1), "c"(ready), "d"(8) : "memory");
	do
		__asm__ volatile("int $0x80"
				 : "=a"(n)
				 : "a"(3), "b"(0), "c"(&c), "d"(1)
				 : "memory");
	while (n > 0);
	__asm__ volatile("int $0x80" ::"a"(1), "b"(0));
	__builtin_unreachable();
}
#else
#include <stdio.h>
#include <unistd.h>

int main(void)
{
	char c;

	printf("READY %d\n", (int)getpid());
	fflush(stdout);
	while (read(0, &c, 1) > 0)
		;
	return 0;
}
#endif
