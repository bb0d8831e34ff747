/* SPDX-License-Identifier: Apache-2.0 */
/* One JSON document per run.  Unknown is null, never 0. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "load.h"

/* A device or a pipe: renaming a file onto it would replace it, even /dev/null. */
static bool is_special(const char *path)
{
	struct stat about;

	return !stat(path, &about) && !S_ISREG(about.st_mode);
}

/* A file is written beside its path and renamed, so that a reader sees all or nothing. */
FILE *homenode_output_open(const char *path)
{
	char *tmp;
	FILE *f;

	if (!path)
		return stdout;
	if (asprintf(&tmp, is_special(path) ? "%s" : "%s.tmp", path) < 0)
		homenode_fail(1, "name a file beside %s: out of memory", path);
	f = fopen(tmp, "we");
	if (!f)
		homenode_fail(1, "create %s: %s; name a file in a writable folder", tmp, strerror(errno));
	free(tmp);
	return f;
}

void homenode_output_commit(FILE *f, const char *path)
{
	char *tmp;

	if (!path) {
		if (fflush(f))
			homenode_fail(1, "write to the standard output: %s; use --out FILE", strerror(errno));
		return;
	}
	if (is_special(path)) {
		if (fclose(f))
			homenode_fail(1, "write %s: %s", path, strerror(errno));
		return;
	}
	if (asprintf(&tmp, "%s.tmp", path) < 0)
		homenode_fail(1, "name a file beside %s: out of memory", path);
	/* a pipe or a device has nothing to sync: EINVAL is harmless */
	if (fflush(f) || (fsync(fileno(f)) && errno != EINVAL) || fclose(f) || rename(tmp, path))
		homenode_fail(1, "write %s: %s; name a file in a writable folder with room", path, strerror(errno));
	free(tmp);
}

static void json_string(FILE *f, const char *s)
{
	fputc('"', f);
	for (; *s; s++) {
		if (*s == '"' || *s == '\\')
			fprintf(f, "\\%c", *s);
		else if ((unsigned char)*s < 0x20)
			fprintf(f, "\\u%04x", (unsigned char)*s);
		else
			fputc(*s, f);
	}
	fputc('"', f);
}

void homenode_json_array(FILE *f, const char *key, const volatile homenode_u64 *v, uint64_t n)
{
	fprintf(f, "\"%s\":[", key);
	for (uint64_t i = 0; i < n; i++)
		fprintf(f, "%s%" PRIu64, i ? "," : "", v[i]);
	fputc(']', f);
}

static void write_latency(FILE *f, const struct homenode_hist *h, double mhz)
{
	static const struct {
		const char *name;
		double q;
	} quantile[] = { { "p50", 0.5 }, { "p90", 0.9 }, { "p95", 0.95 }, { "p99", 0.99 }, { "p999", 0.999 } };
	const char *comma = "";

	if (!h->count) {
		fputs("{\"count\":0,\"mean\":null,\"p50\":null,\"p90\":null,\"p95\":null,\"p99\":null,\"p999\":null,"
		      "\"max\":null,\"buckets\":[]}",
		      f);
		return;
	}
	fprintf(f, "{\"count\":%" PRIu64 ",\"mean\":%.3f", h->count, (double)h->sum / (double)h->count / mhz);
	for (size_t i = 0; i < sizeof(quantile) / sizeof(quantile[0]); i++)
		fprintf(f, ",\"%s\":%.3f", quantile[i].name, (double)homenode_hist_quantile(h, quantile[i].q) / mhz);
	fprintf(f, ",\"max\":%.3f,\"buckets\":[", (double)h->max / mhz);
	for (unsigned int i = 0; i < HOMENODE_HIST_BUCKETS; i++) {
		if (!h->bucket[i])
			continue;
		fprintf(f, "%s[%.3f,%" PRIu64 "]", comma, (double)homenode_hist_upper(i) / mhz, h->bucket[i]);
		comma = ",";
	}
	fputs("]}", f);
}

/* Adds up all workers; false: no worker saw the phase. */
static bool sum_phase(const struct homenode_run *run, unsigned int phase, struct homenode_tally *t,
		      struct homenode_hist *h)
{
	memset(t, 0, sizeof(*t));
	memset(h, 0, sizeof(*h));
	for (uint64_t i = 0; i < run->nthreads; i++) {
		const struct homenode_tally *w = &run->worker[i]->tally[phase];

		if (!w->seen)
			continue;
		if (!t->seen || w->start < t->start)
			t->start = w->start;
		if (!t->seen || w->end > t->end)
			t->end = w->end;
		t->seen = 1;
		t->ops += w->ops;
		t->work += w->work;
		t->requests += w->requests;
		t->dropped += w->dropped;
		homenode_hist_merge(h, &run->worker[i]->latency[phase]);
	}
	return t->seen;
}

static void write_phase(FILE *f, const struct homenode_run *run, unsigned int phase, const struct homenode_tally *t,
			const struct homenode_hist *h)
{
	fprintf(f, "{\"phase\":%u,\"ops\":%" PRIu64 ",\"work\":%" PRIu64, phase, t->ops, t->work);
	if (run->mode->has_requests)
		fprintf(f, ",\"requests\":%" PRIu64, t->requests);
	else
		fputs(",\"requests\":null", f);
	if (run->mode->has_requests && !run->opt.closed)
		fprintf(f, ",\"dropped\":%" PRIu64, t->dropped);
	else
		fputs(",\"dropped\":null", f); /* no queue that could be full */
	fprintf(f, ",\"start_cycles\":%" PRIu64 ",\"end_cycles\":%" PRIu64 ",\"latency_us\":", t->start, t->end);
	if (run->mode->has_requests || run->mode->has_latency)
		write_latency(f, h, (double)run->clock.mhz);
	else
		fputs("null", f);
	fputc('}', f);
}

/* Requests that neither ended nor were dropped: still queued or in work at the stop. */
static uint64_t write_phases(FILE *f, const struct homenode_run *run)
{
	struct homenode_hist *h = malloc(sizeof(*h));
	struct homenode_tally t;
	uint64_t unfinished = 0;
	const char *comma = "";

	if (!h)
		homenode_fail(1, "write the report: out of memory; lower --ws or --extra");
	for (unsigned int phase = 0; phase < HOMENODE_PHASES; phase++) {
		if (!sum_phase(run, phase, &t, h))
			continue;
		unfinished += t.requests - t.dropped - t.ops;
		fputs(comma, f);
		write_phase(f, run, phase, &t, h);
		comma = ",";
	}
	free(h);
	return unfinished;
}

/* Sum over the workers; null if any of them was off the PMU for a while or never measured. */
static void write_perf(FILE *f, const struct homenode_run *run)
{
	fputs("{", f);
	for (unsigned int e = 0; e < run->plan.n; e++) {
		uint64_t sum = 0;
		bool known = true;

		for (uint64_t i = 0; i < run->nthreads; i++) {
			const struct homenode_perf *p = &run->worker[i]->perf;

			known = known && p->n && p->whole[e];
			sum += p->value[e];
		}
		fprintf(f, "%s\"%s\":", e ? "," : "", run->plan.event[e].name);
		if (known)
			fprintf(f, "%" PRIu64, sum);
		else
			fputs("null", f);
	}
	fputs("}", f);
}

void homenode_report_write(const struct homenode_run *run)
{
	const struct homenode_options *o = &run->opt;
	FILE *f = homenode_output_open(o->out);
	uint64_t unfinished;

	fputs("{\"schema\":1,\"name\":", f);
	if (o->name)
		json_string(f, o->name);
	else
		fputs("null", f);
	fprintf(f, ",\"mode\":\"%s\",\"clock\":\"%s\",\"mhz\":%" PRIu64 ",\"threads\":%" PRIu64 ",\"ws_bytes\":%" PRIu64,
		run->mode->name, homenode_clock_name(&run->clock), run->clock.mhz, o->threads, o->ws_bytes);
	fprintf(f, ",\"seed\":%" PRIu64 ",\"stopped_by\":\"%s\",\"phases\":[", o->seed, run->stopped_by);
	unfinished = write_phases(f, run);
	fputs("]", f);
	if (run->mode->has_requests)
		fprintf(f, ",\"time_factor\":%.9g,\"unfinished\":%" PRIu64, run->time_factor, unfinished);
	else
		fputs(",\"time_factor\":null,\"unfinished\":null", f);
	if (run->barrier)
		fprintf(f, ",\"barriers\":%" PRIu64, run->barrier->met);
	else
		fputs(",\"barriers\":null", f);
	fputs(",\"perf\":", f);
	if (run->plan.n)
		write_perf(f, run);
	else
		fputs("null", f);
	if (run->mode->report)
		run->mode->report(f, run);
	fputs("}\n", f);
	homenode_output_commit(f, o->out);
}
