/* A running program that libmemtrace.so is to be loaded into: what it is, read from /proc. Nothing of it is changed. */
#ifndef MT_ATTACH_TARGET_H
#define MT_ATTACH_TARGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct target_range {
	uint64_t start, end, offset;
	char prot[5];
	char path[512]; /* or "[stack]"; may be empty */
};

struct target_symbol {
	uint64_t start, end;
	char name[40];
};

/* A module's exported functions, sorted by address. */
struct target_module {
	uint64_t base, end;
	struct target_symbol *symbols;
	size_t count;
};

struct target {
	pid_t pid;
	uint32_t uid, gid;
	int memory; /* /proc/PID/mem; -1 = not open */
	struct target_range *ranges;
	size_t range_count;
	struct target_module libc, loader;
	bool other_root;      /* its files are not ours */
	bool own_malloc;      /* the program has one */
	uint64_t stack_limit; /* of its first thread */
	char program[64];
};

/* 0, or an error that says why it can't be attached to and what would help. target_close() in either case. */
int target_open(struct target *t, pid_t pid);
void target_close(struct target *t);

bool target_has_ended(const struct target *t);

/* The mappings as they are now. */
int target_ranges(struct target *t);
const struct target_range *target_range(const struct target *t, uint64_t at);

/* The exported functions of the module that is mapped from a file of that name ("libc.so.6", "libc-2.31.so"), and whether
 * there is one. */
bool target_module(const struct target *t, struct target_module *m, const char *prefix, const char *contains);
void target_module_free(struct target_module *m);

/* Of a function, 0 = there is none. Of an address: the symbol that it is in, or NULL. */
uint64_t target_function(const struct target_module *m, const char *name);
const struct target_symbol *target_symbol(const struct target_module *m, uint64_t at);

/* Whether a thread that has the loader's lock, which dlopen would wait for, waits for something itself: perhaps for
 * what the thread has that is to call dlopen. Seen in the loader's data; where they are not recognized: no. */
bool target_loader_is_busy(const struct target *t);

bool target_read(const struct target *t, uint64_t at, void *to, size_t bytes);

#endif
