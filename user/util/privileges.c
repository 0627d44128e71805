// SPDX-License-Identifier: BSD-2-Clause
#include "util/sandbox.h"

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static int get(struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3])
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};

	return syscall(SYS_capget, &head, data) ? -errno : 0;
}

uint64_t sandbox_capabilities(void)
{
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {0};

	return get(data) ? 0 : (uint64_t)data[1].effective << 32 | data[0].effective;
}

int sandbox_keep(uint64_t capabilities)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {0};
	int err = get(data);

	if (err)
		return err;
	/* First, since this needs CAP_SETPCAP; without that, no_new_privs alone has to do. */
	for (int cap = 0; cap < 64 && prctl(PR_CAPBSET_READ, cap, 0, 0, 0) >= 0; cap++)
		if (!(capabilities >> cap & 1))
			prctl(PR_CAPBSET_DROP, cap, 0, 0, 0);
	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	for (int i = 0; i < _LINUX_CAPABILITY_U32S_3; i++) {
		data[i].permitted &= (uint32_t)(capabilities >> 32 * i);
		data[i].effective &= data[i].permitted;
		data[i].inheritable = 0;
	}
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || syscall(SYS_capset, &head, data))
		return -errno;
	return 0;
}

static bool has_one_of(uint64_t capabilities)
{
	return sandbox_capabilities() & capabilities;
}

#define BIT(cap) (1ull << (cap))

const char *sandbox_lacks_for_files(int err)
{
	bool searches = has_one_of(BIT(CAP_DAC_READ_SEARCH) | BIT(CAP_DAC_OVERRIDE));
	bool restores = has_one_of(BIT(CAP_CHECKPOINT_RESTORE) | BIT(CAP_SYS_ADMIN));

	if (!searches && (err == -EACCES || err == -EPERM || restores))
		return "CAP_DAC_READ_SEARCH is missing, which reads files that only others may read";
	if (!restores)
		return "CAP_CHECKPOINT_RESTORE is missing, which opens mapped files that have no name any more";
	return NULL;
}

const char *sandbox_lacks_for_users(void)
{
	bool user = has_one_of(BIT(CAP_SETUID)), group = has_one_of(BIT(CAP_SETGID));

	if (geteuid() != 0 || (user && group))
		return NULL;
	if (user)
		return "CAP_SETGID is missing, without which no helper becomes nobody";
	return group ? "CAP_SETUID is missing, without which no helper becomes nobody"
		     : "CAP_SETUID and CAP_SETGID are missing, without which no helper becomes nobody";
}

bool sandbox_become(uid_t user, gid_t group)
{
	if (geteuid() != 0 || user == 0)
		return true;
	if (!setgroups(0, NULL) && !setresgid(group, group, group) && !setresuid(user, user, user))
		return true;
	/* the user does not exist in this user namespace, whose root is not the machine's */
	return errno == EINVAL;
}
