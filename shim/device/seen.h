/*
 * Which addresses of devices have had an event since recording began, in a program that ran before. Whoever tells of
 * what was there already (pool_before.h) tells of no others: of those the trace knows better.
 *
 * An address that is being told of is claimed. An event of the same address waits until it is told: it is the later one
 * then.
 */
#ifndef MT_DEVICE_SEEN_H
#define MT_DEVICE_SEEN_H

#include <stdint.h>

#include "format/format.h"

extern uint32_t mt_seen_on; /* addresses are noted */

/* Before the first event; and when all is told. */
void mt_seen_begin(void);
void mt_seen_end(void);

/* Of a device's event, before it is recorded. */
void mt_seen_note(enum mt_kind kind, enum mt_class class, uint64_t addr);

/* NULL: the address has had an event, or there were too many to note. Else it is to be told of, and mt_seen_told() must
 * follow. */
uint64_t *mt_seen_claim(enum mt_class class, uint64_t addr);
void mt_seen_told(uint64_t *claim);

#endif
