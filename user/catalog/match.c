// SPDX-License-Identifier: BSD-2-Clause
/*
 * Globs over mangled names, and names of numbers. A glob works as in fnmatch(3) without flags, but
 * on bytes instead of the locale's characters, and faster: half a million symbols are matched
 * against a dozen globs at attach.
 *
 *   *  any characters   ?  one character   [a-z_] [!a-z]  one of a set   \  the next one literally
 */
#include "catalog/catalog.h"

/*
 * Whether c is in the set that begins at p, after its '['. *end: what follows the set's ']'; NULL
 * when there is none, in which case the '[' is an ordinary character.
 */
static bool in_set(const char *p, const char *glob_end, char c, const char **end)
{
	bool negated = p < glob_end && (*p == '!' || *p == '^'), found = false;
	const char *first;

	p += negated;
	for (first = p; p < glob_end && (*p != ']' || p == first); p++) {
		unsigned char low = (unsigned char)*p, high = low;

		if (p + 2 < glob_end && p[1] == '-' && p[2] != ']') {
			high = (unsigned char)p[2];
			p += 2;
		}
		if ((unsigned char)c >= low && (unsigned char)c <= high)
			found = true;
	}
	*end = p < glob_end ? p + 1 : NULL;
	return found != negated;
}

/* Matches one character of text. Returns the rest of the glob, or NULL if it does not match. */
static const char *match_one(const char *glob, const char *end, char c)
{
	const char *rest;
	bool found;

	switch (*glob) {
	case '?':
		return glob + 1;
	case '[':
		found = in_set(glob + 1, end, c, &rest);
		if (rest)
			return found ? rest : NULL;
		break;
	case '\\':
		if (glob + 1 < end)
			glob++;
	}
	return *glob == c ? glob + 1 : NULL;
}

/*
 * If a match fails, it is enough to try again from the last star: if what follows that star cannot
 * be found further on, no earlier star helps. So the cost is at most the product of the lengths.
 */
static bool match_glob(const char *glob, const char *end, const char *text)
{
	const char *star = NULL, *star_text = NULL;

	while (*text) {
		const char *rest = NULL;

		if (glob < end && *glob == '*') {
			star = ++glob;
			star_text = text;
			if (star == end)
				return true;
			continue;
		}
		if (glob < end)
			rest = match_one(glob, end, *text);
		if (rest) {
			glob = rest;
			text++;
			continue;
		}
		if (!star)
			return false;
		glob = star;
		text = ++star_text;
	}
	while (glob < end && *glob == '*')
		glob++;
	return glob == end;
}

bool catalog_match(const char *globs, const char *text)
{
	if (!globs)
		return false;
	for (;;) {
		const char *end;

		while (*globs == ' ')
			globs++;
		if (!*globs)
			return false;
		for (end = globs; *end && *end != ' '; end++)
			;
		if (match_glob(globs, end, text))
			return true;
		globs = end;
	}
}
