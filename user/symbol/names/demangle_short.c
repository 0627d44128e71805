// SPDX-License-Identifier: BSD-2-Clause
/*
 * Shortens demangled names for display. There is no written grammar of demanglers' output; this
 * code reads it once from left to right and goes by brackets, blanks and the word "operator".
 */
#include "symbol/names/names.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "util/util.h"

#define ARGUMENTS "<...>"
#define MAX_DEPTH 32 /* of nested <T as Trait> in Rust's names */

struct shortening {
	const char *at;
	char *out; /* large enough for the input with each "<" replaced by ARGUMENTS */
	size_t nr;
	/* offset in .out where the name begins: after a phrase that is kept */
	size_t base;
	bool params;  /* a list of parameters has just ended: qualifiers may follow */
	bool convert; /* the name is "operator" and a type, up to the parameters */
	int depth;    /* nesting in Rust's <…>, in which only template arguments are removed */
};

/* Prefixes that demanglers write before a name when the symbol is only about what is named. */
static const char *const phrases[] = {
	"non-virtual thunk to ",
	"virtual thunk to ",
	"covariant return thunk to ",
	"guard variable for ",
	"vtable for ",
	"VTT for ",
	"typeinfo for ",
	"typeinfo name for ",
	"TLS init function for ",
	"TLS wrapper function for ",
	"reference temporary for ",
	"hidden alias for ",
	"transaction clone for ",
	"non-transaction clone for ",
};

static void put(struct shortening *s, const char *text, size_t nr)
{
	memcpy(s->out + s->nr, text, nr);
	s->nr += nr;
}

static void copy(struct shortening *s, size_t nr)
{
	put(s, s->at, nr);
	s->at += nr;
}

static bool word_char(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '$' || c == '.';
}

/* Whether the whole word "operator" is at `at`; `before` is the preceding character. */
static bool is_operator(const char *at, char before)
{
	return !strncmp(at, "operator", 8) && !word_char(before) && !word_char(at[8]);
}

/*
 * How many characters the sign of an operator has if it consists of characters that look like
 * brackets; otherwise 0.
 */
static size_t operator_signs(const char *at)
{
	static const char *const signs[] = {
		"<=>", "<<=", ">>=", "->*", "<<", ">>", "<=", ">=", "->", "()", "[]", "<", ">"};

	for (size_t i = 0; i < ARRAY_SIZE(signs); i++) {
		if (!strncmp(at, signs[i], strlen(signs[i])))
			return strlen(signs[i]);
	}
	return 0;
}

/*
 * Returns what follows the bracket that closes the one at `at`, or the end of the text. Signs of
 * operators and arrows are not brackets, and neither is a > within parentheses: "<(a > b)>".
 */
static const char *past_bracket(const char *at)
{
	size_t angles = 0, others = 0, stack = 0;
	/*
	 * The number of angle brackets open outside of each open parenthesis, by its nesting depth.
	 */
	size_t outer[64];

	for (const char *from = at; *at; at++) {
		if (at > from && is_operator(at, at[-1])) {
			at += 7;
			at += operator_signs(at + 1);
			continue;
		}
		switch (*at) {
		case '<':
			angles++;
			break;
		case '>':
			if (angles && at[-1] != '-')
				angles--;
			break;
		case '(':
		case '{':
		case '[':
			if (stack < ARRAY_SIZE(outer))
				outer[stack] = angles;
			stack++;
			others++;
			break;
		case ')':
		case '}':
		case ']':
			if (stack && --stack < ARRAY_SIZE(outer))
				angles = outer[stack];
			others -= others > 0;
			break;
		default:
			continue;
		}
		if (!angles && !others)
			return at + 1;
	}
	return at;
}

/* Copies "{lambda(int)#1}" without its parameters. */
static void put_braces(struct shortening *s)
{
	const char *end = past_bracket(s->at);

	while (s->at < end) {
		if (*s->at == '(' || *s->at == '<') {
			const char *next = past_bracket(s->at);

			if (*s->at == '<')
				put(s, ARGUMENTS, sizeof(ARGUMENTS) - 1);
			s->at = next < end ? next : end;
			continue;
		}
		copy(s, 1);
	}
}

/*
 * Copies the word "operator" and its sign or the type that it converts to; template arguments are
 * shortened.
 */
static void put_operator(struct shortening *s)
{
	size_t signs;

	copy(s, 8);
	signs = operator_signs(s->at);
	if (!signs)
		signs = strspn(s->at, "+-*/%^&|~!=,");
	copy(s, signs);
	if (!signs && *s->at == ' ')
		s->convert = true; /* "operator bool", "operator new[]" */
	if (signs &&
	    (s->at[0] == '<' || (s->at[0] == ' ' && s->at[1] == '<'))) { /* "operator< <int>" */
		s->at = past_bracket(s->at + (*s->at == ' '));
		put(s, ARGUMENTS, sizeof(ARGUMENTS) - 1);
	}
}

static void angle(struct shortening *s)
{
	bool in_path = s->nr > s->base &&
		       (word_char(s->out[s->nr - 1]) || strchr(":>)}]", s->out[s->nr - 1]));

	/* At the beginning of a name: Rust's "<T as Trait>::method". */
	if ((!in_path || (s->depth && s->out[s->nr - 1] == '<')) && s->depth < MAX_DEPTH) {
		s->depth++;
		copy(s, 1);
		return;
	}
	s->at = past_bracket(s->at);
	put(s, ARGUMENTS, sizeof(ARGUMENTS) - 1);
}

/* Handles a parenthesis. */
static void paren(struct shortening *s)
{
	static const char anonymous[] = "(anonymous namespace)";

	if (!strncmp(s->at, anonymous, sizeof(anonymous) - 1)) {
		copy(s, sizeof(anonymous) - 1);
		return;
	}
	/* A function that returns a pointer to a function: "void (*name(int))(char)". */
	if (s->nr == s->base && (s->at[1] == '*' || s->at[1] == '&') && s->at[2] != ')') {
		s->at += 2;
		return;
	}
	s->at = past_bracket(s->at);
	s->params = true;
	s->convert = false;
}

/*
 * Skips a "const", "volatile", "&", "&&" or "noexcept" that follows parameters. NULL: something
 * else follows.
 */
static const char *qualifier(const char *at)
{
	static const char *const words[] = {" const", " volatile", " &&",
					    " &",     " noexcept", " restrict"};

	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		size_t nr = strlen(words[i]);

		if (!strncmp(at, words[i], nr) && !word_char(at[nr]))
			return at + nr;
	}
	return NULL;
}

/*
 * Handles a blank, which may be after a type, before qualifiers, or within the name. False: the
 * name has ended.
 */
static bool blank(struct shortening *s)
{
	const char *after = s->params ? qualifier(s->at) : NULL;

	if (after) {
		s->at = after;
		return true;
	}
	if (!strncmp(s->at, " [clone ", 8))
		return false;
	if (s->convert) {
		copy(s, 1);
		return true;
	}
	s->at++;
	s->nr = s->base;
	s->params = false;
	return true;
}

static bool step(struct shortening *s)
{
	if (is_operator(s->at, s->nr ? s->out[s->nr - 1] : ' ')) {
		put_operator(s);
		return true;
	}
	switch (*s->at) {
	case '<':
		angle(s);
		return true;
	case '{':
		put_braces(s);
		return true;
	case '>':
		if (s->depth && s->nr && s->out[s->nr - 1] != '-')
			s->depth--;
		copy(s, 1);
		return true;
	case '(':
		if (s->depth)
			break;
		paren(s);
		return true;
	case '[':
		if (!s->depth && !s->convert) { /* "[abi:cxx11]" */
			s->at = past_bracket(s->at);
			return true;
		}
		break;
	case ' ':
		if (!s->depth)
			return blank(s);
		break;
	case ')':
		if (!s->depth)
			return false; /* the end of a returned pointer to a function */
		break;
	default:
		if (s->params && *s->at != ':')
			s->params = false;
		break;
	}
	copy(s, 1);
	return true;
}

/* The size of the result, at most: every "<" may become ARGUMENTS. */
static size_t room_for(const char *name)
{
	size_t nr = strlen(name) + 1;

	for (; *name; name++)
		nr += *name == '<' ? sizeof(ARGUMENTS) - 1 : 0;
	return nr;
}

/* ---- names that could not be demangled ---- */

/* Reads one identifier ("3foo") of a mangled name. NULL: it is something else. */
static const char *source_name(const char *at, const char **name, size_t *nr)
{
	size_t bytes = 0;

	if (*at < '1' || *at > '9')
		return NULL;
	for (; isdigit((unsigned char)*at) && bytes < 10000; at++)
		bytes = bytes * 10 + (size_t)(*at - '0');
	if (strnlen(at, bytes) < bytes)
		return NULL;
	*name = at;
	*nr = bytes;
	return at + bytes;
}

/*
 * Writes the plain identifiers that a nested name begins with (Itanium C++ ABI, section 5.1):
 * "at::internal::invoke_parallel<...>" for "_ZN2at8internal15invoke_parallelI…". This is for names
 * that GCC makes but GNU's demangler does not understand, such as those of PyTorch's parallel loops
 * (GCC 13, Debian's 2.40).
 */
static void put_leading_names(struct shortening *s)
{
	const char *at = s->at + 2, *name;
	size_t bytes;

	at += strspn(at, "L");
	if (*at == 'N')
		at += 1 + strspn(at + 1, "rVKRO");
	if (!strncmp(at, "St", 2)) {
		put(s, "std", 3);
		at += 2;
	}
	for (const char *next; (next = source_name(at, &name, &bytes)); at = next) {
		static const char anonymous[] = "(anonymous namespace)";

		if (s->nr)
			put(s, "::", 2);
		if (bytes > 10 && !strncmp(name, "_GLOBAL__N", 10))
			put(s, anonymous, sizeof(anonymous) - 1);
		else
			put(s, name, bytes);
	}
	if (s->nr && *at == 'I')
		put(s, ARGUMENTS, sizeof(ARGUMENTS) - 1);
}

static char *not_demangled(const char *mangled)
{
	struct shortening s = {.at = mangled};

	if (strncmp(mangled, "_Z", 2) != 0)
		return strdup(mangled);
	/* An identifier of ten bytes, with its length, can become "::(anonymous namespace)". */
	s.out = malloc(2 * strlen(mangled) + 64);
	if (!s.out)
		return NULL;
	put_leading_names(&s);
	if (!s.nr)
		put(&s, mangled, strlen(mangled));
	s.out[s.nr] = '\0';
	return s.out;
}

char *demangle_short(const char *mangled, const char *demangled)
{
	struct shortening s = {.at = demangled};

	if (!strcmp(mangled, demangled))
		return not_demangled(mangled);
	s.out = malloc(room_for(demangled));
	if (!s.out)
		return NULL;
	for (size_t i = 0; i < ARRAY_SIZE(phrases); i++) {
		if (!strncmp(s.at, phrases[i], strlen(phrases[i])))
			copy(&s, strlen(phrases[i]));
	}
	s.base = s.nr;
	while (*s.at && step(&s))
		;
	/* The result is never empty: a name that this code does not understand stays as it is. */
	if (s.nr == s.base) {
		s.nr = 0;
		put(&s, demangled, strlen(demangled));
	}
	s.out[s.nr] = '\0';
	return s.out;
}
