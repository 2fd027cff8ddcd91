#include "analyzer/analysis/series_lines.h"

static const char *const layers[] = { [LAYER_MEMORY] = "device", [LAYER_POOL] = "pool", [LAYER_RESERVED] = "reserved" };

/* Each device's layers: the sum over processes, then the processes. */
static void each_device_line(const struct selection *sel, void (*f)(void *arg, const struct series_line *), void *arg)
{
	for (unsigned i = 0; i < model_devices(sel->model); i++) {
		const struct model_device *d = model_device(sel->model, i);
		if (!selection_has_device(sel, i))
			continue;
		for (int k = 0; k <= LAYER_RESERVED; k++) {
			f(arg, &(struct series_line){ NULL, d->host, layers[k], d, &d->timeline[k] });
			for (unsigned n = 0; n < d->share_count; n++)
				if (selection_has(sel, d->shares[n]->process))
					f(arg, &(struct series_line){ d->shares[n]->process, d->host, layers[k], d,
								      &d->shares[n]->timeline[k] });
		}
	}
}

static void each_sample_series(const struct selection *sel, const struct all_sample_series *sampled,
			       void (*f)(void *arg, const struct series_line *), void *arg)
{
	for (unsigned i = 0; i < sample_series_count(sampled); i++) {
		const struct sample_series *c = sample_series_get(sampled, i);
		if (sel->kinds & 1u << MODEL_HEAP)
			f(arg, &(struct series_line){ c->process, c->host, c->what, NULL, &c->series });
	}
}

void series_lines_each(const struct selection *sel, const struct all_sample_series *sampled,
		       void (*f)(void *arg, const struct series_line *), void *arg)
{
	for (int kind = 0; kind < MODEL_HOST_KINDS; kind++) {
		if (!(sel->kinds & 1u << kind))
			continue;
		for (unsigned i = 0; i < reader_hosts(sel->reader); i++) {
			const struct model_host *h = model_host(sel->model, i);
			f(arg, &(struct series_line){ NULL, h->host, kind_name(kind), NULL, &h->timeline[kind] });
		}
		for (unsigned id = 0; id < reader_processes(sel->reader); id++) {
			const struct model_process *m = model_process(sel->model, id);
			if (selection_has(sel, m->process))
				f(arg, &(struct series_line){ m->process, m->process->host, kind_name(kind), NULL,
							      &m->timeline[kind] });
		}
	}
	if (sel->kinds & 1u << MODEL_DEVICE)
		each_device_line(sel, f, arg);
	if (sampled)
		each_sample_series(sel, sampled, f, arg);
}

double series_line_start(const struct selection *sel, const struct model_series *s, uint32_t i)
{
	return (double)selection_bucket_ns(sel, s->first + i) / 1e9;
}
