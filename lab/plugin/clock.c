// SPDX-License-Identifier: GPL-2.0-or-later
#define _GNU_SOURCE
#include "clock.h"
#include <linux/futex.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define ROUND_NS   500000ULL    /* shorter: finer skew, more wake-ups on the host */
#define SLACK_NS   750000ULL    /* of model time at nominal rate; > ROUND, so that
				 * a punctual vCPU never waits for a late round */
#define WAIT_NS    2000000L     /* longest wait in one go: QEMU's exclusive sections
				 * and interrupts need the vCPU to pass a block */
#define SLICE_NS   200000ULL    /* on the host: shorter, more context switches */
#define MAX_DT_NS  (4 * ROUND_NS) /* a controller that overslept does not catch up */
#define WINDOW_NS  250000000ULL /* over which the slowest rate is taken */
#define SHARING    150000ULL    /* cycles after a contended access in which others wait for it */
#define LOOK_AGAIN 10000ULL     /* cycles after which new ones among these are noticed */
#define SPINS      32           /* looks at the others before the host's CPU is offered to them */

uint64_t homenode_horizon = UINT64_MAX;
uint64_t homenode_counting;
uint64_t homenode_paced;

static uint64_t epoch;      /* counts changes of state that need synchronising */
static unsigned round_no;   /* futex word: one per round */
static pthread_t thread;
static volatile int stopping;

#define LOAD(p)     __atomic_load_n((p), __ATOMIC_RELAXED)
#define STORE(p, v) __atomic_store_n((p), (v), __ATOMIC_RELAXED)

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ULL + (uint64_t)ts.tv_nsec;
}

/* An interrupt for a vCPU waits until the host gives its thread a turn. With
 * more busy vCPUs than host CPUs that is milliseconds at the host's usual slice,
 * and every cross-CPU call of the guest's kernel (perf_event_open, shootdowns,
 * RCU) pays it. Kernels since 6.12 let a thread ask for shorter turns
 * (sched_setattr(2), sched_runtime of SCHED_OTHER); older ones refuse or ignore
 * that, and the guest is just slower. */
void homenode_clock_short_turns(void)
{
	/* struct sched_attr, version 0: glibc 2.36 has none, and linux/sched/types.h
	 * clashes with its struct sched_param */
	struct {
		uint32_t size, policy;
		uint64_t flags;
		int32_t nice;
		uint32_t priority;
		uint64_t runtime, deadline, period;
	} attr = { .size = sizeof(attr), .runtime = SLICE_NS };

	syscall(SYS_sched_setattr, 0, &attr, 0);
}

static void synchronise(struct homenode_model *m, struct homenode_vcpu *v)
{
	uint64_t e = __atomic_load_n(&epoch, __ATOMIC_ACQUIRE);

	if (v->epoch == e)
		return;
	v->clock = LOAD(&m->shared->model_cycles);
	v->shares_until = v->others_reached = 0;
	STORE(&v->pub->clock, v->clock);
	__atomic_store_n(&v->epoch, e, __ATOMIC_RELEASE);
}

void homenode_clock_wait(struct homenode_model *m, struct homenode_vcpu *v)
{
	synchronise(m, v);
	STORE(&v->pub->clock, v->clock);
	if (v->daemons && LOAD(&m->shared->state) == HOMENODE_WARM)
		return;
	unsigned seen = __atomic_load_n(&round_no, __ATOMIC_ACQUIRE);
	if (v->clock < LOAD(&homenode_horizon))
		return;
	const struct timespec limit = { .tv_nsec = WAIT_NS };
	v->pub->waits++;
	syscall(SYS_futex, &round_no, FUTEX_WAIT_PRIVATE, seen, &limit, NULL, 0);
}

/* The least clock of the other vCPUs that share lines; UINT64_MAX = none runs. */
static uint64_t others_clock(struct homenode_model *m, const struct homenode_vcpu *v)
{
	bool warm = LOAD(&m->shared->applied) == HOMENODE_WARM;
	uint64_t min = UINT64_MAX;

	for (unsigned i = 0; i < m->conf.ncpu; i++) {
		struct homenode_vcpu *u = &m->vcpu[i];

		if (u == v || (warm && u->daemons) || !LOAD(&u->pub->running))
			continue;
		uint64_t clock = LOAD(&u->pub->clock);
		if (clock < min && LOAD(&u->shares_until) > clock)
			min = clock;
	}
	return min;
}

/* A vCPU that waits here is inside a block: QEMU cannot stop it. So not for long. */
static void wait_for_others(struct homenode_model *m, struct homenode_vcpu *v, uint64_t until)
{
	uint64_t begin = 0;

	for (unsigned looks = 1;; looks++) {
		uint64_t others = others_clock(m, v);

		if (others >= until) {
			uint64_t again = v->clock + LOOK_AGAIN;
			v->others_reached = others < again ? others : again;
			return;
		}
		if (looks % SPINS) {
			__builtin_ia32_pause();
			continue;
		}
		sched_yield();
		uint64_t now = now_ns();
		begin = begin ? begin : now;
		if (now - begin > WAIT_NS) {
			v->pub->unordered++;
			v->others_reached = v->clock + LOOK_AGAIN; /* not at the next access again */
			return;
		}
	}
}

bool homenode_clock_order(struct homenode_model *m, struct homenode_vcpu *v, bool reads_own)
{
	if (!LOAD(&homenode_paced) || v->ctr != v->pub->counter[HOMENODE_USER] ||
	    (v->daemons && LOAD(&m->shared->applied) == HOMENODE_WARM))
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

void homenode_clock_idle(struct homenode_vcpu *v)
{
	__atomic_store_n(&v->pub->running, 0, __ATOMIC_RELEASE);
}

void homenode_clock_resume(struct homenode_model *m, struct homenode_vcpu *v)
{
	uint64_t t = LOAD(&m->shared->model_cycles);

	synchronise(m, v);
	if (v->clock < t)
		v->clock = t;
	STORE(&v->pub->clock, v->clock);
	__atomic_store_n(&v->pub->running, 1, __ATOMIC_RELEASE);
}

static bool all_synchronised(struct homenode_model *m)
{
	for (unsigned i = 0; i < m->conf.ncpu; i++)
		if (__atomic_load_n(&m->vcpu[i].pub->running, __ATOMIC_ACQUIRE) &&
		    __atomic_load_n(&m->vcpu[i].epoch, __ATOMIC_ACQUIRE) != epoch)
			return false;
	return true;
}

static uint64_t slowest_clock(struct homenode_model *m)
{
	uint64_t min = UINT64_MAX;
	bool warm = m->shared->applied == HOMENODE_WARM;

	for (unsigned i = 0; i < m->conf.ncpu; i++) {
		if (warm && m->vcpu[i].daemons)
			continue;
		if (!__atomic_load_n(&m->vcpu[i].pub->running, __ATOMIC_ACQUIRE))
			continue;
		uint64_t c = LOAD(&m->vcpu[i].pub->clock);
		min = c < min ? c : min;
	}
	return min;
}

struct window {
	uint64_t wall_ns, cycles;
};

/* Keep the lowest rate of any full window since PACE began. */
static void rate_account(struct homenode_lab_shared *s, struct window *w,
			 uint64_t dt_ns, uint64_t cycles)
{
	s->paced_wall_ns += dt_ns;
	s->paced_cycles += cycles;
	w->wall_ns += dt_ns;
	w->cycles += cycles;
	if (w->wall_ns < WINDOW_NS)
		return;
	uint64_t permille = w->cycles * 1000000 / (w->wall_ns * s->mhz);
	if (permille < s->slowest_permille)
		s->slowest_permille = permille;
	*w = (struct window){ 0 };
}

/* The clock's next value where it is paced: rule 1 of clock.h. */
static uint64_t paced_step(struct homenode_model *m, uint64_t t, uint64_t target)
{
	uint64_t slowest = slowest_clock(m);

	if (slowest < t)
		slowest = t;
	return slowest < target ? slowest : target;
}

/* Enter the state asked for. Returns false while vCPUs have yet to synchronise. */
static bool enter(struct homenode_model *m, uint64_t want, struct window *w, bool *asked)
{
	struct homenode_lab_shared *s = m->shared;

	if (want != HOMENODE_PACE && want != HOMENODE_WARM) {
		STORE(&homenode_paced, 0);
		STORE(&homenode_horizon, UINT64_MAX);
		STORE(&homenode_counting, want == HOMENODE_COUNT);
		*asked = false;
		return true;
	}
	STORE(&homenode_counting, 1);
	if (!*asked) {
		STORE(&homenode_horizon, 0);
		__atomic_store_n(&epoch, epoch + 1, __ATOMIC_RELEASE);
		*asked = true;
		return false;
	}
	if (!all_synchronised(m))
		return false;
	*asked = false;
	STORE(&homenode_paced, 1);
	homenode_model_queues(m, 0, false); /* what came before is no load */
	*w = (struct window){ 0 };
	s->paced_cycles = s->paced_wall_ns = 0;
	s->slowest_permille = 1000;
	return true;
}

static void advance(struct homenode_model *m, uint64_t dt_ns, struct window *w)
{
	struct homenode_lab_shared *s = m->shared;
	uint64_t t = s->model_cycles, next;
	uint64_t capped = dt_ns < MAX_DT_NS ? dt_ns : MAX_DT_NS;

	bool paced = s->applied == HOMENODE_PACE || s->applied == HOMENODE_WARM;

	if (paced) {
		next = paced_step(m, t, t + capped * s->mhz / 1000);
		rate_account(s, w, dt_ns, next - t);
		STORE(&homenode_horizon, next + SLACK_NS * s->mhz / 1000);
	} else {
		next = t + dt_ns * s->mhz / 1000;
	}
	STORE(&s->model_cycles, next);
	/* Unpaced, vCPUs run past the clock at the host's speed: their demand
	 * per model cycle means nothing, and DRAM answers at idle latency. */
	if (!paced || next > t)
		homenode_model_queues(m, next - t, paced);
}

static void *controller(void *arg)
{
	struct homenode_model *m = arg;
	struct homenode_lab_shared *s = m->shared;
	struct window w = { 0 };
	uint64_t last = now_ns();
	bool asked = false;

	while (!stopping) {
		const struct timespec round = { .tv_nsec = ROUND_NS };

		nanosleep(&round, NULL);
		uint64_t now = now_ns(), want = LOAD(&s->state);

		/* `asked` with nothing wanted any more: the change was withdrawn */
		if ((want != s->applied || asked) && want <= HOMENODE_WARM &&
		    enter(m, want, &w, &asked))
			__atomic_store_n(&s->applied, want, __ATOMIC_RELEASE);
		else if (s->applied != HOMENODE_OFF && !asked)
			advance(m, now - last, &w);
		last = now;
		s->heartbeat++;
		__atomic_fetch_add(&round_no, 1, __ATOMIC_RELEASE);
		syscall(SYS_futex, &round_no, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
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
