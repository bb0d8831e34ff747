// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Reads QEMU's code as the plugin does, on code made by hand: finds the table of operations, and
 * refuses code that only resembles it.
 */
#include "host.c"
#include <sys/mman.h>

#define PAGE 4096
#define RAX  0
#define RCX  1
#define RSP  4
#define RDI  7

static char table[TABLE_BYTES], elsewhere[TABLE_BYTES];
static void *table_pointer = table, *other_pointer = elsewhere;
static _Alignas(PAGE) char unmapped[PAGE];
static int failures;

/* Code of a function; the rest is NOPs. */
static unsigned char code[2 * CODE_BYTES];
static unsigned used;

static void begin(void)
{
	memset(code, 0x90, sizeof(code));
	used = 0;
}

static void put(const void *bytes, size_t n)
{
	memcpy(code + used, bytes, n);
	used += (unsigned)n;
}

/* mov where(%rip),%to */
static void load_from(const void *where, int to)
{
	unsigned char op[] = { 0x48, 0x8b, (unsigned char)(to << 3 | 5) };

	put(op, sizeof(op));
	int32_t disp = (int32_t)((const unsigned char *)where - (code + used + sizeof(disp)));
	put(&disp, sizeof(disp));
}

/* mov disp(%base),%to; small: with a displacement of one byte */
static void load_by(int base, int to, int32_t disp, bool small)
{
	unsigned char op[] = { 0x48, 0x8b, (unsigned char)((small ? 1 : 2) << 6 | to << 3 | base) };

	put(op, sizeof(op));
	put(&disp, small ? 1 : sizeof(disp));
}

/* want: the offset that is found; 0: none */
static void found(const char *about, long want)
{
	void **at = operation(code, table);
	long got = at ? (char *)at - table : 0;

	if (got != want) {
		printf("host_test.c: %s: offset %ld, want %ld\n", about, got, want);
		failures++;
	}
	begin();
}

static void offsets_that_are_known(void)
{
	begin();
	load_from(&table_pointer, RAX);
	load_by(RAX, RAX, 0xb8, false);
	found("QEMU 7.2's clock", 0xb8);

	put("\x53\x48\x89\xfb", 4); /* push %rbx; mov %rdi,%rbx */
	load_by(RDI, RDI, 0xc0, false);
	put("\xe8\0\0\0\0", 5); /* call */
	load_from(&table_pointer, RAX);
	load_by(RAX, RAX, 0x78, true);
	found("QEMU 7.2's kick", 0x78);

	load_from(&other_pointer, RAX);
	load_from(&table_pointer, RCX);
	load_by(RAX, RAX, 0x10, true);
	load_by(RCX, RAX, 0xd0, false);
	found("another register", 0xd0);

	load_from(&table_pointer, RAX);
	load_by(RAX, RAX, TABLE_BYTES - 8, false);
	found("the table's last", TABLE_BYTES - 8);
}

static void code_that_is_not_known(void)
{
	found("no load", 0);

	load_from(&table_pointer, RAX);
	found("the table, and no load from it", 0);

	load_by(RAX, RAX, 0xb8, false);
	found("a load, and no table", 0);

	load_from(&table_pointer, RAX);
	load_by(RCX, RAX, 0xb8, false);
	found("a load through another register than the table's", 0);

	load_from(&other_pointer, RAX);
	load_by(RAX, RAX, 0xb8, false);
	found("another table", 0);

	load_from(&table_pointer, RSP);
	put("\x48\x8b\x84\x24\xb8\0\0\0", 8); /* mov 0xb8(%rsp),%rax */
	found("through the stack", 0);

	load_from(&table_pointer, RAX);
	used = CODE_BYTES;
	load_by(RAX, RAX, 0xb8, false);
	found("a load far behind", 0);
}

static void offsets_that_are_none(void)
{
	const int32_t none[] = { 0, -8, TABLE_BYTES, TABLE_BYTES - 7, 0x40000000 };

	for (unsigned i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
		load_from(&table_pointer, RAX);
		load_by(RAX, RAX, none[i], false);
		found("an offset out of the table", 0);
	}
}

/* Bytes that are no load may look like a load from an unmapped address. */
static void unmapped_is_no_crash(void)
{
	mprotect(unmapped, sizeof(unmapped), PROT_NONE);
	load_from(unmapped + 8, RAX);
	load_from(&table_pointer, RCX);
	load_by(RCX, RAX, 0xc0, false);
	found("after a load of an unmapped address", 0xc0);
}

/* This program is no QEMU. */
static void says_what_is_missing(void)
{
	char err[256] = "";

	if (homenode_host_take_over(err, sizeof(err)) || !strstr(err, "does not export cpus_get_accel: use QEMU 7.2 or 10.0")) {
		printf("host_test.c: without QEMU: \"%s\"\n", err);
		failures++;
	}
}

int main(void)
{
	offsets_that_are_known();
	code_that_is_not_known();
	offsets_that_are_none();
	unmapped_is_no_crash();
	says_what_is_missing();
	printf("host_test: %s\n", failures ? "FAILED" : "ok");
	return failures != 0;
}
