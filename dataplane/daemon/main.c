/* SPDX-License-Identifier: BSD-3-Clause */
/* Start-up order and shutdown. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <unistd.h>

#include "dataplane/daemon/classtree.h"
#include "dataplane/daemon/config.h"
#include "dataplane/daemon/control.h"
#include "dataplane/daemon/daemon.h"
#include "dataplane/daemon/device.h"
#include "dataplane/daemon/eal.h"
#include "dataplane/daemon/links.h"
#include "dataplane/daemon/log.h"
#include "dataplane/daemon/metrics.h"
#include "dataplane/daemon/plug.h"
#include "dataplane/daemon/plug_cmd.h"
#include "dataplane/daemon/portwatch.h"
#include "dataplane/daemon/sandbox.h"
#include "dataplane/daemon/session.h"
#include "dataplane/daemon/telemetry.h"
#include "dataplane/daemon/worker.h"
#include "dataplane/host/clock.h"

enum { EXIT_RUNNING = 3 };

static struct daemon the_daemon;
static struct links *the_links;
static struct portwatch *the_watch;

/* Signals come through a descriptor; threads made from here on inherit the mask. */
static void block_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
}

/* Sessions cost a handful of descriptors each. */
static void raise_limits(void)
{
	struct rlimit r;

	if (getrlimit(RLIMIT_NOFILE, &r) || r.rlim_cur == r.rlim_max)
		return;
	r.rlim_cur = r.rlim_max;
	setrlimit(RLIMIT_NOFILE, &r);
}

static void worker_woken(void *ctx)
{
	struct daemon *d = ctx;

	control_poke(d->control, CONTROL_POKE_AWAKE);
}

static void count_link(const struct device *dev, struct metrics_port *out)
{
	links_count(the_links, dev->index, out);
}

static int make_workers(struct daemon *d)
{
	for (unsigned i = 0; i < d->conf.n_workers; i++) {
		struct worker_conf conf = {
			.id = i, .enter = eal_enter_thread, .woken = worker_woken, .ctx = d
		};
		int err;

		d->worker[i] = worker_create(&conf, &err);
		if (!d->worker[i])
			return err;
		d->n_workers++;
	}
	return 0;
}

static int make_devices(struct daemon *d)
{
	int err = links_create(&the_links, d);

	if (err)
		return err;
	metrics_set_link(count_link);
	d->fault = links_fault;
	d->fault_ctx = the_links;
	d->plug = plug_command;
	d->plug_ctx = the_links;
	for (unsigned i = 0; !err && i < d->conf.n_devices; i++) {
		struct device *dev;

		err = plug_in(d, the_links, &d->conf.device[i], &dev);
	}
	return err;
}

static int start_workers(struct daemon *d)
{
	int err = 0;

	for (unsigned w = 0; !err && w < d->n_workers; w++)
		err = worker_start(d->worker[w]);
	return err;
}

/* Tells the clients that the device is gone, then ends what they had. */
static void end_sessions(struct daemon *d)
{
	for (unsigned i = 0; i < DAEMON_MAX_SESSIONS; i++) {
		struct session *s = d->session[i];

		if (!s || s->role != SESSION_CLIENT)
			continue;
		__atomic_store_n(&session_uar(s)->fatal, UROCE_UAR_ENDED, __ATOMIC_RELEASE);
		session_event(s, 0, UROCE_EVENT_DEVICE_FATAL);
	}
	for (unsigned w = 0; w < d->n_workers; w++)
		worker_stop(d->worker[w]);
	for (unsigned i = 0; i < DAEMON_MAX_SESSIONS; i++)
		if (d->session[i])
			session_destroy(d->session[i]);
}

static void take_down(struct daemon *d)
{
	if (d->control)
		end_sessions(d);
	portwatch_close(the_watch);
	classtree_remove(d);
	if (d->control)
		control_destroy(d);
	for (unsigned w = 0; w < d->n_workers; w++) {
		worker_stop(d->worker[w]);
		worker_destroy(d->worker[w]);
	}
	if (the_links)
		links_destroy(the_links);
	for (unsigned i = 0; i < d->n_devices; i++)
		device_destroy(d->device[i]);
	metrics_free();
	eal_stop(d->dir.fd);
	rundir_close(&d->dir);
}

static int bring_up(struct daemon *d)
{
	int err = eal_start(d->dir.path);

	if (!err)
		err = make_workers(d);
	if (!err)
		err = make_devices(d);
	if (!err) {
		telemetry_register(d);
		err = classtree_create(d);
	}
	if (!err)
		err = rundir_write_pid(&d->dir);
	if (!err)
		err = control_create(d);
	for (unsigned i = 0; !err && i < d->n_devices; i++)
		err = device_watch_neighbours(d->device[i]);
	if (!err)
		err = portwatch_open(&the_watch, d, the_links);
	if (!err)
		err = start_workers(d);
	return err;
}

static void say_ready(const struct daemon *d)
{
	if (d->conf.ready_fd < 0)
		return;
	if (write(d->conf.ready_fd, "\n", 1) < 0)
		log_warning("--ready-fd: %s", strerror(errno));
	close(d->conf.ready_fd);
}

/* Some containers forbid it; the daemon serves without. */
static void enter_sandbox(void)
{
	int err = sandbox_enter();

	if (err)
		log_info("no seccomp filter: %s", strerror(-err));
}

static int open_rundir(struct daemon *d)
{
	int err = rundir_open(&d->dir, d->conf.run_dir);

	if (err)
		return EXIT_FAILURE;
	err = rundir_lock(&d->dir);
	if (err == -EWOULDBLOCK) {
		log_error("another uroced is already running in %s", d->dir.path);
		return EXIT_RUNNING;
	}
	if (err)
		log_error("%s: cannot be locked: %s", d->dir.path, strerror(-err));
	return err ? EXIT_FAILURE : 0;
}

int main(int argc, char **argv)
{
	struct daemon *d = &the_daemon;
	int err;

	config_parse(&d->conf, argc, argv);
	log_set_level(d->conf.log_level);
	block_signals();
	raise_limits();
	d->started = clock_now();
	if (getrandom(&d->boot_id, sizeof(d->boot_id), 0) < 0)
		d->boot_id = d->started;
	err = open_rundir(d);
	if (err)
		return err;
	err = bring_up(d);
	if (err) {
		log_error("cannot start: %s", strerror(-err));
	} else {
		enter_sandbox();
		log_info("%u devices, %u workers, in %s", d->n_devices, d->n_workers, d->dir.path);
		say_ready(d);
		err = control_run(d);
	}
	take_down(d);
	return err ? EXIT_FAILURE : EXIT_SUCCESS;
}
