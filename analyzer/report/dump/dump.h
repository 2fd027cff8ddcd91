/*
 * memtrace dump: the records of a trace as text, one a line. The lines are a contract: scripts/decode.py prints the
 * same from the documented format alone.
 *
 *   process ID PID IMAGE origin ORIGIN parent PPID PARENT_IMAGE clock CLOCK start TICKS fork TICKS nodes BASE END
 *   stacks MODE
 *           depth N sample N exit KIND CODE
 *   program ID EXE ARG...       env ID SETTING...      hook ID NUMBER NAME      file ID NUMBER PATH
 *   module ID START END BIAS NODE_FROM NODE_UNTIL BUILD_ID PATH                 (NODE_UNTIL "-": still loaded)
 *   thread ID INDEX TID NAME    child ID PID KIND CODE
 *   code ID NUMBER VERSION FIRST_LINE FILE NAME LINES                           (LINES: its line table, in hexadecimal)
 *   node ID NUMBER PARENT PC FLAGS                                              (with --nodes)
 *   alloc ID TICKS RING ADDR SIZE HOOK NODE NODE2      free ID TICKS RING ADDR HOOK
 *   fail ID TICKS RING BYTES KIND HOOK NODE NODE2      undo ID TICKS RING ADDR HOOK
 *   map ID TICKS RING ADDR SIZE HOOK NODE NODE2 PROT FLAGS FILE OFFSET OLD      unmap ID TICKS RING ADDR SIZE HOOK
 *   owner ID TICKS RING THREAD  lost ID TICKS RING EVENTS
 *   symbol PATH BUILD_ID ADDRESS FUNCTION FILE LANGUAGE LINE INLINED          (with --symbols, alone; one a frame)
 *   sample, gone: see dump_samples.c                                            (with --samples, alone)
 *
 * ID counts processes in order of start. Numbers are decimal but for addresses and flags (0x); strings are JSON's. With
 * --json each line is an object with the same names.
 */
#ifndef MT_REPORT_DUMP_DUMP_H
#define MT_REPORT_DUMP_DUMP_H

#include "analyzer/reader/reader.h"

#include <stdbool.h>
#include <stdint.h>

/* What is known of a process; `nodes`: also its call tree. */
void dump_facts(const struct process *p, bool nodes);

struct dump_range {
	const bool *wanted; /* by process */
	uint64_t from, to;
	uint64_t left; /* events that may still be printed */
};

/* The events that are left of the trace, as far as the range goes. 0 or -MT_E*. */
int dump_events(struct reader *r, struct dump_range *sel);

/* What symbols.memtrace of the trace `dir` has, without looking anything up. 0 or -MT_E*. */
int dump_symbols(const char *dir);

#endif
