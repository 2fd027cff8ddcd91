/*
 * Reads PID-N.holders: snapshots of which object of Python referred to which. A snapshot is read whole; every number in
 * it is checked, so names and types are inside their tables, and counts are bounded by the bytes that are there.
 */
#ifndef MT_READER_HOLDERS_FILE_H
#define MT_READER_HOLDERS_FILE_H

#include "analyzer/reader/reader.h"
#include "format/holders.h"

enum hold_kind {
	HOLD_OBJECT,
	HOLD_FRAME, /* a function that was running */
	HOLD_BLOCK, /* memory of C or C++ */
};

struct hold_item {
	uint64_t at;
	uint64_t references; /* that count it; 0 = it never dies. OBJECT only */
	uint64_t bytes;      /* of its own memory; BLOCK: its first word, which may be a class's table of C++ */
	uint64_t items;      /* UINT64_MAX = it is no container */
	uint64_t atom_count, atom_bytes;
	size_t first; /* of its edges, in snapshot.edges; then come its words */
	uint32_t edges, words;
	uint32_t type;      /* OBJECT; FRAME: the line */
	uint32_t label;     /* number of a text, 0 = none; FRAME: of its file */
	uint32_t function;  /* FRAME: text of its function */
	uint32_t thread;    /* FRAME: 0, 1, ... in the interpreter's order */
	uint8_t kind, bits; /* enum hold_kind, enum mt_hold_bit */
};

struct hold_edge {
	uint64_t to;
	uint32_t name; /* number of a text, 0 = none */
} __attribute__((packed));

struct hold_type {
	uint64_t at, flags;
	const char *name;
};

struct hold_snapshot {
	const struct process *process;
	struct mt_hold_head head;
	struct hold_item *items;
	size_t count, room;
	struct hold_edge *edges;
	size_t edge_count, edge_room;
	struct hold_type *types;
	size_t type_count, type_room;
	const char **texts; /* texts[0] is "" */
	size_t text_count, text_room;
	const char **faults; /* types that were left out */
	size_t fault_count, fault_room;
	char *strings;
	size_t string_bytes;
};

/* The heads of the process's snapshots in order, at most `most`; returns how many there are, or an error. A file that
 * isn't there has none; what is not finished does not count. */
int holders_heads(const struct process *p, struct mt_hold_head *heads, int most);

/* Reads the i-th. 0 or an error. hold_snapshot_fini() in either case. */
int holders_read(const struct process *p, int i, struct hold_snapshot *s);
void hold_snapshot_fini(struct hold_snapshot *s);

#endif
