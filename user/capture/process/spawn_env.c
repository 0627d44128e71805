// SPDX-License-Identifier: BSD-2-Clause
/* The environment of a program that is started as another user. */
#include "capture/process/process.h"

#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/util.h"

static const struct {
	const char *name;
	size_t field; /* of struct passwd: a char * */
} variables[] = {
	{"HOME", offsetof(struct passwd, pw_dir)},
	{"SHELL", offsetof(struct passwd, pw_shell)},
	{"USER", offsetof(struct passwd, pw_name)},
	{"LOGNAME", offsetof(struct passwd, pw_name)},
};

static const char *field_of(const struct passwd *pw, size_t i)
{
	return *(char *const *)((const char *)pw + variables[i].field);
}

/* The mailbox in MAIL if it is the user's; else NULL. */
static const char *mail_of(const struct passwd *pw)
{
	const char *mail = getenv("MAIL");

	return mail && !strcmp(path_base(mail), pw->pw_name) ? mail : NULL;
}

static void change_mail(const char *mail, const struct passwd *to)
{
	char *path = xasprintf("%.*s%s", (int)(path_base(mail) - mail), mail, to->pw_name);

	if (path)
		setenv("MAIL", path, 1);
	free(path);
}

/* A directory that login managers make, and nobody else may use. */
static void change_runtime_dir(uid_t from, uid_t to)
{
	const char *name = "XDG_RUNTIME_DIR", *now = getenv(name);
	char *theirs = xasprintf("/run/user/%u", from), *own = xasprintf("/run/user/%u", to);
	struct stat st;

	if (now && theirs && own && !strcmp(now, theirs)) {
		if (!lstat(own, &st) && S_ISDIR(st.st_mode) && st.st_uid == to)
			setenv(name, own, 1);
		else
			unsetenv(name);
	}
	free(theirs);
	free(own);
}

void spawn_env_change(uid_t from, uid_t to)
{
	const struct passwd *pw = getpwuid(from);
	const char *mail = pw ? mail_of(pw) : NULL;
	bool change[ARRAY_SIZE(variables)];

	for (size_t i = 0; i < ARRAY_SIZE(variables); i++) {
		const char *now = getenv(variables[i].name);

		change[i] = !now || (pw && !strcmp(now, field_of(pw, i)));
	}
	pw = getpwuid(to); /* may overwrite the first */
	if (!pw || from == to)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(variables); i++)
		if (change[i])
			setenv(variables[i].name, field_of(pw, i), 1);
	if (mail)
		change_mail(mail, pw);
	change_runtime_dir(from, to);
}
