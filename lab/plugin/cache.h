/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A set-associative cache of line tags.  A tag is the line number + 1 with the dirty
 * bit on top; 0 is empty.  An L2 replaces the oldest line of the set, an LLC a random one. So a
 * working set a little larger than the LLC still hits now and then, as on hardware, which
 * replaces adaptively. Replacing the oldest line would never hit.
 *
 * A node's vCPUs use its LLC without a lock. Tags change by compare-and-swap, so a vCPU removes
 * or marks only the line that it found. Races still cause a wrong hit or miss now and then, which
 * is rare against the 0.1 % that the counts are held to. An L2
 * changes under its core's lock (model.h): a tag and its virtual line belong together.
 */
#ifndef HOMENODE_CACHE_H
#define HOMENODE_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define HOMENODE_LINE_SHIFT 6
#define HOMENODE_DIRTY (1ULL << 63)
#define HOMENODE_TAG   (HOMENODE_DIRTY - 1)

struct homenode_cache {
	uint64_t *tags;   /* [sets][ways] */
	uint64_t *vlines; /* [sets][ways], L2 only: the line's virtual line in L1 */
	unsigned char *next;  /* [sets], way to replace next; NULL: at random */
	unsigned char *holes; /* [sets], empty ways; a race may count one too many */
	unsigned char *owners; /* [sets][ways], LLC only: the line's RMID (qos.c) */
	uint64_t set_mask;
	unsigned ways;
};

/* The line that was replaced; tag 0 = none. */
struct homenode_victim {
	uint64_t tag;
	union { /* 16 bytes go in registers */
		uint64_t vline; /* L2 */
		uint64_t owner; /* LLC: its RMID, while these are counted */
	};
};

/* Lines that were in it are gone: none is written back. */
static inline void homenode_cache_empty(struct homenode_cache *c)
{
	uint64_t sets = c->set_mask + 1;

	for (uint64_t at = 0; at < sets * c->ways; at++)
		__atomic_store_n(&c->tags[at], 0, __ATOMIC_RELAXED);
	memset(c->holes, (int)c->ways, sets);
	if (c->next)
		memset(c->next, 0, sets);
}

/* An L2, or an LLC (a power of two ways). */
static inline int homenode_cache_init(struct homenode_cache *c, uint64_t bytes, unsigned ways, bool l2)
{
	uint64_t sets = bytes >> HOMENODE_LINE_SHIFT;

	sets = sets > ways ? sets / ways : 1;
	c->ways = ways;
	c->set_mask = sets - 1;
	c->tags = malloc(sets * ways * sizeof(*c->tags));
	c->vlines = l2 ? calloc(sets * ways, sizeof(*c->vlines)) : NULL;
	c->next = l2 ? malloc(sets) : NULL;
	c->holes = malloc(sets);
	c->owners = l2 ? NULL : calloc(sets * ways, 1);
	if (!c->tags || !c->holes || (l2 ? !c->vlines || !c->next : !c->owners))
		return -1;
	homenode_cache_empty(c);
	return 0;
}

static inline uint64_t homenode_tag(const struct homenode_cache *c, uint64_t at)
{
	return __atomic_load_n(&c->tags[at], __ATOMIC_RELAXED);
}

/* Index of a line's tag; -1 = not there. */
static inline int64_t homenode_cache_find(const struct homenode_cache *c, uint64_t line)
{
	uint64_t at = (line & c->set_mask) * c->ways;

	for (unsigned w = 0; w < c->ways; w++)
		if ((homenode_tag(c, at + w) & HOMENODE_TAG) == line + 1)
			return (int64_t)(at + w);
	return -1;
}

/* Marks the found tag dirty or clean, or clears it. False: the way holds another line now. */
static inline bool homenode_cache_set(struct homenode_cache *c, uint64_t at, uint64_t line, uint64_t to)
{
	uint64_t tag = homenode_tag(c, at);

	while ((tag & HOMENODE_TAG) == line + 1)
		if (__atomic_compare_exchange_n(&c->tags[at], &tag, to, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
			return true;
	return false;
}

static inline uint64_t homenode_random(uint64_t *state)
{
	*state ^= *state << 13; /* xorshift64 (Marsaglia 2003) */
	*state ^= *state >> 7;
	return *state ^= *state << 17;
}

/* Inserts a line that is not in the cache: into an empty way, else in place of another line. */
static inline struct homenode_victim homenode_cache_put(struct homenode_cache *c, uint64_t line,
							uint64_t vline, uint64_t dirty, uint64_t *random)
{
	uint64_t set = line & c->set_mask, at = set * c->ways;
	unsigned way = c->ways;

	if (c->holes[set])
		for (way = 0; way < c->ways && homenode_tag(c, at + way); way++)
			;
	if (way < c->ways) {
		c->holes[set]--;
	} else {
		c->holes[set] = 0;
		way = c->next ? c->next[set] : (unsigned)(homenode_random(random) >> 32) & (c->ways - 1);
		if (c->next)
			c->next[set] = (unsigned char)(way + 1 < c->ways ? way + 1 : 0);
	}
	at += way;
	struct homenode_victim victim = { .vline = c->vlines ? c->vlines[at] : 0 };
	if (c->vlines)
		c->vlines[at] = vline;
	victim.tag = __atomic_exchange_n(&c->tags[at], (line + 1) | dirty, __ATOMIC_RELAXED);
	return victim;
}

/* Removes a line. Returns its virtual line, if it was there. */
static inline bool homenode_cache_drop(struct homenode_cache *c, uint64_t line, uint64_t *vline)
{
	int64_t at = homenode_cache_find(c, line);

	if (at < 0)
		return false;
	if (c->vlines)
		*vline = c->vlines[at];
	if (!homenode_cache_set(c, (uint64_t)at, line, 0))
		return false;
	c->holes[line & c->set_mask]++;
	return true;
}

#endif
