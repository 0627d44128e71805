// SPDX-License-Identifier: BSD-2-Clause
/*
 * A program that becomes another one (argv[1], the same source built with other frames) when it
 * gets SIGUSR1. Both lie at the same addresses. Their stacks are full of addresses in decoy(),
 * which nobody calls: whoever walks one's stack by the other's tables finds it there.
 */
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#ifndef WORDS
#define WORDS 32 /* of a frame */
#endif
#define DEPTH 200

static volatile sig_atomic_t told;
static volatile unsigned long sum;

static void on_signal(int number)
{
	told = number;
}

__attribute__((noinline)) void decoy(int n)
{
	for (int i = 0; i < n; i++)
		sum += (unsigned long)i * sum;
}

__attribute__((noinline)) static void spin(void)
{
	while (!told)
		sum++;
}

__attribute__((noinline)) static void down(int left)
{
	void *volatile words[WORDS];

	for (int i = 0; i < WORDS; i++)
		words[i] = (char *)decoy + 8;
	if (left)
		down(left - 1);
	else
		spin();
	sum += (unsigned long)words[left % WORDS];
}

int main(int nr, char **argv)
{
	signal(nr > 1 ? SIGUSR1 : SIGTERM, on_signal);
	if (nr < 1)
		decoy(nr);
	printf("READY %d\n", getpid());
	fflush(stdout);
	down(DEPTH);
	if (nr > 1)
		execv(argv[1], (char *[]){argv[1], NULL});
	puts("{\"ok\":true}");
	return 0;
}
