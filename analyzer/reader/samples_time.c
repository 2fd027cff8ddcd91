/* Passes over the samples of a trace in order of time, and what they say of a moment or a stretch of time. A part of
 * samples.c.
 *  */
#include "analyzer/reader/samples_internal.h"

#include "analyzer/util/error.h"

#define BACK_NS (300ull * 1000000000)

/* ---- passes ---------------------------------------------------------------------------------------------- */

struct pass_state {
	uint64_t known;
	uint64_t value[MT_SAMPLES_MAX_FIELDS];
};

static struct cursor *earliest(struct cursor *cursors, size_t count)
{
	struct cursor *first = NULL;
	for (size_t i = 0; i < count; i++)
		if (cursors[i].entry && (!first || cursors[i].ns < first->ns))
			first = &cursors[i];
	return first;
}

static int deliver(struct cursor *c, struct pass_state *states, int (*f)(void *arg, const struct sample *), void *arg)
{
	const struct sample_subject *d = &c->entry->subject;
	struct pass_state *p = &states[d->index];
	for (unsigned i = 0; i < sample_kinds[d->kind].count; i++)
		if (c->fields >> i & 1)
			p->value[i] = c->raw[i] * sample_kinds[d->kind].field[i].unit;
	p->known |= c->fields;
	struct sample sample = {
		.subject = d,
		.ns = c->ns,
		.mono_ns = c->mono,
		.fields = c->fields,
		.known = p->known,
		.value = p->value,
		.gone = c->gone,
	};
	return f(arg, &sample);
}

static int run(struct cursor *cursors, size_t count, struct pass_state *states, uint64_t from_ns, uint64_t to_ns,
	       int (*f)(void *arg, const struct sample *), void *arg)
{
	int e = 0;
	for (size_t i = 0; !e && i < count; i++)
		e = cursor_next(&cursors[i]);
	for (struct cursor *c; !e && (c = earliest(cursors, count)) && c->ns <= to_ns;) {
		if (c->ns >= from_ns)
			e = deliver(c, states, f, arg);
		if (!e)
			e = cursor_next(c);
	}
	return e;
}

/* The stream that holds the first block which ends at or after `ns`. */
static size_t first_block(const struct samples_source *src, uint64_t ns)
{
	size_t i = 0;
	while (i < src->count && src->blocks[i].last_ns < ns)
		i++;
	while (i > 0 && i < src->count && src->blocks[i].part)
		i--;
	return i;
}

int samples_each(const struct samples *s, uint64_t from_ns, uint64_t to_ns, int (*f)(void *arg, const struct sample *),
		 void *arg)
{
	struct cursor *cursors = calloc(s->source_count + 1, sizeof(*cursors));
	struct pass_state *states = calloc(s->count + 1, sizeof(*states));
	int e = cursors && states ? 0 : error_memory();
	for (size_t i = 0; !e && i < s->source_count; i++) {
		const struct samples_source *src = &s->sources[i];
		cursors[i] = (struct cursor){ .samples = (struct samples *)(uintptr_t)s,
					      .source = src,
					      .part = UINT32_MAX,
					      .next_block = first_block(src, from_ns) };
	}
	if (!e)
		e = run(cursors, s->source_count, states, from_ns, to_ns, f, arg);
	for (size_t i = 0; cursors && i < s->source_count; i++)
		cursor_fini(&cursors[i]);
	free(cursors);
	free(states);
	return e;
}

/* ---- at a moment ----------------------------------------------------------------------------------------- */

static int take_state(void *arg, const struct sample *sample)
{
	struct sample_state *state = (struct sample_state *)arg + sample->subject->index;
	for (unsigned i = 0; i < MT_SAMPLES_MAX_FIELDS; i++)
		if (sample->fields >> i & 1) {
			state->value[i] = sample->value[i];
			state->ns[i] = sample->ns;
		}
	state->known |= sample->fields;
	state->gone = sample->gone;
	if (!sample->gone)
		state->last_ns = sample->ns;
	return 0;
}

/* All of it lies before the moment, so its latest figures are known without looking. */
static void take_latest(struct sample_state *state, const struct sample_subject *d, uint64_t ns)
{
	state->known = d->known;
	state->last_ns = d->last_ns;
	state->gone = d->gone_ns <= ns;
	for (unsigned i = 0; i < MT_SAMPLES_MAX_FIELDS; i++) {
		state->value[i] = d->last[i].value;
		state->ns[i] = d->last[i].ns;
	}
}

int samples_states(const struct samples *s, uint64_t ns, uint64_t back_ns, struct sample_state *state)
{
	uint64_t back = back_ns ? back_ns : BACK_NS;
	memset(state, 0, s->count * sizeof(*state));
	int e = samples_each(s, ns > back ? ns - back : 0, ns, take_state, state);
	for (size_t i = 0; !e && i < s->count; i++)
		if (s->entries[i]->subject.samples && s->entries[i]->subject.last_ns <= ns)
			take_latest(&state[i], &s->entries[i]->subject, ns);
	return e;
}

int samples_at(const struct samples *s, uint64_t ns, unsigned subject, struct sample_state *state)
{
	struct sample_state *all = calloc(s->count + 1, sizeof(*all));
	int e = all ? samples_states(s, ns, 0, all) : error_memory();
	if (!e)
		*state = all[subject];
	free(all);
	return e;
}

/* ---- over time ------------------------------------------------------------------------------------------- */

struct series {
	unsigned subject, field;
	uint64_t from_ns, to_ns;
	uint64_t *values;
	size_t count, filled; /* values below are known: the one at filled - 1 may still grow */
	uint64_t last;        /* 0 before the first and after the end */
};

static void fill(struct series *r, size_t upto)
{
	for (; r->filled < upto && r->filled < r->count; r->filled++)
		r->values[r->filled] = r->last;
}

static int take_point(void *arg, const struct sample *sample)
{
	struct series *r = arg;
	if (sample->subject->index != r->subject || (!sample->gone && !(sample->fields >> r->field & 1)))
		return 0;
	uint64_t value = sample->gone ? 0 : sample->value[r->field], span = r->to_ns - r->from_ns;
	if (sample->ns < r->from_ns) {
		r->last = value;
		return 0;
	}
	uint64_t ns = sample->ns - r->from_ns;
	size_t at = span ? (size_t)((double)ns / (double)span * (double)r->count) : 0;
	at = at < r->count ? at : r->count - 1;
	fill(r, at + (r->filled <= at)); /* the stretch that it is in begins with the value before */
	r->last = value;
	if (r->values[at] < r->last)
		r->values[at] = r->last;
	return 0;
}

int samples_series(const struct samples *s, unsigned subject, unsigned field, uint64_t from_ns, uint64_t to_ns,
		   uint64_t *values, size_t count)
{
	struct series r = {
		.subject = subject, .field = field, .from_ns = from_ns, .to_ns = to_ns, .values = values, .count = count
	};
	if (!count || from_ns > to_ns)
		return 0;
	int e = samples_each(s, from_ns > BACK_NS ? from_ns - BACK_NS : 0, to_ns, take_point, &r);
	fill(&r, count);
	return e;
}
