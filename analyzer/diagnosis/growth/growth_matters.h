/* Does what grows on a host matter? By what it has cost, or by what it will: report, leaks and live all ask here. */
#ifndef MT_DIAGNOSIS_GROWTH_GROWTH_MATTERS_H
#define MT_DIAGNOSIS_GROWTH_GROWTH_MATTERS_H

#include "analyzer/model/model.h"
#include "analyzer/reader/samples.h"

#define GROWTH_NOTABLE     0.05       /* of the memory there is, of what was live at most, of all that leaks */
#define GROWTH_NOISE_BYTES (1u << 20) /* less is noise, where it is no notable part of what was live at most */
#define GROWTH_LEAST_BYTES (8u << 20) /* that it must have cost, whatever part of the peak they are */

#define GROWTH_HORIZON 5 /* times what was seen: who meets the limit later does not suffer from it now */

struct growth_scale {
	uint64_t heap_peak; /* bytes that all heaps had at most; 0 = unknown */
	uint64_t bound; /* memory that there is: the control group's limit, or the machine's; UINT64_MAX = unknown */
	double leaking; /* bytes by which all that leaks has grown: the caller knows */
};

/* Of all heaps and the machine `host`, also in the middle of the pass; NULL = unknown. */
struct growth_scale growth_scale_of(const struct model *m, const struct reader_host *host,
				    const struct samples *samples);

/* Too little for a summary: below GROWTH_NOISE_BYTES, and no notable part of the heaps' peak. */
bool growth_is_noise(const struct growth_scale *s, double bytes);

/* Of `bytes` that leak together: a leak of many lines is one. `foreseen`: memory ends within GROWTH_HORIZON. */
bool growth_matters(const struct growth_scale *s, double bytes, bool foreseen);

#endif
