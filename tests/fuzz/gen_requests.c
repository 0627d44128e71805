// SPDX-License-Identifier: BSD-2-Clause
/* The corpus of fuzz_requests: a life of recordings, from root and from others. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static FILE *to;

static void step(uint8_t what, uint8_t who, uint16_t number, const char *text)
{
	uint16_t bytes = text ? (uint16_t)strlen(text) : number;

	fputc(what, to);
	fputc(who, to);
	fwrite(&bytes, sizeof(bytes), 1, to);
	if (text)
		fputs(text, to);
}

static void begin(const char *folder, const char *name, const char *description)
{
	char path[4096];
	uint16_t bytes = description ? (uint16_t)strlen(description) : 0;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	if (to)
		fclose(to);
	to = fopen(path, "w");
	fputc(description != NULL, to);
	if (description)
		fwrite(&bytes, sizeof(bytes), 1, to);
	if (description)
		fputs(description, to);
}

#define ASK(who, text) step(1, who, 0, text)
#define SAYS(which, text) step(2, which, 0, text)
#define ENDS(which, status) step(3, which, status, NULL)
#define LEAVES(who, half) step(4, who, half, NULL)
#define PASS(tenths) step(5, 0, tenths, NULL)

int main(int argc, char **argv)
{
	const char *folder = argv[argc - 1];

	begin(folder, "life", NULL);
	ASK(1, "{\"do\":\"start\",\"options\":[\"-p\",\"3\",\"--shapes\"]}");
	SAYS(0, "{\"state\":\"preparing\",\"pids\":[3]}");
	SAYS(0, "{\"state\":\"prepared\",\"elapsed_ns\":1}");
	SAYS(0, "{\"state\":\"recording\",\"elapsed_ns\":1,\"events\":2,\"samples\":3}");
	ASK(2, "{\"do\":\"capturing\",\"pid\":3}");
	ASK(1, "{\"do\":\"stop\",\"pid\":3}");
	SAYS(0, "{\"state\":\"stopping\"}");
	SAYS(0, "{\"state\":\"done\",\"path\":\"x\",\"elapsed_ns\":1}");
	ENDS(0, 0);
	ASK(0, "{\"do\":\"list\"}");
	ASK(2, "{\"do\":\"list\"}");
	begin(folder, "prepared", NULL);
	ASK(2, "{\"do\":\"prepare\",\"self\":true,\"thread\":1}");
	SAYS(0, "{\"state\":\"preparing\",\"pids\":[3002]}");
	SAYS(0, "{\"log\":\"a warning\",\"hint\":\"a hint\"}");
	SAYS(0, "{\"state\":\"prepared\"}");
	ASK(2, "{\"do\":\"start\",\"self\":true}");
	LEAVES(2, 0);
	ENDS(0, 9);
	PASS(1000);
	begin(folder, "failed", NULL);
	ASK(1, "{\"do\":\"start\",\"options\":[],\"later\":true}");
	SAYS(0, "{\"state\":\"failed\",\"error\":\"no process is given\",\"hint\":\"-p\"}");
	ENDS(0, 1);
	ASK(1, "{\"do\":\"status\"}\n{\"do\":\"list\"}");
	LEAVES(1, 1);
	begin(folder, "dump", NULL);
	ASK(0, "{\"do\":\"dump\",\"last_ns\":60000000000}");
	ASK(3, "{\"do\":\"dump\"}");
	SAYS(0, "{\"state\":\"done\"}");
	ENDS(0, 0);
	begin(folder, "kept",
	      "20000101T000000-1\n{\"id\":\"20000101T000000-1\",\"state\":\"done\",\"uid\":20001,\"pids\":[1,2],"
	      "\"rounds\":1,\"begun_ms\":946684800000,\"started_ms\":946684800000,"
	      "\"ended_ms\":946684800000,\"events\":1,\"why\":\"step>500ms\"}");
	ASK(1, "{\"do\":\"get\",\"id\":\"20000101T000000-1\",\"round\":1}");
	ASK(2, "{\"do\":\"status\",\"id\":\"20000101T000000-1\"}");
	ASK(0, "{\"do\":\"cancel\",\"id\":\"20000101T000000-1\"}");
	fclose(to);
	return 0;
}
