/* What the files of the PJRT hooks share. */
#ifndef MT_DEVICE_PJRT_INTERNAL_H
#define MT_DEVICE_PJRT_INTERNAL_H

#include "shim/base/lock.h"
#include "shim/device/pjrt_abi.h"

enum { PJRT_TABLE_BYTES = 4096 };

/* A plugin's table and our copy of it. */
struct mt_pjrt {
	const struct pjrt_table *real; /* NULL = not in use */
	size_t count;                  /* functions */
	uint8_t is_cuda;               /* its devices are CUDA's */
	struct pjrt_table *copy;       /* of PJRT_TABLE_BYTES, mapped when there is a plugin */
};

/* For all that these files keep. */
extern struct mt_lock mt_pjrt_lock;

/* ---- pjrt_ask.c: questions to the plugin, whose errors are destroyed. What it allocates for them is recorded, if the
 * caller doesn't mute that. ---- */

#define PJRT_ARGS(args, ...) \
	&(args) \
	{ \
		.head = { sizeof(args), NULL }, __VA_ARGS__ \
	}

/* NULL = it has none. */
pjrt_function *mt_pjrt_function(const struct mt_pjrt *api, enum pjrt_place place);

/* Nonzero: it has answered. */
int mt_pjrt_ask(const struct mt_pjrt *api, enum pjrt_place place, void *args);

/* Of the functions whose arguments are struct pjrt_one: NULL, 0 = no answer. */
void *mt_pjrt_thing(const struct mt_pjrt *api, enum pjrt_place place, void *thing);
int mt_pjrt_flag(const struct mt_pjrt *api, enum pjrt_place place, void *thing);
uint64_t mt_pjrt_bytes(const struct mt_pjrt *api, void *buffer);
size_t mt_pjrt_outputs(const struct mt_pjrt *api, void *loaded);

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

/* ---- pjrt_host.c: whose the buffers are that lie in the host's memory ---- */

/* The call that is about to return to the program gives it out. */
void mt_pjrt_host_born(const struct mt_pjrt *api, void *buffer);

/* Before it is deleted or destroyed. */
void mt_pjrt_host_dead(const void *buffer);

/* Before and after a call that may take it over, as it is donated: in between the plugin is asked nothing about it. */
void mt_pjrt_host_hold(const void *buffer);
void mt_pjrt_host_release(void *buffer);

void mt_pjrt_host_reset(void);

#endif
