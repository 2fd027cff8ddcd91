/*
 * PID-N.holders: snapshots of which object refers to which, and to which memory. docs/FORMAT.md says the same in words.
 *
 * Snapshots stand back to back. Each is a head, then `body_bytes` of items: an enum mt_hold, then varints. An address
 * is the zigzag difference to the address before it in the body, in units of 8 bytes; at first that is 0. Types and
 * texts are numbered 0, 1, ... in their snapshot, in the order of their items.
 */
#ifndef MT_HOLDERS_H
#define MT_HOLDERS_H

#include <stdint.h>

#define MT_HOLDERS_MAGIC 0x5348544du /* MTHS */

/* Why a snapshot was taken. */
enum mt_hold_why {
	MT_HOLD_REQUEST = 1, /* memtrace holders PID */
	MT_HOLD_DEVICE = 2,  /* a device had no memory */
	MT_HOLD_HOST = 3,    /* the host had none */
	MT_HOLD_MARK = 4,    /* memtrace_holders(), memtrace_mark() */
	MT_HOLD_END = 5,     /* the interpreter is about to end */
	MT_HOLD_POOL = 6,    /* a pool on a device had none, and the device neither */
};

enum mt_hold_flag {
	MT_HOLD_CUT = 1,       /* the disk limit, memory or time ended it */
	MT_HOLD_GC_OFF = 2,    /* gc.disable() */
	MT_HOLD_SMALL_TOO = 8, /* each small object is a block of its own: PYTHONMALLOC=malloc */
};

struct mt_hold_head {
	uint32_t magic;
	uint32_t bytes;      /* of this structure */
	uint64_t body_bytes; /* written last: 0 = it was never finished */
	uint64_t ticks;      /* when the program stood still for it ... */
	uint64_t end_ticks;  /* ... and went on */
	uint32_t why;        /* enum mt_hold_why */
	uint32_t python;     /* 0x030b for 3.11 */
	uint32_t flags;      /* enum mt_hold_flag */
	uint32_t faults;     /* types whose tp_traverse broke off with a fault, so that their objects were left out */
	uint64_t tracked;    /* objects that the collector knows */
	uint64_t frozen;     /* of them those of gc.freeze() */
	char name[64];       /* of the mark; cut */
} __attribute__((packed));

enum mt_hold {
	MT_HOLD_TYPE = 1,   /* address, flags (tp_flags), length and bytes of its name */
	MT_HOLD_TEXT = 2,   /* length, bytes (UTF-8) */
	MT_HOLD_OBJECT = 3, /* see below */
	/* a function that runs: address, thread, line, texts of file and function (number plus 1), edges (name,
	 * address), words (addresses) */
	MT_HOLD_FRAME = 4,
	/* memory of C or C++ that an object points to: address, the first word if it points to the table of a class of
	 * C++ or else 0, words */
	MT_HOLD_BLOCK = 5,
	MT_HOLD_FAULT = 6, /* length and bytes of the name of a type whose tp_traverse broke off */
};

/* OBJECT: bits, type, address, then as its bits say. */
enum mt_hold_bit {
	MT_HOLD_TRACKED = 1, /* by the collector */
	MT_HOLD_NAMED = 2,   /* each edge begins with a text's number plus 1, 0 = none */
	MT_HOLD_LABEL = 4,   /* text: what it is called: of a module its name, of a function file:line and name */
	MT_HOLD_ITEMS = 8,   /* how many items it has */
	MT_HOLD_ATOMS =
		16, /* count, bytes of small objects that it alone refers to, and that have no item of their own */
	MT_HOLD_WORDS = 32,   /* words: count, addresses in its body that no edge explains */
	MT_HOLD_OF_TYPE = 64, /* it refers to its type, which is no edge */
};
/* then: references that count it (0 = it never dies), bytes of its own memory; label; items; atoms; edges: count, then
 * name and address each; words. */

#endif
