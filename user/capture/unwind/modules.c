// SPDX-License-Identifier: BSD-2-Clause
/* The list of modules. Their tables are built in modules_build.c. */
#define HASH_NONFATAL_OOM 1
#include "capture/unwind/modules_priv.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "symbol/python/python.h"
#include "util/disk_cache.h"
#include "util/error.h"
#include "util/util.h"

/* At a pace: at the begin, where much is to be done at once in any case. */
#define BUILT_AT_ONCE_NS (20 * NSEC_PER_MSEC)

int modules__new(const struct modules_opts *opts, struct modules **out)
{
	struct modules *ms = calloc(1, sizeof(*ms));
	int err;

	if (!ms)
		return error_set(-ENOMEM, NULL, "out of memory");
	pthread_mutex_init(&ms->lock, NULL);
	pthread_cond_init(&ms->changed, NULL);
	ms->max_rows = opts->max_rows ? opts->max_rows : MODULES_MAX_ROWS;
	ms->in_order = opts->in_order;
	ms->nr_threads =
		opts->nr_threads < MODULES_MAX_THREADS ? opts->nr_threads : MODULES_MAX_THREADS;
	ms->pace.stop = &ms->stop;
	atomic_store(&ms->pace.ns_a_second, opts->pace_ns);
	ms->pace.at_once_ns = opts->pace_ns ? BUILT_AT_ONCE_NS : 0;
	ms->cache.dir = disk_cache__open(opts->cache_dir);
	ms->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	err = ms->fd < 0 ? error_set(-errno, NULL, "no event descriptor: %s", strerror(errno))
			 : unwind_rules__new(&ms->rules);
	if (err) {
		modules__free(ms);
		return err;
	}
	*out = ms;
	return 0;
}

static void entry_free(struct module_entry *e)
{
	if (!e)
		return;
	unwind_table__free(e->table);
	python_elf__free(e->module.python);
	elffile__close(e->module.elf);
	free((char *)e->module.path);
	free(e->why);
	free(e->image);
	free(e);
}

void modules__free(struct modules *ms)
{
	if (!ms)
		return;
	modules__stop(ms);
	HASH_CLEAR(hh, ms->by_file);
	for (size_t i = 0; i < ms->nr; i++)
		entry_free(ms->all[i]);
	free(ms->all);
	process_roots__close(&ms->roots);
	unwind_rules__free(ms->rules);
	if (ms->cache.nr_written)
		disk_cache__trim(ms->cache.dir, DISK_CACHE_BOUND);
	if (ms->cache.dir >= 0)
		close(ms->cache.dir);
	if (ms->fd >= 0)
		close(ms->fd);
	pthread_cond_destroy(&ms->changed);
	pthread_mutex_destroy(&ms->lock);
	free(ms);
}

struct unwind_rules *modules__rules(struct modules *ms)
{
	return ms->rules;
}

size_t modules__nr(const struct modules *ms)
{
	return ms->nr;
}

struct module *modules__at(const struct modules *ms, size_t number)
{
	return number < ms->nr ? &ms->all[number]->module : NULL;
}

enum module_state module__state(const struct module *m)
{
	return atomic_load_explicit(&entry_of(m)->state, memory_order_acquire);
}

const struct unwind_table *module__table(const struct module *m)
{
	return module__state(m) == MODULE_READY ? entry_of(m)->table : NULL;
}

const char *module__why(const struct module *m)
{
	const struct module_entry *e = entry_of(m);

	if (module__state(m) != MODULE_WITHOUT)
		return "";
	return e->why ? e->why : "out of memory";
}

size_t modules__nr_unread(const struct modules *ms, const struct module **first)
{
	size_t nr = 0;

	for (size_t i = 0; i < ms->nr; i++) {
		if (!ms->all[i]->again)
			continue;
		if (!nr++)
			*first = &ms->all[i]->module;
	}
	return nr;
}

/* ---- adding a module ---- */

/*
 * Adds a module. Takes ownership of the ELF file; NULL: it could not be opened, and the calling
 * thread's error says why.
 */
static int add_entry(struct modules *ms, const char *path, struct elffile *elf, int why,
		     struct module_entry **out)
{
	struct module_entry *e = calloc(1, sizeof(*e));
	size_t bytes;
	int err;

	if (e) {
		e->module.elf = elf;
		e->module.path = strdup(path);
	} else {
		elffile__close(elf);
	}
	/* The threads that build tables read the list. */
	pthread_mutex_lock(&ms->lock);
	err = e && e->module.path ? vec_grow((void **)&ms->all, &ms->cap, ms->nr, sizeof(*ms->all))
				  : -ENOMEM;
	if (!err) {
		e->module.number = (uint32_t)ms->nr;
		e->module.first_page = MODULE_NOT_PLACED;
		e->module.root = "";
		e->module.build_id = elf ? elffile__build_id(elf) : "";
		if (elf && elffile__section(elf, ".eh_frame", &bytes))
			e->module.bytes = bytes;
		if (!elf) {
			/* An executable mapping of a file that is not ELF holds JIT code. */
			e->module.pointers = why == -ENOEXEC;
			e->again = why != -ENOEXEC && why != -ENOSPC;
			e->why = strdup(kprof_error_cause());
			/* the caller learns the state at once, without modules__take() */
			e->taken = true;
			error_clear();
		}
		atomic_store(&e->state, elf ? MODULE_PENDING : MODULE_WITHOUT);
		ms->all[ms->nr++] = e;
		ms->nr_pending += elf != NULL;
	}
	pthread_mutex_unlock(&ms->lock);
	if (err) {
		entry_free(e);
		return error_set(err, NULL, "out of memory");
	}
	*out = e;
	return 0;
}

/* Opens the file of a mapping of this process. NULL: *err and the error are set. */
static struct elffile *open_map(pid_t pid, const struct proc_map *map, int *err)
{
	struct elffile *elf = NULL;
	char path[PATH_MAX + 32];

	*err = proc_map_open_path(pid, map, path, sizeof(path));
	if (!*err)
		*err = elffile__open(path, &elf);
	return elf;
}

static int add_file(struct modules *ms, pid_t pid, const struct proc_map *map,
		    const struct module_key *key, struct module_entry **known)
{
	struct module_entry *e;
	int err;
	struct elffile *elf = open_map(pid, map, &err);

	/* It could not be opened this time either. */
	if (*known && !elf) {
		error_clear();
		return 0;
	}
	err = add_entry(ms, map->path, elf, err, &e);
	if (err)
		return err;
	e->key = *key;
	if (elf)
		e->module.root = process_roots__of(&ms->roots, pid);
	/* Addresses have been reported with the earlier module, which must stay as it is. */
	if (*known) {
		(*known)->again = false;
		HASH_DEL(ms->by_file, *known);
	}
	/* Without memory for the hash entry the file would only get a second module later. */
	HASH_ADD(hh, ms->by_file, key, sizeof(e->key), e);
	modules__start_threads(ms);
	*known = e;
	return 0;
}

static int other_files(struct modules *ms, struct module_entry **out)
{
	int err = 0;

	if (!ms->others) {
		error_set(-ENOSPC, NULL, "more than %u files are mapped", MODULES_MAX_FILES);
		log_warn(NULL, "stacks through further files end there: %s", kprof_error_cause());
		err = add_entry(ms, "[other files]", NULL, -ENOSPC, &ms->others);
	}
	*out = ms->others;
	return err;
}

int modules__of_map(struct modules *ms, pid_t pid, const struct proc_map *map, struct module **out)
{
	struct module_key key;
	struct module_entry *e;
	int err = 0;

	memset(&key, 0, sizeof(key));
	key.dev = map->dev;
	key.inode = map->inode;
	HASH_FIND(hh, ms->by_file, &key, sizeof(key), e);
	if (!e && ms->nr >= MODULES_MAX_FILES)
		err = other_files(ms, &e);
	else if (!e || e->again)
		err = add_file(ms, pid, map, &key, &e);
	if (!err)
		*out = &e->module;
	return err;
}

struct module *modules__known(const struct modules *ms, dev_t dev, uint64_t inode)
{
	struct module_key key;
	struct module_entry *e;

	memset(&key, 0, sizeof(key));
	key.dev = dev;
	key.inode = inode;
	HASH_FIND(hh, ms->by_file, &key, sizeof(key), e);
	return e && !e->again ? &e->module : NULL;
}

/* elffile.c opens files, so the image is put into a memfd. */
static int open_image(const char *name, const void *image, size_t bytes, struct elffile **out)
{
	int fd = memfd_create("kprof-image", MFD_CLOEXEC), err;
	char path[32];

	*out = NULL;
	if (fd < 0)
		return error_set(-errno, NULL, "no memory for %s: %s", name, strerror(errno));
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (write(fd, image, bytes) != (ssize_t)bytes)
		err = error_set(-ENOSPC, NULL, "no memory for %s", name);
	else
		err = elffile__open(path, out);
	close(fd);
	return err;
}

int modules__of_image(struct modules *ms, const char *name, const void *image, size_t bytes,
		      struct module **out)
{
	struct elffile *elf;
	struct module_entry *e;
	int err;

	for (size_t i = 0; i < ms->nr; i++) {
		e = ms->all[i];
		if (e->image && e->image_bytes == bytes && !memcmp(e->image, image, bytes)) {
			*out = &e->module;
			return 0;
		}
	}
	if (ms->nr_images >= MODULES_MAX_IMAGES)
		return -ENOSPC;
	err = open_image(name, image, bytes, &elf);
	err = add_entry(ms, name, elf, err, &e);
	if (err)
		return err;
	ms->nr_images++;
	e->module.vdso = true;
	e->image = malloc(bytes);
	if (e->image) {
		memcpy(e->image, image, bytes);
		e->image_bytes = bytes;
	}
	modules__start_threads(ms);
	*out = &e->module;
	return 0;
}
