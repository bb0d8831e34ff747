/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life of a run.
 *  1. main maps the memory and, unless told otherwise, touches all of it;
 *  2. threads start and touch what is theirs             (barrier: touched)
 *  3. permutations are built, shared ones by main        (barrier: built)
 *  4. the ready file appears; workers wait for --hold
 *  5. warm laps, not measured                            (barrier: warm)
 *  6. batches, until --ops, --seconds or a signal
 *  7. one report
 */
#include <errno.h>
#include <fcntl.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "load.h"

#define HOLD_POLL_US 10000
#define COUNT_US     100000

struct homenode_stop_word homenode_stop;
static sem_t wake_main;
static volatile sig_atomic_t signalled;

static void on_signal(int number)
{
	(void)number;
	signalled = 1;
	homenode_stop.set = 1;
	sem_post(&wake_main);
}

static void block_signals(int how)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	pthread_sigmask(how, &set, NULL);
}

static bool is_worker(const struct homenode_run *run, uint64_t id)
{
	return id < run->opt.threads; /* the last thread is the dispatcher */
}

/* Step 1 or 2: first touch by main (id 0 of 1) or by worker id. */
static void touch_regions(struct homenode_run *run, const struct homenode_region *own, uint64_t id, uint64_t parts)
{
	if (own && own->base && own->base != run->shared.base)
		homenode_touch_slice(own, 0, 1);
	if (run->shared.base)
		homenode_touch_slice(&run->shared, id, parts);
	if (run->sharing.base)
		homenode_touch_slice(&run->sharing, id, parts);
}

/* Sleep-polls instead of waiting on a futex: a wake-up would pull the worker to the waker's CPU. */
static void wait_for_phase(const struct homenode_run *run)
{
	while (run->opt.hold != HOMENODE_NONE && homenode_clock_phase(&run->clock) != run->opt.hold &&
	       !homenode_stop.set)
		homenode_sleep_us(HOLD_POLL_US);
}

static void work_batches(struct homenode_worker *w)
{
	const struct homenode_mode *mode = w->run->mode;
	uint64_t left = w->run->opt.ops;

	homenode_tally_look(w);
	while (left && !homenode_stop.set) {
		uint64_t done = homenode_barrier_batch(w, homenode_min(left, mode->batch));

		homenode_tally_credit(w, done, done);
		if (left != HOMENODE_NONE)
			left -= done;
	}
}

/* One batch as long as the run: it reads neither phase nor clock. */
static void work_counted(struct homenode_worker *w)
{
	uint64_t done;

	homenode_perf_open(&w->perf, &w->run->plan);
	homenode_tally_look(w);
	homenode_perf_enable(&w->perf);
	done = homenode_barrier_batch(w, w->run->opt.ops);
	homenode_perf_disable(&w->perf);
	homenode_tally_credit(w, done, done);
	homenode_perf_finish(&w->perf);
}

static void warm_up(struct homenode_worker *w)
{
	const struct homenode_run *run = w->run;

	if (run->mode->batch_run && run->opt.warm_laps) {
		uint64_t n = run->opt.warm_laps * run->mode->lap(w);

		while (n && !homenode_stop.set)
			n -= run->mode->batch_run(w, n);
		pthread_barrier_wait(&w->run->warm); /* makes the measured sections overlap */
	}
}

static void work_all(struct homenode_worker *w)
{
	warm_up(w);
	if (homenode_stop.set)
		return;
	if (w->run->mode->work)
		w->run->mode->work(w);
	else if (w->run->plan.n)
		work_counted(w);
	else
		work_batches(w);
}

struct start {
	struct homenode_run *run;
	struct homenode_worker *worker; /* mapped, not yet touched */
	struct homenode_region region;
	uint64_t id;
	pthread_t thread;
};

static void *worker_main(void *arg)
{
	struct start *s = arg;
	struct homenode_worker *w = s->worker;
	struct homenode_run *run = s->run;

	if (run->opt.cpus.n)
		homenode_pin(run->opt.cpus.id[s->id % run->opt.cpus.n]);
	w->run = run; /* the counters' own thread touches them first */
	w->id = s->id;
	w->region = s->region;
	memset(w->tally, 0, sizeof(w->tally));
	if (run->opt.vm) { /* as QEMU names its virtual CPUs' threads */
		char name[16];

		snprintf(name, sizeof(name), "CPU %u/KVM", (unsigned int)w->id);
		prctl(PR_SET_NAME, name);
	}
	homenode_rng_seed(&w->rng, run->opt.seed, HOMENODE_STREAM_WORKER + w->id);
	if (run->opt.touch == HOMENODE_TOUCH_WORKER && is_worker(run, w->id))
		touch_regions(run, &w->region, w->id, run->opt.threads);
	pthread_barrier_wait(&run->touched);
	if (run->mode->prepare && !homenode_stop.set)
		run->mode->prepare(w);
	pthread_barrier_wait(&run->built);
	wait_for_phase(run);
	work_all(w);
	if (__atomic_add_fetch(&run->finished, 1, __ATOMIC_SEQ_CST) == run->nthreads)
		sem_post(&wake_main);
	return NULL;
}

/* --extra: memory that stays resident and is never used again. */
static void touch_extra(struct homenode_run *run)
{
	if (run->opt.extra_bytes) {
		struct homenode_region r = homenode_region_anonymous(&run->opt, run->opt.extra_bytes);

		homenode_touch_slice(&r, 0, 1);
	}
}

static struct start *allocate(struct homenode_run *run)
{
	const struct homenode_options *o = &run->opt;
	bool own = run->mode != &homenode_spin && run->mode != &homenode_server && run->mode != &homenode_share &&
		   run->mode != &homenode_handoff && !o->shared;
	struct start *s;

	run->nthreads = o->threads;
	if (run->mode->allocate)
		run->mode->allocate(run);
	homenode_barrier_allocate(run);
	s = calloc(run->nthreads, sizeof(*s));
	run->worker = calloc(run->nthreads, sizeof(*run->worker));
	if (!s || !run->worker)
		homenode_fail(1, "allocate %llu threads: %s; ask for fewer", (unsigned long long)run->nthreads,
			      strerror(errno));
	for (uint64_t i = 0; i < run->nthreads; i++) {
		s[i].run = run;
		s[i].id = i;
		s[i].worker = homenode_map(o, sizeof(*s[i].worker), HOMENODE_THP_DEFAULT);
		if (!own)
			s[i].region = run->shared;
		else if (run->mode->private_region)
			s[i].region = homenode_region_anonymous(o, o->ws_bytes);
		else
			s[i].region = homenode_region_map(o, o->ws_bytes);
		run->worker[i] = s[i].worker;
	}
	return s;
}

static void start_threads(struct homenode_run *run, struct start *s)
{
	pthread_barrier_init(&run->touched, NULL, (unsigned int)run->nthreads + 1);
	pthread_barrier_init(&run->built, NULL, (unsigned int)run->nthreads + 1);
	pthread_barrier_init(&run->warm, NULL, (unsigned int)run->opt.threads);
	block_signals(SIG_BLOCK); /* threads inherit this: only main gets signals */
	for (uint64_t i = 0; i < run->nthreads; i++) {
		int e = pthread_create(&s[i].thread, NULL, worker_main, &s[i]);

		if (e)
			homenode_fail(1, "start thread %llu: %s; ask for fewer threads", (unsigned long long)i, strerror(e));
	}
	block_signals(SIG_UNBLOCK);
}

static void write_ready(const char *path)
{
	FILE *f;

	if (!path)
		return;
	f = homenode_output_open(path);
	fprintf(f, "%ld\n", (long)getpid());
	homenode_output_commit(f, path);
}

/* --count: one line of one length, so that a reader never sees half of it. */
static int open_count(const char *path)
{
	int fd = path ? open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644) : -1;

	if (path && fd < 0)
		homenode_fail(1, "open %s: %s; name a file that can be written", path, strerror(errno));
	return fd;
}

static void write_count(const struct homenode_run *run, int fd)
{
	char text[32];
	uint64_t work = 0;
	int n;

	for (uint64_t i = 0; i < run->nthreads; i++)
		for (int p = 0; p < HOMENODE_PHASES; p++)
			work += __atomic_load_n(&run->worker[i]->tally[p].work, __ATOMIC_RELAXED);
	n = snprintf(text, sizeof(text), "%020llu\n", (unsigned long long)work);
	if (pwrite(fd, text, (size_t)n, 0) != n)
		homenode_fail(1, "write --count: %s; name a file on a file system with room", strerror(errno));
}

/* Waits at most `us` for the end of all workers or a signal. */
static void wait_wake(uint64_t us)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	t.tv_nsec += (long)us * 1000;
	t.tv_sec += t.tv_nsec / 1000000000;
	t.tv_nsec %= 1000000000;
	sem_clockwait(&wake_main, CLOCK_MONOTONIC, &t);
}

static void wait_end(struct homenode_run *run)
{
	uint64_t deadline = HOMENODE_NONE;
	int count = open_count(run->opt.count);

	if (run->opt.seconds > 0) {
		wait_for_phase(run);
		deadline = homenode_clock_now(&run->clock) +
			   (uint64_t)(run->opt.seconds * 1e6 * (double)run->clock.mhz);
	}
	run->stopped_by = "ops";
	while (!homenode_stop.set && __atomic_load_n(&run->finished, __ATOMIC_SEQ_CST) < run->nthreads) {
		uint64_t now = homenode_clock_now(&run->clock), us;

		if (count >= 0)
			write_count(run, count);
		if (deadline == HOMENODE_NONE && count >= 0) {
			wait_wake(COUNT_US);
			continue;
		}
		if (deadline == HOMENODE_NONE) {
			sem_wait(&wake_main); /* EINTR included */
			continue;
		}
		if (now >= deadline) {
			run->stopped_by = "seconds";
			break;
		}
		us = (deadline - now) / run->clock.mhz + 1;
		if (us < 1000)
			us = 1000; /* the model clock may stand still: do not spin on it */
		wait_wake(homenode_min(us, HOMENODE_NAP_US));
	}
	homenode_stop.set = 1;
	if (count >= 0)
		close(count);
	if (signalled)
		run->stopped_by = "signal";
}

void homenode_run_all(struct homenode_run *run)
{
	struct sigaction action = { .sa_handler = on_signal };
	struct start *s;

	sem_init(&wake_main, 0, 0);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	s = allocate(run);
	if (run->opt.touch == HOMENODE_TOUCH_MAIN) {
		touch_regions(run, NULL, 0, 1);
		for (uint64_t i = 0; i < run->nthreads; i++)
			if (s[i].region.base && s[i].region.base != run->shared.base)
				homenode_touch_slice(&s[i].region, 0, 1);
	}
	touch_extra(run);
	start_threads(run, s);
	pthread_barrier_wait(&run->touched);
	if (run->mode->build && !homenode_stop.set)
		run->mode->build(run);
	pthread_barrier_wait(&run->built);
	if (!homenode_stop.set)
		write_ready(run->opt.ready);
	wait_end(run);
	if (run->mode->wake)
		run->mode->wake(run);
	for (uint64_t i = 0; i < run->nthreads; i++)
		pthread_join(s[i].thread, NULL);
}
