// SPDX-License-Identifier: BSD-2-Clause
/*
 * Any bytes as the daemon's answer to `kprof ctl`: who listens at the socket may be somebody else.
 * What is shown of it is text, without what would move a terminal's cursor. The first byte says
 * what is asked for; what follows a line is the file that comes along.
 */
#include <sys/mman.h>
#include <unistd.h>

#include "cmd/ctl/ctl.h"
#include "cmd/print/message.h"
#include "cmd/print/text.h"
#include "fuzz.h"
#include "kprof/client.h"

static const char *said, *sent;
static size_t sent_bytes;

/* ---- the daemon ---- */

const char *kprof_client_socket(const char *given)
{
	return given ? given : "";
}

int kprof_client_ask(const char *socket, const char *question, int timeout_ms, char **answer,
		     int *file)
{
	*answer = strdup(said);
	*file = -1;
	if (!sent)
		return 0;
	*file = memfd_create("sent", MFD_CLOEXEC);
	REQUIRE(pwrite(*file, sent, sent_bytes, 0) == (ssize_t)sent_bytes);
	return 0;
}

static void check_shown(const char *text)
{
	for (size_t n; *text; text += n) {
		unsigned char c = (unsigned char)*text;

		n = text_utf8(text);
		REQUIRE(n && c != 0x7f && (c >= 0x20 || c == '\n' || c == '\t'));
		REQUIRE(!(n == 2 && c == 0xc2 && (unsigned char)text[1] < 0xa0));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	static char *const questions[][5] = {
		{"status"},
		{"status", "x"},
		{"list"},
		{"start", "-p", "1"},
		{"stop", "x"},
		{"cancel", "x"},
		{"dump"},
		{"get", "x", "-o", "/dev/null"},
		{"status", "--json"},
		{"list", "--json"},
		{"dump", "-o", "/dev/null"},
		{"processes"},
		{"processes", "--json"},
		{"processes", "-p", "1"},
	};
	const size_t nr = sizeof(questions) / sizeof(questions[0]);
	char *argv[8] = {"ctl", "--config=/dev/null"}, *shown = NULL, *warned = NULL, *text;
	FILE *out = stdout, *err = stderr;
	size_t shown_bytes, warned_bytes;
	int argc = 2;

	if (!bytes)
		return 0;
	text = fuzz_text(data + 1, bytes - 1);
	sent = memchr(text, '\n', bytes - 1);
	if (sent)
		sent_bytes = (size_t)(text + bytes - 1 - ++sent);
	text[strcspn(text, "\n")] = '\0';
	said = text;
	for (size_t i = 0; i < 5 && questions[data[0] % nr][i]; i++)
		argv[argc++] = questions[data[0] % nr][i];
	stdout = open_memstream(&shown, &shown_bytes);
	stderr = open_memstream(&warned, &warned_bytes);
	REQUIRE(stdout && stderr);
	cmd_ctl.run(&cmd_ctl, argc, argv);
	fclose(stdout);
	fclose(stderr);
	stdout = out;
	stderr = err;
	check_shown(shown);
	check_shown(warned);
	free(shown);
	free(warned);
	free(text);
	return 0;
}
