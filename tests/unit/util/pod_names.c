// SPDX-License-Identifier: BSD-2-Clause
#include "util/pod_names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "unit.h"

#define A16 "0123456789abcdef"
#define ID A16 A16 A16 A16
#define OTHER "fedcba9876543210" A16 A16 A16
#define TEN "aaaaaaaaaa"
#define SIXTY TEN TEN TEN TEN TEN TEN

static char folder[] = "/tmp/kprof-pods.XXXXXX";

static void link_path(char path[512], const char *name)
{
	snprintf(path, 512, "%s/%s", folder, name);
}

/* What is found of ID where there is a link of that name. */
static bool find(const char *name, struct pod_names *out)
{
	char path[512];
	struct pod_names_list list = {0};
	const struct pod_names *found;

	link_path(path, name);
	CHECK_EQ(symlink("/nowhere", path), 0);
	found = pod_names_list__find(&list, folder, ID);
	CHECK_EQ(unlink(path), 0);
	if (found)
		*out = *found;
	pod_names_list__free(&list);
	return found;
}

static void refused(const char *name)
{
	struct pod_names n;

	CHECK_EQ(find(name, &n), false);
}

static void names(void)
{
	struct pod_names n;

	CHECK(find("train-0.web_ml-team_pytorch-" ID ".log", &n));
	CHECK_STR(n.pod, "train-0.web");
	CHECK_STR(n.space, "ml-team");
	CHECK_STR(n.container, "pytorch");
	CHECK(find("a_b_" SIXTY "abc-" ID ".log", &n));
	CHECK_STR(n.container, SIXTY "abc");
}

static void others_and_nonsense(void)
{
	refused("train_ml_pytorch-" OTHER ".log");
	refused("train_ml_pytorch-" ID ".log.gz");
	refused("train_ml_pytorch-" ID);
	refused("train_ml-" ID ".log");
	refused("train_ml_a_b-" ID ".log");
	refused("_ml_c-" ID ".log");
	refused("train__c-" ID ".log");
	refused("train_ml_-" ID ".log");
	refused("Train_ml_c-" ID ".log");
	refused("train_m.l_c-" ID ".log");
	refused("-train_ml_c-" ID ".log");
	refused("train_ml_c\n-" ID ".log");
	refused("tr\"ain_ml_c-" ID ".log");
	refused("train_ml_" SIXTY "abcd-" ID ".log");
	refused(ID ".log");
	refused("-" ID ".log");
}

static void no_such_folder(void)
{
	struct pod_names_list none = {0}, list = {0};

	CHECK(!pod_names_list__find(&none, "/nowhere/at/all", ID));
	CHECK(!pod_names_list__find(&list, folder, "web-1"));
	CHECK(!pod_names_list__find(&list, folder, ""));
	CHECK(!list.read);
	pod_names_list__free(&list);
}

/* One list answers for all containers, with what there was when it was first asked. */
static void read_once(void)
{
	const char *const files[] = {"one_ml_c-" ID ".log", "two_ml_c-" OTHER ".log"};
	struct pod_names_list list = {0};
	char path[512];

	for (int i = 0; i < 2; i++) {
		link_path(path, files[i]);
		CHECK_EQ(symlink("/nowhere", path), 0);
	}
	CHECK_STR(pod_names_list__find(&list, folder, ID)->pod, "one");
	for (int i = 0; i < 2; i++) {
		link_path(path, files[i]);
		CHECK_EQ(unlink(path), 0);
	}
	CHECK_STR(pod_names_list__find(&list, folder, OTHER)->pod, "two");
	CHECK_STR(pod_names_list__find(&list, folder, ID)->pod, "one");
	pod_names_list__free(&list);
	CHECK(!pod_names_list__find(&list, folder, ID));
	pod_names_list__free(&list);
}

static void remove_folder(void)
{
	CHECK_EQ(rmdir(folder), 0);
}

static void make_folder(void)
{
	CHECK(mkdtemp(folder));
}

UNIT_MAIN(TEST(make_folder), TEST(names), TEST(others_and_nonsense), TEST(no_such_folder),
	  TEST(read_once), TEST(remove_folder))
