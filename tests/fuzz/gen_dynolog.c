// SPDX-License-Identifier: BSD-2-Clause
/*
 * The first inputs of fuzz_dynolog_{datagram,config,request}.c: what Kineto and dyno send. Called
 * with tests/fuzz/corpus/dynolog, it writes to the folders beside that.
 */
#include <stdlib.h>

#include "dynolog_fixture.h"

#define DURATION                                                                                \
	"ACTIVITIES_LOG_FILE=/tmp/a.json\nPROFILE_START_TIME=1700000000123\n"                   \
	"ACTIVITIES_DURATION_MSECS=500\nPROFILE_REPORT_INPUT_SHAPES=true\n"                     \
	"PROFILE_PROFILE_MEMORY=true\nPROFILE_MEMORY=true\nPROFILE_MEMORY_DURATION_MSECS=500\n" \
	"PROFILE_WITH_STACK=true\nPROFILE_WITH_FLOPS=false\nPROFILE_WITH_MODULES=y"
#define ITERATIONS                                                                               \
	"# a comment\n ACTIVITIES_LOG_FILE = /tmp/b.pt.trace.json \nPROFILE_START_ITERATION=0\n" \
	"PROFILE_START_ITERATION_ROUNDUP=10\nACTIVITIES_ITERATIONS=3\nACTIVITY_TYPES=cpu_op\n"   \
	"ACTIVITIES_WARMUP_PERIOD_SECS=0\nACTIVITIES_DURATION_SECS=1\nCUSTOM_CONFIG=x"

static void put(const char *folder, const char *fuzzer, const char *name, const void *data,
		size_t bytes)
{
	char path[4096];
	FILE *f;

	snprintf(path, sizeof(path), "%s_%s/%s", folder, fuzzer, name);
	f = fopen(path, "we");
	if (!f || fwrite(data, 1, bytes, f) != bytes || fclose(f)) {
		perror(path);
		exit(1);
	}
}

static void put_request(const char *folder, const char *name, const char *json)
{
	char data[4096] = {7, 1};

	strcpy(data + 2, json);
	put(folder, "request", name, data, 2 + strlen(json));
}

int main(int argc, char **argv)
{
	static const int32_t pids[] = {1234, 1200, 900};
	char data[256], command[4096];

	if (argc != 2)
		return 2;
	snprintf(command, sizeof(command), "mkdir -p %s_datagram %s_config %s_request && rmdir %s",
		 argv[1], argv[1], argv[1], argv[1]);
	if (system(command))
		return 1;
	put(argv[1], "datagram", "poll", data, make_poll(data, 2, 77, pids, 3));
	put(argv[1], "datagram", "context", data, make_context(data, 1, 1234, 77));
	put(argv[1], "config", "duration", DURATION, strlen(DURATION));
	put(argv[1], "config", "iterations", ITERATIONS, strlen(ITERATIONS));
	put_request(argv[1], "status", "{\"fn\":\"getStatus\"}");
	put_request(argv[1], "pause", "{\"fn\":\"dcgmProfPause\",\"duration_s\":300}");
	put_request(
		argv[1], "trace",
		"{\"fn\":\"setKinetOnDemandRequest\",\"config\":\"ACTIVITIES_LOG_FILE=/tmp/"
		"a.json\\nPROFILE_START_TIME=0\",\"job_id\":0,\"pids\":[0],\"process_limit\":1}");
	put_request(
		argv[1], "pids",
		"{\"fn\":\"setKinetOnDemandRequest\",\"config\":\"\",\"job_id\":1,\"pids\":[3,1]}");
	return 0;
}
