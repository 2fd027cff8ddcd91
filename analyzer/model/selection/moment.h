/* What was alive at the moment that --at names, for each kind of memory and each device that was asked for. */
#ifndef MT_MODEL_SELECTION_MOMENT_H
#define MT_MODEL_SELECTION_MOMENT_H

#include "analyzer/model/selection/selection.h"

/* One kind of memory at the moment. */
struct moment {
	enum model_kind kind;
	const struct model_device *device; /* NULL: memory of the host */
	enum owners_measure measure;
	uint64_t ns;
	struct owners *sites;
};

struct moments {
	struct moment *moments; /* the host's kinds first, then each device's pool and driver */
	size_t count;
};

/* Is it one time for all memory, rather than the peak of each or the end? */
bool moment_is_time(const struct when *w);

/* Behind the model's pass. `end`: where peaks were asked for, the end as well, behind the peak of each kind. The caller
 * calls moments_fini(), also behind an error. Returns 0 or an error, wrong usage where nothing matched --filter among
 * them. */
int moments_find(struct moments *, const struct selection *sel, bool end);
void moments_fini(struct moments *);

#endif
