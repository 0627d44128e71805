// SPDX-License-Identifier: BSD-2-Clause
#include "cmd/options/value.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define MOST_SECONDS 315360000.0 /* ten years */

bool value_duration(const char *text, uint64_t *ns)
{
	static const struct {
		const char *name;
		double seconds;
	} units[] = {{"", 1},   {"s", 1},    {"ms", 1e-3}, {"us", 1e-6},
		     {"m", 60}, {"min", 60}, {"h", 3600},  {"d", 86400}};
	size_t digits = strspn(text, "0123456789.");
	double value;
	char *end;

	/* strtod() alone would accept "inf", "0x1p3" and leading blanks. */
	value = strtod(text, &end);
	if (!digits || end != text + digits)
		return false;
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (strcmp(end, units[i].name))
			continue;
		value *= units[i].seconds;
		if (value && !(value >= 1e-9 && value <= MOST_SECONDS))
			return false;
		*ns = (uint64_t)(value * 1e9 + 0.5);
		return true;
	}
	return false;
}

bool value_uint(const char *text, uint64_t least, uint64_t most, uint64_t *value)
{
	unsigned long long n;
	char *end;

	if (!isdigit((unsigned char)*text)) /* strtoull() would accept "-1" and blanks */
		return false;
	errno = 0;
	n = strtoull(text, &end, 10);
	if (*end || errno || n < least || n > most)
		return false;
	*value = n;
	return true;
}

bool value_percent(const char *text, double *share)
{
	size_t digits = strspn(text, "0123456789.");
	char *end;

	*share = strtod(text, &end) / 100;
	return digits && end == text + digits && (!*end || !strcmp(end, "%")) && *share <= 1e4;
}

bool value_size(const char *text, uint64_t *bytes)
{
	static const char letters[] = "KMGT";
	size_t digits = strspn(text, "0123456789");
	char number[24];
	const char *unit = text + digits, *letter;
	uint64_t value;
	int shift = 0;

	if (digits >= sizeof(number))
		return false;
	memcpy(number, text, digits);
	number[digits] = '\0';
	if (!value_uint(number, 1, UINT64_MAX, &value))
		return false;
	letter = *unit ? strchr(letters, toupper((unsigned char)*unit)) : NULL;
	if (letter) {
		shift = 10 * (int)(letter - letters + 1);
		unit++;
	}
	if (strcmp(unit, "") && strcmp(unit, "B") && (!letter || strcmp(unit, "iB")))
		return false;
	if (value > UINT64_MAX >> shift)
		return false;
	*bytes = value << shift;
	return true;
}

bool value_pid(const char *text, pid_t *pid)
{
	uint64_t value;

	if (!value_uint(text, 1, INT_MAX, &value))
		return false;
	*pid = (pid_t)value;
	return true;
}

/* ---- lists ---- */

bool value_list_add(struct value_list *list, const char *text, size_t len)
{
	char **more = reallocarray(list->items, list->nr + 1, sizeof(*more));

	if (!more)
		return false;
	list->items = more;
	more[list->nr] = strndup(text, len);
	return more[list->nr] && ++list->nr;
}

bool value_list_split(struct value_list *list, const char *text)
{
	for (;;) {
		size_t len = strcspn(text, ",");

		if (!len || !value_list_add(list, text, len))
			return false;
		if (!text[len])
			return true;
		text += len + 1;
	}
}

void value_list_free(struct value_list *list)
{
	for (size_t i = 0; i < list->nr; i++)
		free(list->items[i]);
	free(list->items);
}

bool value_pids_split(struct value_pids *pids, const char *text)
{
	struct value_list list = {0};
	bool fine = value_list_split(&list, text);
	pid_t *more;

	for (size_t i = 0; i < list.nr && fine; i++) {
		bool known = false;
		pid_t pid;

		fine = value_pid(list.items[i], &pid);
		for (size_t k = 0; k < pids->nr && fine; k++)
			known |= pids->items[k] == pid;
		if (!fine || known)
			continue;
		more = reallocarray(pids->items, pids->nr + 1, sizeof(*more));
		fine = more;
		if (!more)
			continue;
		pids->items = more;
		more[pids->nr++] = pid;
	}
	value_list_free(&list);
	return fine;
}
