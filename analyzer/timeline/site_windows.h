/*
 * What each site had and did in windows of time, in the second of two passes: for a page that shows any moment and any
 * range. Windows are equal, but for moments of interest (failures, peaks), where one more begins.
 *
 *   struct site_windows *w = site_windows_new(v);                behind the first pass of v
 *   site_windows_watch(w, timeline); timeline_run(timeline, v);
 *   site_windows_finish(w);
 *   ... site_windows_track(w, i), site_windows_site(w, i, values) ...
 *
 * A track is all memory of one kind, of a device or of all hosts. Its figures are exact in every window: at its end, at
 * the highest, and what was allocated and freed. Those of a site are exact too, but not all sites are kept: where there
 * are more than SITE_WINDOWS_ENTRIES pairs of a site and a window in which it changed, those that never held much go.
 * What is missing of a track's figures is theirs.
 *
 * A process that ends frees what it has, if windows come after that: so a moment shows what there was then.
 */
#ifndef MT_TIMELINE_SITE_WINDOWS_H
#define MT_TIMELINE_SITE_WINDOWS_H

#include "analyzer/model/selection/selection.h"
#include "analyzer/timeline/pool_events.h"
#include "analyzer/timeline/timeline.h"

enum { SITE_WINDOWS = 256, SITE_WINDOWS_MOMENTS = 48, SITE_WINDOWS_MOST = SITE_WINDOWS + SITE_WINDOWS_MOMENTS };
enum { SITE_WINDOWS_ENTRIES = 3 << 20 };

struct site_windows;

struct window_values {
	uint64_t live;    /* bytes at its end */
	uint64_t at_high; /* bytes live when the track had the most in this window: the track's, or this site's part */
	uint64_t allocated; /* bytes of all that was allocated in it */
	uint64_t passing;   /* ... and was freed in it again */
	uint64_t blocks;    /* live at its end */
};

struct window_track {
	enum model_kind kind;
	uint32_t device; /* index for model_device(); MODEL_NO_DEVICE */
	struct window_values windows[SITE_WINDOWS_MOST];
	uint64_t peak; /* the highest of all windows */
};

struct window_site {
	uint32_t process, site; /* its number: model_site() */
	uint32_t node, node2;
	uint32_t track;
	uint32_t entry;     /* site_windows_add()'s own */
	uint64_t most;      /* bytes at any time */
	uint64_t allocated; /* bytes of all that it allocated in windows */
	double worth;       /* the larger one of both, as a part of its track's */
};

/* NULL when there is no memory. Both must outlive the result. */
struct site_windows *site_windows_new(const struct selection *sel);
void site_windows_watch(struct site_windows *w, struct timeline *timeline);
/* 0 or -MT_EMEMORY, also if the pass ran out of memory. */
int site_windows_finish(struct site_windows *w);
void site_windows_free(struct site_windows *w); /* NULL is fine */

uint32_t site_windows_count(const struct site_windows *w);
/* Window i is (time(i), time(i + 1)]: an event at its end is in it. */
uint64_t site_windows_time(const struct site_windows *w, uint32_t i);

unsigned site_windows_tracks(const struct site_windows *w);
const struct window_track *site_windows_track(const struct site_windows *w, unsigned i);

/* Those that are kept, by falling worth to a sixteenth of it. */
size_t site_windows_sites(const struct site_windows *w);
const struct window_site *site_windows_site(const struct site_windows *w, size_t i);
/* Adds the site's figures times `weight` to those in `values`, one for each window: how they differ from those of the
 * window before, which takes no longer than the site has entries. site_windows_sum() makes figures of that. */
void site_windows_add(const struct site_windows *w, size_t i, double weight, struct window_values *values);
/* That it will soon be added: what it had lies anywhere in memory. */
void site_windows_prefetch(const struct site_windows *w, size_t i);
void site_windows_sum(const struct site_windows *w, struct window_values *values);

/* Layouts of the pools of devices, at up to LAYOUTS moments for all of them: borrowed. */
enum { SITE_WINDOWS_LAYOUTS = 32 };
struct window_layout {
	uint32_t device;
	uint64_t ns;
	struct pool_layout *layout;
};
size_t site_windows_layouts(const struct site_windows *w);
const struct window_layout *site_windows_layout(const struct site_windows *w, size_t i);

/* Around the device's last failure, of the process that failed, else around its peak. NULL: it has no pool, or is not
 * looked at. */
const struct pool_events *site_windows_pool_events(const struct site_windows *w, uint32_t device);

#endif
