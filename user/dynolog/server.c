// SPDX-License-Identifier: BSD-2-Clause
/* One server: its sockets in one epoll, with a timer, and the bounds on what they may ask for. */
#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "dynolog/impl.h"
#include "util/error.h"

#define MOST_PROCESSES 2048
#define MOST_PROCESSES_OF_USER 512
#define SWEEP_NS (10 * NSEC_PER_SEC)
/*
 * Datagrams that are looked at: those of MOST_PROCESSES at once, and in the long run 1,024 a
 * second, twice what so many need. A flood costs no more than that.
 */
#define REFILL_NS (250 * NSEC_PER_MSEC)
#define REFILL_DATAGRAMS 256
#define BURST_DATAGRAMS 2048
#define REFILL_CONNECTIONS 8 /* each of which may be a request that means all processes */
#define AT_ONCE 64           /* datagrams or connections, before others get their turn */

static const char *const loopback[] = {"::1", "127.0.0.1"};

/* ---- options ---- */

static int no_memory(void)
{
	return error_set(-ENOMEM, NULL, "no memory for dynolog's sockets");
}

static int copy_strings(const char *const *from, size_t nr, struct strings *to)
{
	to->all = calloc(nr + 1, sizeof(char *));
	if (!to->all)
		return no_memory();
	for (; to->nr < nr; to->nr++) {
		to->all[to->nr] = strdup(from[to->nr]);
		if (!to->all[to->nr])
			return no_memory();
	}
	return 0;
}

static void free_strings(struct strings *s)
{
	for (size_t i = 0; i < s->nr; i++)
		free(s->all[i]);
	free(s->all);
}

static int copy_opts(struct kprof_dynolog *d, const struct kprof_dynolog_opts *opts)
{
	size_t sz = opts->sz < sizeof(d->o) ? opts->sz : sizeof(d->o);
	struct kprof_dynolog_opts *o = &d->o;
	int err;

	memcpy(o, opts, sz);
	d->name = strdup(o->name ? o->name : KPROF_DYNOLOG_NAME);
	if (!d->name)
		return no_memory();
	err = copy_strings(o->folders, o->nr_folders, &d->folders);
	if (!err)
		err = copy_strings(o->addresses, o->nr_addresses, &d->addresses);
	if (!err)
		err = copy_strings(o->output_folders, o->nr_output_folders, &d->output_folders);
	o->name = d->name;
	o->folders = (const char *const *)d->folders.all;
	o->addresses = (const char *const *)d->addresses.all;
	o->output_folders = (const char *const *)d->output_folders.all;
	d->registry.most = o->max_processes ? o->max_processes : MOST_PROCESSES;
	d->registry.most_of_user =
		o->max_processes_of_user ? o->max_processes_of_user : MOST_PROCESSES_OF_USER;
	return err;
}

/* ---- what is listened to ---- */

static int watch(struct kprof_dynolog *d, int how, struct source *s, uint32_t events)
{
	struct epoll_event e = {.events = events, .data.ptr = s};

	if (epoll_ctl(d->epoll, how, s->fd, &e))
		return error_set(-errno, NULL, "cannot watch a socket: %s", strerror(errno));
	return 0;
}

static int open_sockets(struct kprof_dynolog *d)
{
	const struct kprof_dynolog_opts *o = &d->o;
	int err = 0;

	if (d->name[0])
		err = ipc_open(d, NULL);
	for (size_t i = 0; i < o->nr_folders && !err; i++)
		err = ipc_open(d, o->folders[i]);
	if (!err && !o->no_tcp)
		err = o->nr_addresses ? tcp_open(d, o->addresses, o->nr_addresses, true)
				      : tcp_open(d, loopback, ARRAY_SIZE(loopback), false);
	for (size_t i = 0; i < d->nr_ipc && !err; i++)
		err = watch(d, EPOLL_CTL_ADD, &d->ipc[i]->s, EPOLLIN);
	for (size_t i = 0; i < d->nr_listeners && !err; i++)
		err = watch(d, EPOLL_CTL_ADD, &d->listeners[i], EPOLLIN);
	return err;
}

int kprof_dynolog_new(const struct kprof_dynolog_opts *opts, struct kprof_dynolog **out)
{
	struct kprof_dynolog *d = calloc(1, sizeof(*d));
	int err;

	error_clear();
	if (!d)
		return no_memory();
	for (size_t i = 0; i < CONNECTIONS; i++)
		d->connections[i].s = (struct source){SOURCE_CONNECTION, -1};
	d->epoll = epoll_create1(EPOLL_CLOEXEC);
	d->timer.kind = SOURCE_TIMER;
	d->timer.fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	d->ipc_left = BURST_DATAGRAMS;
	d->connections_left = REFILL_CONNECTIONS;
	d->requests = clock_real_ns(); /* so that no two have the same number */
	if (d->epoll < 0 || d->timer.fd < 0)
		err = error_set(-errno, NULL, "cannot make dynolog's sockets: %s", strerror(errno));
	else
		err = copy_opts(d, opts);
	if (!err)
		err = watch(d, EPOLL_CTL_ADD, &d->timer, EPOLLIN);
	if (!err)
		err = open_sockets(d);
	if (err)
		kprof_dynolog_free(d);
	else
		*out = d;
	return err;
}

void kprof_dynolog_free(struct kprof_dynolog *d)
{
	if (!d)
		return;
	for (size_t i = 0; i < d->nr_ipc; i++)
		ipc_close(d->ipc[i]);
	free(d->ipc);
	tcp_close(d);
	registry__free(&d->registry);
	if (d->timer.fd >= 0)
		close(d->timer.fd);
	if (d->epoll >= 0)
		close(d->epoll);
	free_strings(&d->folders);
	free_strings(&d->addresses);
	free_strings(&d->output_folders);
	free(d->name);
	free(d);
}

int kprof_dynolog_fd(const struct kprof_dynolog *d)
{
	return d->epoll;
}

/* ---- time ---- */

static void rest(struct kprof_dynolog *d, bool ipc, bool is)
{
	*(ipc ? &d->ipc_rests : &d->listeners_rest) = is;
	for (size_t i = 0; ipc && i < d->nr_ipc; i++)
		watch(d, EPOLL_CTL_MOD, &d->ipc[i]->s, is ? 0 : EPOLLIN);
	for (size_t i = 0; !ipc && i < d->nr_listeners; i++)
		watch(d, EPOLL_CTL_MOD, &d->listeners[i], is ? 0 : EPOLLIN);
}

static void refill(struct kprof_dynolog *d, uint64_t now_ns)
{
	if (now_ns < d->refill_ns)
		return;
	d->ipc_left += REFILL_DATAGRAMS;
	if (d->ipc_left > BURST_DATAGRAMS)
		d->ipc_left = BURST_DATAGRAMS;
	d->connections_left = REFILL_CONNECTIONS;
	d->refill_ns = now_ns + REFILL_NS;
	if (d->ipc_rests)
		rest(d, true, false);
	if (d->listeners_rest)
		rest(d, false, false);
}

static uint64_t sooner(uint64_t a, uint64_t b)
{
	return !a || (b && b < a) ? b : a;
}

/* When there is something to do although nobody asks. */
static void set_timer(struct kprof_dynolog *d)
{
	uint64_t at_ns = tcp_next_ns(d);
	struct itimerspec when = {0};

	if (d->ipc_rests || d->listeners_rest)
		at_ns = sooner(at_ns, d->refill_ns);
	if (d->registry.nr)
		at_ns = sooner(at_ns, d->sweep_ns);
	if (at_ns == d->timer_at_ns)
		return;
	d->timer_at_ns = at_ns;
	when.it_value.tv_sec = (time_t)(at_ns / NSEC_PER_SEC);
	when.it_value.tv_nsec = (long)(at_ns % NSEC_PER_SEC);
	timerfd_settime(d->timer.fd, TFD_TIMER_ABSTIME, &when, NULL);
}

static void keep_time(struct kprof_dynolog *d)
{
	uint64_t now_ns = clock_mono_ns();

	refill(d, now_ns);
	tcp_expire(d, now_ns);
	if (now_ns < d->sweep_ns)
		return;
	forget_silent(d);
	d->sweep_ns = now_ns + SWEEP_NS;
}

/* ---- serving ---- */

static void serve_ipc(struct kprof_dynolog *d, struct ipc *s)
{
	for (int i = 0; i < AT_ONCE; i++) {
		if (!d->ipc_left) {
			rest(d, true, true);
			return;
		}
		if (!ipc_serve(d, s))
			return;
		d->ipc_left--;
	}
}

static void serve(struct kprof_dynolog *d, struct source *s)
{
	uint64_t times;

	switch (s->kind) {
	case SOURCE_IPC:
		serve_ipc(d, (struct ipc *)s);
		break;
	case SOURCE_LISTENER:
		if (!d->connections_left || !tcp_accept(d, s))
			rest(d, false, true);
		else
			d->connections_left--;
		break;
	case SOURCE_CONNECTION:
		if (s->fd >= 0)
			tcp_serve(d, (struct connection *)s);
		break;
	case SOURCE_TIMER:
		d->timer_at_ns = 0;
		if (read(s->fd, &times, sizeof(times)) < 0)
			break; /* it was set anew meanwhile */
		break;
	}
}

void kprof_dynolog_serve(struct kprof_dynolog *d)
{
	struct epoll_event events[AT_ONCE];
	int n;

	keep_time(d);
	n = epoll_wait(d->epoll, events, ARRAY_SIZE(events), 0);
	for (int i = 0; i < n; i++)
		serve(d, events[i].data.ptr);
	set_timer(d);
}

/* ---- what the owner asks ---- */

int kprof_dynolog_processes(struct kprof_dynolog *d,
			    int (*fn)(void *ctx, const struct kprof_dynolog_process *process),
			    void *ctx)
{
	int stop = 0;

	for (size_t i = 0; i < d->registry.nr && !stop; i++)
		stop = fn(ctx, entry__shown(d->registry.all[i]));
	return stop;
}

int kprof_dynolog_hand(struct kprof_dynolog *d, pid_t pid, const char *config)
{
	struct entry *e = registry__find(&d->registry, pid);
	struct handed *h;
	int err;

	error_clear();
	if (!e || !e->polled)
		return -ESRCH;
	if (strlen(config) >= KPROF_DYNOLOG_CONFIG_BYTES)
		return error_set_usage(-E2BIG, NULL, "a config of this length is too long");
	h = handed_new(config, ++d->requests);
	if (!h)
		return no_memory();
	err = entry__hand(e, h);
	handed_drop(h);
	return err;
}

void kprof_dynolog_counts(const struct kprof_dynolog *d, struct kprof_dynolog_counts *out)
{
	*out = d->counts;
}
