/* Which device is meant, and which moment of it. */
#include "analyzer/analysis/open.h"
#include "analyzer/util/error.h"
#include "analyzer/util/output.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

/* ---- by name --------------------------------------------------------------------------------------------- */

/* The UUID, its beginning (at least 4 characters behind "GPU-" and the like), or what a selected process calls it. */
static bool is_called(const struct selection *sel, const struct model_device *d, const char *name)
{
	const char *dash = strchr(d->uuid, '-');
	size_t least = dash ? (size_t)(dash - d->uuid) + 5 : 8;
	if (*d->uuid &&
	    (!strcasecmp(d->uuid, name) || (strlen(name) >= least && !strncasecmp(d->uuid, name, strlen(name)))))
		return true;
	for (unsigned i = 0; i < d->share_count; i++) {
		char own[32];
		const struct model_share *s = d->shares[i];
		snprintf(own, sizeof(own), "%s:%u", model_device_prefix(d->backend), s->ordinal);
		if (s->id && selection_has(sel, s->process) && !strcmp(own, name))
			return true;
	}
	return d->share_count == 0 && !strcmp(d->name, name);
}

static uint32_t find_device(const struct selection *sel, const struct model *m, const char *name, unsigned *found)
{
	uint32_t device = MODEL_NO_DEVICE;
	*found = 0;
	for (unsigned i = 0; i < model_devices(m); i++)
		if (is_called(sel, model_device(m, i), name)) {
			if (!(*found)++)
				device = i;
		}
	return device;
}

static int pick(const struct selection *sel, const struct model *m, uint32_t *device)
{
	const char *name = sel->options->device;
	unsigned found;
	*device = find_device(sel, m, name, &found);
	if (found == 1)
		return 0;
	if (found)
		return error_set(MT_EUSAGE, "--device", ERROR_NO_OFFSET,
				 "%s is %u different devices in this trace: name its UUID, or "
				 "a process with --process",
				 name, found);
	char list[512] = "";
	size_t n = 0;
	for (uint32_t i = 0; i < model_devices(m) && n < sizeof(list); i++)
		n += (size_t)snprintf(list + n, sizeof(list) - n, "%s %s, ", model_device(m, i)->name,
				      model_device(m, i)->uuid);
	return error_set(MT_EUSAGE, "--device", ERROR_NO_OFFSET,
			 "no device '%s' in this trace, which has %shost, map and pinned", name, list);
}

int selection_pick_device(struct selection *sel)
{
	return selection_wants_device(sel->options) ? pick(sel, sel->model, &sel->device) : 0;
}

/* ---- moments --------------------------------------------------------------------------------------------- */

static const struct model_oom *find_oom(const struct selection *sel, const struct model *m, uint64_t number,
					uint32_t device)
{
	const struct model_oom *last = NULL;
	uint64_t n = 0;
	for (unsigned i = 0; i < model_ooms(m); i++) {
		const struct model_oom *o = model_oom(m, i);
		if ((device != MODEL_NO_DEVICE && o->device != device) ||
		    (sel->processes && !sel->processes[o->process]))
			continue;
		last = o;
		if (++n == number)
			return o;
	}
	return number ? NULL : last;
}

int selection_find_oom(struct selection *sel, const struct when *w, uint64_t *event, uint64_t *ns)
{
	struct reader *r = NULL;
	struct model *m = NULL;
	uint32_t device = MODEL_NO_DEVICE;
	struct model_query q = MODEL_QUERY_ALL;
	int e = selection_run_again(sel, &r, &m, &q);
	if (e >= 0 && selection_wants_device(sel->options))
		e = pick(sel, m, &device);
	const struct model_oom *o = e < 0 ? NULL : find_oom(sel, m, w->number, device);
	if (o) {
		*event = o->at.event;
		*ns = o->at.ns;
	} else if (e >= 0) {
		e = error_set(MT_EUSAGE, w->text, ERROR_NO_OFFSET, "%s",
			      m && model_ooms(m) ? "device memory ran out fewer times in this trace"
						 : "no device memory ran out in this trace");
	}
	model_free(m);
	reader_close(r);
	return e;
}
