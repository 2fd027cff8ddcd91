/* What the files of the PJRT hooks share. */
#ifndef MT_DEVICE_PJRT_INTERNAL_H
#define MT_DEVICE_PJRT_INTERNAL_H

#include "shim/base/lock.h"
#include "shim/device/pjrt_abi.h"

enum { PJRT_TABLE_BYTES = 4096 };

/* Whose hooks see the memory below a plugin's buffers. */
enum mt_pjrt_vendor { PJRT_OTHER, PJRT_CUDA, PJRT_ROCM, PJRT_VENDORS };

/* A plugin's table and our copy of it. */
struct mt_pjrt {
	const struct pjrt_table *real; /* NULL = not in use */
	size_t count;                  /* functions */
	enum mt_pjrt_vendor vendor;    /* of its devices */
	uint64_t place;                /* of its latest buffer; 0 = none yet */
	struct pjrt_table *copy;       /* of PJRT_TABLE_BYTES, mapped when there is a plugin */
};

/* For all that these files keep. */
extern struct mt_lock mt_pjrt_lock;

/* ---- pjrt_ask.c: questions to the plugin, whose errors are destroyed. What it allocates for them is recorded, if the
 * caller doesn't mute that. ---- */

/* NULL = it has none. */
pjrt_function *mt_pjrt_function(const struct mt_pjrt *api, enum pjrt_place place);

/* Nonzero: it has answered. */
int mt_pjrt_ask(const struct mt_pjrt *api, enum pjrt_place place, void *args);

/* Of the functions whose arguments are struct pjrt_one: NULL, 0 = no answer. */
void *mt_pjrt_thing(const struct mt_pjrt *api, enum pjrt_place place, void *thing);
int mt_pjrt_flag(const struct mt_pjrt *api, enum pjrt_place place, void *thing);
uint64_t mt_pjrt_bytes(const struct mt_pjrt *api, void *buffer);
/* How many outputs an executable has, and how many bytes of a device it takes while it runs, beside these and its
 * inputs. */
size_t mt_pjrt_outputs(const struct mt_pjrt *api, void *loaded, uint64_t *temporary);

/* ---- what is known of a handle, also in pjrt_ask.c. All of it under the lock. ---- */

struct mt_pjrt_known {
	const void *handle;
	uint64_t value, addr; /* value: not 0 */
};
struct mt_pjrt_map {
	struct mt_pjrt_known *entries;
	size_t room, count;
};

/* Asked without the lock, before what most calls would take it for in vain. */
static inline int mt_pjrt_is_empty(const struct mt_pjrt_map *map)
{
	return !__atomic_load_n(&map->count, __ATOMIC_RELAXED);
}

/* NULL = nothing is. Valid until the next put or cut. */
struct mt_pjrt_known *mt_pjrt_find(const struct mt_pjrt_map *map, const void *handle);

/* Nonzero: it is kept. */
int mt_pjrt_put(struct mt_pjrt_map *map, const struct mt_pjrt_known *known);
void mt_pjrt_cut(struct mt_pjrt_map *map, struct mt_pjrt_known *known);

/* The same of a map that others use, too: these take the lock. Keep: nonzero if it is kept. Look up: its value is 0 if
 * there is none. */
int mt_pjrt_keep(struct mt_pjrt_map *map, const struct mt_pjrt_known *known);
struct mt_pjrt_known mt_pjrt_look_up(struct mt_pjrt_map *map, const void *handle, int takes);

/* ---- pjrt_error.c ---- */

struct mt_pjrt_exhausted {
	uint64_t bytes; /* that were asked for, as it says; 0 = it says nothing of them */
	uint64_t error; /* by which they are rounded at most */
	uint64_t text;  /* a hash of its words */
};

/* Nonzero: the error is that memory ran out. */
int mt_pjrt_exhausted(const struct mt_pjrt *api, void *error, struct mt_pjrt_exhausted *said);

/* ---- pjrt_buffers.c: buffers on devices ---- */

/* Where a buffer lies: PJRT_ON, the vendor of the device in the bits above, its ordinal in those below; 0 = on the
 * host, or unknown. */
enum { PJRT_ON = 1 << 8, PJRT_VENDOR = 3, PJRT_ORDINAL = 0xff };

static inline uint64_t mt_pjrt_place_on(enum mt_pjrt_vendor vendor, unsigned ordinal)
{
	return PJRT_ON | (uint64_t)vendor << 9 | ordinal;
}

static inline enum mt_pjrt_vendor mt_pjrt_vendor(uint64_t place)
{
	return (enum mt_pjrt_vendor)(place >> 9 & PJRT_VENDOR);
}

/* A buffer that is given out, or that a call was to give out. */
struct mt_pjrt_buffer {
	const struct mt_pjrt *api;
	void *buffer;
	uint64_t place, bytes, addr;
	unsigned hook;
	uint64_t call; /* number of the call that gives it out */
	/* it is made of buffers that were not ready, or had failed */
	uint8_t follows;
	uint8_t is_told;         /* the plugin tells it later, on a thread of its own: */
	uint32_t native, python; /* who had called */
};

/* Of the platform that a plugin names. */
enum mt_pjrt_vendor mt_pjrt_vendor_called(const char *name, size_t bytes);

uint64_t mt_pjrt_place(struct mt_pjrt *api, void *buffer);
uint64_t mt_pjrt_place_of_device(struct mt_pjrt *api, void *device);
uint64_t mt_pjrt_place_of_memory(struct mt_pjrt *api, void *memory);

/* It is given out: sets its address. */
void mt_pjrt_begin(struct mt_pjrt_buffer *b, const void *caller);

/* A block of so many bytes, allocated and freed. */
void mt_pjrt_temporary(unsigned hook, uint64_t place, uint64_t bytes, const void *caller);

/* Of one that was given out, as far as it is known; 0 = none such. */
uint64_t mt_pjrt_known_place(const void *buffer);
/* Nonzero: it ended in an error. */
int mt_pjrt_has_failed(const void *buffer);

/* It ends: what was known of it, and the event. */
struct mt_pjrt_known mt_pjrt_take(const void *buffer);
void mt_pjrt_end(unsigned hook, const struct mt_pjrt_known *known);

/* It lies at p. */
void mt_pjrt_lies_at(const struct mt_pjrt_buffer *b, const void *p);

/* The call ended in an error, which stays the caller's: a failure, if memory ran out and nobody has told of it yet. */
void mt_pjrt_failed(const struct mt_pjrt_buffer *b, void *error, const void *caller);
/* The buffer did: it never had memory. */
void mt_pjrt_never_was(const struct mt_pjrt_buffer *b);

void mt_pjrt_buffers_reset(void);

/* ---- pjrt_ready.c: what is known of a buffer when it is ready ---- */

/* The call that is about to return to the program gives it out. */
void mt_pjrt_watch(const struct mt_pjrt_buffer *b);

/* Before it is deleted or destroyed. */
void mt_pjrt_unwatch(const void *buffer);

/* Before and after a call that may take it over, as it is donated: in between the plugin is asked nothing about it.
 * Nonzero: it is not ready. */
int mt_pjrt_hold(const void *buffer);
void mt_pjrt_release(void *buffer);
/* Nonzero: it is not ready. */
int mt_pjrt_is_pending(const void *buffer);

void mt_pjrt_ready_reset(void);

#endif
