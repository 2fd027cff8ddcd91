/*
 * Writes a trace directory from what another program recorded: one process, whose events come in order of time.
 *
 *   struct import_trace *t;
 *   int e = import_trace_open(&t, "DIR", &(struct import_source){ "heaptrack's", "heaptrack.app.zst", ... });
 *   uint32_t frame = import_frame(t, &(struct import_frame){ "f", "x.py", NULL, 3, true });
 *   struct import_stack s = import_stack(t, frames, count);
 *   import_event(t, ns, &slot, NULL);
 *   e = import_trace_close(t, e == 0);
 *
 * An error is kept: what follows does nothing, and closing returns it.
 */
#ifndef MT_IMPORT_IMPORT_TRACE_H
#define MT_IMPORT_IMPORT_TRACE_H

#include "format/format.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct import_source {
	const char *what;     /* "a memory snapshot of PyTorch's" */
	const char *path;     /* of the file */
	const char *lacks;    /* what is not in it, for screens: "the host's memory, ..." */
	const char *program;  /* "" = unknown: the file's name stands for it */
	const char *settings; /* NAME=VALUE of an allocator; "" = none known */
	uint32_t has;         /* enum mt_import_has */
	uint32_t pid;         /* 0 = unknown */
	uint64_t start_real_ns;
};

struct import_frame {
	const char *function, *file, *library; /* NULL = unknown */
	uint32_t line;                         /* 0 = unknown */
	bool python;
};

/* As an event has it. */
struct import_stack {
	uint32_t node, node2;
};

struct import_trace;

/* Makes the directory, which must not be there. 0, -MT_EUSAGE, -MT_EOUTPUT or -MT_EMEMORY, and *out is NULL then. */
int import_trace_open(struct import_trace **out, const char *dir, const struct import_source *source);

/* Writes what is left. Not whole, or an error: the directory is taken away. Returns the first error. NULL is fine. */
int import_trace_close(struct import_trace *t, bool whole);

/* The number of such a frame, from 1 on; 0 behind an error. */
uint32_t import_frame(struct import_trace *t, const struct import_frame *frame);

/* The stack of these frames, innermost first. */
struct import_stack import_stack(struct import_trace *t, const uint32_t *frames, size_t count);

/* Stacks that are known frame by frame, as the interpreter and an unwinder have them. Each frame is a node below that
 * of its caller, 0 = the outermost; those of Python's make up node2 of a stack, those of addresses node. */
struct import_code {
	const char *function, *file;
	uint32_t version, first_line; /* of CPython: 0x030b for 3.11 */
	const unsigned char *table;   /* of its lines: co_linetable, co_lnotab before 3.10 */
	size_t bytes;
};

uint32_t import_code(struct import_trace *t, const struct import_code *code);

/* `entry`: the evaluator was entered for it. */
uint32_t import_python_node(struct import_trace *t, uint32_t parent, uint32_t code, uint32_t offset, bool entry);
uint32_t import_native_node(struct import_trace *t, uint32_t parent, uint64_t return_address);

/* A file that is mapped there from now on: of the nodes that come. Its names are looked up in it by who asks. */
struct import_library {
	const char *path;
	uint64_t bias, start, end;
};

void import_library(struct import_trace *t, const struct import_library *library);

/* Numbers of a hook and of a device, for events; from 1 on. */
uint32_t import_hook(struct import_trace *t, const char *name);
uint32_t import_device(struct import_trace *t, enum mt_backend backend, uint32_t ordinal);

/* `ns` is since the start; an earlier one than that of the event before becomes its. `slot` has no time; `ext` NULL: it
 * has none. */
void import_event(struct import_trace *t, uint64_t ns, struct mt_event slot, const void *ext);

#endif
