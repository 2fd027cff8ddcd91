/* Two opinions on one stack, and how often they differed. */
#ifndef TEST_UNWIND_COMPARE_H
#define TEST_UNWIND_COMPARE_H

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define DEPTH 512

static int shown, show = 3;
static _Atomic uint64_t differ, longer, shorter, beyond_init;

static void print_stack(const char *name, const uint64_t *pc, int n)
{
	fprintf(stderr, "  %s: %d frames\n", name, n);
	for (int i = 0; i < n && i < 60; i++) {
		Dl_info info = { 0 };
		dladdr((void *)(uintptr_t)(pc[i] - 1), &info);
		fprintf(stderr, "    %#lx %s+%#lx %s\n", pc[i], info.dli_fname ? info.dli_fname : "?",
		        info.dli_fbase ? pc[i] - (uintptr_t)info.dli_fbase : 0, info.dli_sname ? info.dli_sname : "");
	}
}

/* Behind a call of a module's _init or _fini: there are no tables for them, and libunwind gives up. */
static bool in_init(uint64_t pc)
{
	const uint8_t *p = (const uint8_t *)(uintptr_t)pc;

	while (*p == 0xe8)
		p += 5;
	return !memcmp(p, "\x48\x83\xc4\x08\xc3", 5);
}

/* pcs from the inside outwards; theirs may be as long as it likes. */
static void compare(const uint64_t *ours, int our_count, bool cut, const uint64_t *theirs, int their_count)
{
	int same = their_count > DEPTH ? DEPTH : their_count;

	if (our_count == same && !memcmp(ours, theirs, (size_t)same * 8) && cut == (their_count > DEPTH))
		return;
	if (!cut && our_count > same && !memcmp(ours, theirs, (size_t)same * 8)) {
		if (same > 0 && in_init(theirs[same - 1]))
			beyond_init++;
		else
			longer++; /* they gave up where we went on: libgcc has no guess about code without tables */
		return;
	}
	if (cut && our_count < same && !memcmp(ours, theirs, (size_t)our_count * 8)) {
		shorter++; /* we say so */
		return;
	}
	differ++;
	if (__atomic_fetch_add(&shown, 1, __ATOMIC_RELAXED) >= show)
		return;
	fprintf(stderr, "difference%s:\n", cut ? ", cut" : "");
	print_stack("ours", ours, our_count);
	print_stack("libunwind", theirs, their_count);
}

#endif
