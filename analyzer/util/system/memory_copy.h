/* What a process had in its memory and its registers at one moment, as analyzer/attach/copy.h copies it. */
#ifndef MT_UTIL_SYSTEM_MEMORY_COPY_H
#define MT_UTIL_SYSTEM_MEMORY_COPY_H

#include <stddef.h>
#include <stdint.h>

enum copy_kind {
	COPY_MALLOC,  /* a heap of glibc's malloc: what is in no block there is free */
	COPY_GLOBALS, /* of a program or library */
	COPY_STACK,   /* of a thread, from its stack pointer on; its thread-local variables are in it, too */
	COPY_OTHER,   /* anonymous or shared; may have large blocks of malloc in it */
	COPY_WORDS,   /* a thread's registers, what the kernel keeps for an epoll */
};

struct copy_range {
	uint64_t start, end; /* of COPY_WORDS: 0 and their bytes */
	uint64_t offset;     /* in memory_copy.memory */
	enum copy_kind kind;
	uint32_t thread; /* id, of stacks and registers; 0 = of none */
};

struct copy_thread {
	uint32_t id;
	char name[16];
	uint64_t own; /* where its own data are, its thread-local variables beside them */
};

struct memory_copy {
	struct copy_range *ranges; /* by address, COPY_WORDS first */
	size_t count, room;
	struct copy_thread *threads;
	size_t thread_count, thread_room;
	uint64_t bytes;      /* copied */
	uint64_t ticks;      /* of the session's clock: a moment at which all threads stood still */
	uint64_t stopped_ns; /* how long they did */
	void *memory;
	size_t memory_bytes;
};

void memory_copy_free(struct memory_copy *c);
void memory_copy_unmap(struct memory_copy *c);

static inline const uint64_t *memory_copy_words(const struct memory_copy *c, const struct copy_range *r)
{
	return (const uint64_t *)(const void *)((const uint8_t *)c->memory + r->offset);
}

/* What was at an address that is a multiple of 8, and how many words follow in the same range; NULL = not copied. */
const uint64_t *memory_copy_at(const struct memory_copy *c, uint64_t at, size_t *words);

#endif
