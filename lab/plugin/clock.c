// SPDX-License-Identifier: GPL-2.0-or-later
#define _GNU_SOURCE
#include "clock.h"
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define QUANTUM_ON  20000ULL /* cycles that a vCPU may be ahead of T; lower: more waits; higher: more skew */
#define QUANTUM_SMT 10000ULL /* where siblings share a core: each sees what the other does at that moment */
#define QUANTUM_OFF 50000ULL
#define QUEUES_EVERY 25000ULL /* cycles between two updates of controllers and links */
#define NAP_NS      1000000L  /* the controller's longest: how late a change of state is noticed */
#define STUCK_NS    20000000L /* a vCPU that waits this long while T stands still passes a block:
			       * the exclusive section may run a vCPU that waits at the horizon
			       * itself */
#define CREDIT_NS   5000000ULL /* a controller that overslept, or a host that was suspended, does not catch up */
#define BEHIND_NS   1000000000LL /* least time to the next timer that the main loop gets */
#define TIMERS_MOST 1000      /* timers run in one go; one that is always due must not hang the clock */
#define SLICE_NS    200000ULL /* on the host; shorter: more context switches */
#define SHARING     150000ULL /* cycles after a contended access in which others wait for it */
#define LOOK_AGAIN  10000ULL  /* cycles until new sharing vCPUs are noticed */
#define SPINS       32        /* checks of the other vCPUs before yielding the host's CPU */

uint64_t homenode_horizon = QUANTUM_OFF;
uint64_t homenode_on;

static const struct homenode_host *host; /* NULL: the guest has not started */
static pthread_mutex_t advancing_lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned again;         /* a clock changed; the thread that advances T may have missed it */
static unsigned controller_turn; /* futex word */
static unsigned controller_naps;
static unsigned running;       /* the guest has started */
static uint64_t newest;        /* the latest time given to any vCPU; grows with each answer */
static uint64_t credit;        /* cycles that idle time may pass; under the lock */
static uint64_t credit_at;     /* host ns up to which credit was given */
static uint64_t queues_at;     /* T at the last update of the queues */
static pthread_t thread;
static volatile int stopping;

static _Thread_local bool advancing;
static _Thread_local struct homenode_vcpu *self;

#define LOAD(p)     __atomic_load_n((p), __ATOMIC_RELAXED)
#define STORE(p, v) __atomic_store_n((p), (v), __ATOMIC_RELAXED)

static uint64_t host_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ULL + (uint64_t)ts.tv_nsec;
}

static void futex_wait(unsigned *word, unsigned seen, long ns)
{
	const struct timespec limit = { .tv_nsec = ns };

	syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, seen, &limit, NULL, 0);
}

static void futex_wake(unsigned *word)
{
	__atomic_fetch_add(word, 1, __ATOMIC_RELEASE);
	syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

/* An interrupt for a vCPU waits until the host gives its thread a turn. With more busy vCPUs than
 * host CPUs this takes milliseconds at the host's usual slice, and all other vCPUs wait. Kernels
 * since 6.12 let a thread ask for shorter turns (sched_setattr(2),
 * sched_runtime of SCHED_OTHER); older ones refuse or ignore that, and the run takes longer. */
static void short_turns(void)
{
	/* struct sched_attr, version 0: glibc 2.36 has none, and linux/sched/types.h
	 * clashes with its struct sched_param */
	struct {
		uint32_t size, policy;
		uint64_t flags;
		int32_t nice;
		uint32_t priority;
		uint64_t runtime, deadline, period;
	} attr = { .size = sizeof(attr), .nice = getpriority(PRIO_PROCESS, 0), .runtime = SLICE_NS };

	syscall(SYS_sched_setattr, 0, &attr, 0);
}

static int64_t to_ns(uint64_t cycles)
{
	uint64_t mhz = homenode_model.conf.mhz;

	return (int64_t)(cycles / mhz * 1000 + cycles % mhz * 1000 / mhz);
}

static uint64_t to_cycles(uint64_t ns) /* rounded up */
{
	uint64_t mhz = homenode_model.conf.mhz;

	return ns / 1000 * mhz + (ns % 1000 * mhz + 999) / 1000;
}

void homenode_clock_set_ns(uint64_t ns)
{
	uint64_t cycles = to_cycles(ns);

	STORE(&homenode_model.shared->model_cycles, cycles);
	STORE(&newest, cycles);
}

void homenode_clock_host(const struct homenode_host *h)
{
	__atomic_store_n(&host, h, __ATOMIC_RELEASE);
}

/* QEMU's main loop sleeps until the guest's next timer, and takes the guest's clock for the
 * host's. With a timer close ahead and a slow guest, it would poll all the time and use up a CPU
 * of the host. The thread that advances T runs the timers, so the main loop is told that they are
 * far away.
 *
 * A vCPU may be ahead of T. It may pass the time to another vCPU, which then reads the clock.
 * Time must not go back or stand still between the two, as with a real time-stamp counter. */
int64_t homenode_clock_guest_ns(void)
{
	uint64_t now = LOAD(&homenode_model.shared->model_cycles), seen;

	if (advancing)
		return to_ns(now);
	if (!self) { /* never below 0: i8254.c computes with unsigned times */
		int64_t ns = to_ns(now) - (LOAD(&running) ? BEHIND_NS : 0);

		return ns > 0 ? ns : 0;
	}
	if (self->clock > now)
		now = self->clock;
	seen = LOAD(&newest);
	do {
		now = now > seen ? now : seen + 1;
	} while (!__atomic_compare_exchange_n(&newest, &seen, now, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
	return to_ns(now);
}

/* Number 1 of clock.h; UINT64_MAX: all are idle. */
static uint64_t slowest_clock(const struct homenode_model *m, uint64_t t)
{
	uint64_t min = UINT64_MAX;

	for (unsigned i = 0; i < m->conf.ncpu; i++) {
		const struct homenode_lab_vcpu *pub = m->vcpu[i].pub;
		uint64_t c = UINT64_MAX;

		if (__atomic_load_n(&pub->running, __ATOMIC_ACQUIRE))
			c = LOAD(&pub->clock);
		else if (host->has_work(i))
			c = t;
		min = c < min ? c : min;
	}
	return min < t ? t : min;
}

static uint64_t timer_due(uint64_t t)
{
	int64_t left = host->deadline_ns();

	return left < 0 ? UINT64_MAX : t + to_cycles((uint64_t)left);
}

/* Cycles that T may advance by the host's time. That limits T while all vCPUs are idle, and in
 * real time. */
static uint64_t earn(const struct homenode_model *m, bool counts)
{
	uint64_t now = host_ns(), rate = LOAD(&m->shared->idle_rate);
	uint64_t passed = now - credit_at;

	credit_at = now;
	if (!counts)
		return credit = 0;
	rate = rate ? rate : 1;
	uint64_t most = CREDIT_NS * rate;
	passed = passed < CREDIT_NS ? passed * rate : most;
	credit += passed * m->conf.mhz / 1000;
	most = most * m->conf.mhz / 1000;
	return credit = credit < most ? credit : most;
}

/* Where T goes next, and whether a timer is due there. */
static uint64_t next_stop(struct homenode_model *m, uint64_t t, bool *timer)
{
	uint64_t slow = slowest_clock(m, t), due = timer_due(t);
	uint64_t next = slow < due ? slow : due;
	bool by_host = slow == UINT64_MAX || !LOAD(&m->shared->idle_rate);
	uint64_t allowed = earn(m, by_host);

	if (by_host && next - t > allowed)
		next = t + allowed;
	if (by_host)
		credit -= next - t;
	*timer = next == due;
	return next;
}

static void look_at_queues(struct homenode_model *m, uint64_t t)
{
	if (!homenode_on || t - queues_at < QUEUES_EVERY)
		return;
	homenode_model_queues(m, t - queues_at);
	queues_at = t;
}

static uint64_t quantum(void)
{
	if (!LOAD(&homenode_on))
		return QUANTUM_OFF;
	return homenode_model.smt ? QUANTUM_SMT : QUANTUM_ON;
}

/* A vCPU that waited runs for at least half a quantum: with less, the host mostly switches
 * threads. The slowest vCPU may always run. */
static bool may_run(uint64_t clock)
{
	return clock + quantum() / 2 <= LOAD(&homenode_horizon);
}

static void wake_waiting(struct homenode_model *m)
{
	for (unsigned i = 0; i < m->conf.ncpu; i++) {
		struct homenode_vcpu *v = &m->vcpu[i];

		if (LOAD(&v->waiting) && may_run(LOAD(&v->pub->clock)))
			futex_wake(&v->turn);
	}
}

/* No vCPU is further ahead than it may be. */
static bool together(const struct homenode_model *m, uint64_t horizon)
{
	for (unsigned i = 0; i < m->conf.ncpu; i++)
		if (LOAD(&m->vcpu[i].pub->running) && LOAD(&m->vcpu[i].pub->clock) > horizon)
			return false;
	return true;
}

/* Enters the requested state. ON takes effect once T has caught up with the vCPUs that ran ahead
 * while it was OFF. They wait meanwhile. */
static void enter(struct homenode_model *m, uint64_t t, uint64_t horizon)
{
	struct homenode_lab_shared *s = m->shared;
	uint64_t want = LOAD(&s->state);

	if (want > HOMENODE_ON || want == s->applied)
		return;
	if (want == HOMENODE_ON && !homenode_on) {
		homenode_model_forget_load(m); /* earlier accesses are no load */
		homenode_model_empty_caches(m);
		queues_at = t;
	}
	STORE(&homenode_on, want == HOMENODE_ON);
	if (want == HOMENODE_OFF || together(m, horizon))
		__atomic_store_n(&s->applied, want, __ATOMIC_RELEASE);
}

/* Number 2 of clock.h. Under the lock. */
static void advance(struct homenode_model *m)
{
	struct homenode_lab_shared *s = m->shared;
	bool timer = true;

	advancing = true;
	for (unsigned i = 0; timer && i < TIMERS_MOST; i++) {
		uint64_t t = next_stop(m, s->model_cycles, &timer);

		STORE(&s->model_cycles, t);
		look_at_queues(m, t);
		if (timer)
			host->run_timers();
	}
	advancing = false;
	uint64_t horizon = s->model_cycles + quantum();
	enter(m, s->model_cycles, horizon);
	homenode_qos_enter(m);
	STORE(&homenode_horizon, horizon);
	s->heartbeat++;
	wake_waiting(m);
}

/* One thread at a time advances T, and then checks for changes in the meantime. False: another
 * thread advances T, and will check. */
static bool try_advance(struct homenode_model *m)
{
	__atomic_store_n(&again, 1, __ATOMIC_SEQ_CST);
	while (__atomic_load_n(&again, __ATOMIC_SEQ_CST)) {
		if (pthread_mutex_trylock(&advancing_lock))
			return false;
		__atomic_store_n(&again, 0, __ATOMIC_SEQ_CST);
		advance(m);
		pthread_mutex_unlock(&advancing_lock);
	}
	return true;
}

void homenode_clock_kick(struct homenode_vcpu *v)
{
	STORE(&v->kicked, 1);
	if (LOAD(&v->waiting))
		futex_wake(&v->turn);
}

static bool take_kick(struct homenode_vcpu *v)
{
	return LOAD(&v->kicked) && __atomic_exchange_n(&v->kicked, 0, __ATOMIC_ACQ_REL);
}

/* Waits for its turn. False: T stood still so long that the vCPU has to pass a block. */
static bool wait_for_turn(struct homenode_model *m, struct homenode_vcpu *v, unsigned seen, uint64_t *since)
{
	uint64_t t = LOAD(&m->shared->model_cycles);

	v->pub->waits++;
	futex_wait(&v->turn, seen, STUCK_NS);
	if (LOAD(&m->shared->model_cycles) != t)
		*since = 0;
	else if (!*since)
		*since = host_ns();
	return !*since || host_ns() - *since < (uint64_t)STUCK_NS;
}

void homenode_clock_wait(struct homenode_model *m, struct homenode_vcpu *v)
{
	uint64_t since = 0;

	if (!host)
		return;
	STORE(&v->pub->clock, v->clock);
	__atomic_store_n(&v->waiting, 1, __ATOMIC_SEQ_CST);
	for (;;) {
		unsigned seen = __atomic_load_n(&v->turn, __ATOMIC_ACQUIRE);

		try_advance(m);
		if (may_run(v->clock) || take_kick(v) || !wait_for_turn(m, v, seen, &since))
			break;
	}
	STORE(&v->waiting, 0);
}

/* The least clock of the other vCPUs that share lines; UINT64_MAX = none runs. */
static uint64_t others_clock(struct homenode_model *m, const struct homenode_vcpu *v)
{
	uint64_t min = UINT64_MAX;

	for (unsigned i = 0; i < m->conf.ncpu; i++) {
		struct homenode_vcpu *u = &m->vcpu[i];

		if (u == v || !LOAD(&u->pub->running))
			continue;
		uint64_t clock = LOAD(&u->pub->clock);
		if (clock < min && LOAD(&u->shares_until) > clock)
			min = clock;
	}
	return min;
}

/* A vCPU that waits here is inside a block, which QEMU may want it to leave. */
static void wait_for_others(struct homenode_model *m, struct homenode_vcpu *v, uint64_t until)
{
	for (unsigned looks = 1;; looks++) {
		uint64_t others = others_clock(m, v);

		if (others >= until) {
			uint64_t again_at = v->clock + LOOK_AGAIN;
			v->others_reached = others < again_at ? others : again_at;
			return;
		}
		if (take_kick(v)) {
			v->pub->unordered++;
			v->others_reached = v->clock + LOOK_AGAIN; /* do not wait again at the next access */
			return;
		}
		if (looks % SPINS)
			__builtin_ia32_pause();
		else
			sched_yield();
	}
}

bool homenode_clock_order(struct homenode_model *m, struct homenode_vcpu *v, bool reads_own)
{
	if (!LOAD(&homenode_on) || v->ctr != v->pub->counter[HOMENODE_USER])
		return false;
	uint64_t slack = reads_own ? m->conf.transfer[v->node][v->node] : 0;
	STORE(&v->shares_until, v->clock + SHARING);
	if (v->others_reached + slack >= v->clock)
		return true;
	STORE(&v->pub->clock, v->clock);
	v->pub->ordered++;
	wait_for_others(m, v, v->clock - slack);
	return true;
}

struct homenode_vcpu *homenode_clock_self(void)
{
	return self;
}

/* Does not run timers that are due now: QEMU holds its lock here, and puts the vCPU to sleep
 * without checking what the timers did. */
void homenode_clock_idle(struct homenode_vcpu *v)
{
	self = v;
	__atomic_store_n(&v->pub->running, 0, __ATOMIC_RELEASE);
	__atomic_store_n(&again, 1, __ATOMIC_SEQ_CST);
	if (LOAD(&controller_naps))
		futex_wake(&controller_turn);
}

/* A vCPU whose thread had its first turn on the host only after the guest was started never
 * slept. QEMU does not call resume for it, so its first block does. Without that, the vCPU did
 * not hold T back, and it was told the main loop's time, which is behind. The interval timer was
 * then programmed at a time below 0 and stayed due for ever: on a busy host the boot hung. */
void homenode_clock_resume(struct homenode_model *m, struct homenode_vcpu *v)
{
	uint64_t t = LOAD(&m->shared->model_cycles);

	if (!v->started) {
		v->started = true;
		short_turns();
	}
	STORE(&running, 1);
	self = v;
	if (v->clock < t)
		v->clock = t;
	STORE(&v->pub->clock, v->clock);
	__atomic_store_n(&v->pub->running, 1, __ATOMIC_RELEASE);
}

/* Advances T where no vCPU does: all are idle, or the one that held T back became idle. If
 * another thread is advancing T, that thread checks again. Waiting for it here would take up a
 * CPU of a busy host. */
static void *controller(void *arg)
{
	struct homenode_model *m = arg;
	bool looked = true;

	credit_at = host_ns();
	while (!stopping) {
		STORE(&controller_naps, 1);
		unsigned seen = __atomic_load_n(&controller_turn, __ATOMIC_ACQUIRE);
		if (!looked || !LOAD(&again))
			futex_wait(&controller_turn, seen, NAP_NS);
		STORE(&controller_naps, 0);
		looked = !__atomic_load_n(&host, __ATOMIC_ACQUIRE) || try_advance(m);
	}
	return NULL;
}

int homenode_clock_start(struct homenode_model *m)
{
	return pthread_create(&thread, NULL, controller, m);
}

void homenode_clock_stop(void)
{
	stopping = 1;
}
