// SPDX-License-Identifier: BSD-2-Clause
#include "util/step_name.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define CATEGORY "user_annotation"
#define PROFILER "ProfilerStep#"
#define OPTIMIZER "Optimizer.step#"
#define BEFORE_NUMBER " _#:=-" /* what may stand between a name and its number */

static bool ends_with_word(const char *text, size_t len, const char *word)
{
	size_t bytes = strlen(word);

	return len >= bytes && !strncasecmp(text + len - bytes, word, bytes) &&
	       (len == bytes || !isalpha((unsigned char)text[len - bytes - 1]));
}

/* Is it the chosen name, or that and a number? len: without the number. */
static bool is_chosen(const char *name, size_t len, const char *chosen)
{
	size_t bytes = strlen(chosen);

	if (!strcmp(name, chosen))
		return true;
	if (len < bytes || strncmp(name, chosen, bytes) != 0)
		return false;
	return name[len] && strspn(name + bytes, BEFORE_NUMBER) >= len - bytes;
}

struct step_name step_name(const char *category, const char *name, const char *chosen)
{
	struct step_name out = {.kind = STEP_NAMED};
	size_t len = strlen(name), digits = 0;

	if (strcmp(category, CATEGORY) != 0)
		return (struct step_name){0};
	if (!chosen && !strncmp(name, OPTIMIZER, strlen(OPTIMIZER)))
		return (struct step_name){.kind = STEP_OPTIMIZER};
	while (digits < len && isdigit((unsigned char)name[len - digits - 1]))
		digits++;
	if (digits && digits <= 18) {
		out.numbered = true;
		out.number = strtoull(name + len - digits, NULL, 10);
	}
	len -= digits;
	if (chosen) {
		out.kind = STEP_CHOSEN;
		return is_chosen(name, len, chosen) ? out : (struct step_name){0};
	}
	if (digits && len == strlen(PROFILER) && !strncmp(name, PROFILER, len)) {
		out.kind = STEP_PROFILER;
		return out;
	}
	while (len && strchr(BEFORE_NUMBER, name[len - 1]))
		len--;
	if (ends_with_word(name, len, "step") || ends_with_word(name, len, "iteration") ||
	    ends_with_word(name, len, "iter"))
		return out;
	return (struct step_name){0};
}
