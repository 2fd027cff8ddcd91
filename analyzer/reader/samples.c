/* The subjects of all DIR/samples of a reader, with their extremes. A part of the reader. */
#include "analyzer/reader/samples_internal.h"

#include "analyzer/util/error.h"
#include "analyzer/util/vec.h"

#include <inttypes.h>
#include <stdio.h>

/* ---- opening --------------------------------------------------------------------------------------------- */

static void note_extreme(struct sample_extreme *x, uint64_t value, uint64_t ns)
{
	x->value = value;
	x->ns = ns;
}

static void note(struct sample_subject *d, const struct cursor *c)
{
	if (c->gone) {
		d->gone_ns = c->ns;
		return;
	}
	d->gone_ns = UINT64_MAX;
	d->first_ns = d->samples && d->first_ns <= c->ns ? d->first_ns : c->ns;
	d->last_ns = d->last_ns > c->ns ? d->last_ns : c->ns;
	d->samples++;
	for (unsigned i = 0; i < sample_kinds[d->kind].count; i++) {
		if (!(c->fields >> i & 1))
			continue;
		uint64_t value = c->raw[i] * sample_kinds[d->kind].field[i].unit;
		bool known = d->known >> i & 1;
		if (!known)
			note_extreme(&d->first[i], value, c->ns);
		if (!known || value < d->least[i].value)
			note_extreme(&d->least[i], value, c->ns);
		if (!known || value > d->most[i].value)
			note_extreme(&d->most[i], value, c->ns);
		if (!known || c->ns >= d->last[i].ns)
			note_extreme(&d->last[i], value, c->ns);
	}
	d->known |= c->fields;
}

/* Reads all blocks for their subjects and extremes. At damage the index ends. */
static int take_blocks(struct samples *s, struct samples_source *src)
{
	struct cursor *c = src->scan;
	if (!c && !(c = src->scan = calloc(1, sizeof(*c))))
		return error_set(MT_EMEMORY, src->file.path, ERROR_NO_OFFSET, NULL);
	if (!c->samples)
		*c = (struct cursor){ .samples = s, .source = src, .make = true, .part = UINT32_MAX };
	int e = cursor_next(c);
	while (!e && c->entry) {
		if (!src->noted_ns || c->ns > src->noted_ns)
			note(&c->entry->subject, c);
		e = cursor_next(c);
	}
	if (e) {
		samples_remove_open_block(src);
		src->count = c->next_block ? c->next_block - 1 : 0;
	}
	return e;
}

static void end_scan(struct samples_source *src)
{
	if (src->scan)
		cursor_fini(src->scan);
	free(src->scan);
	src->scan = NULL;
}

/* It is a block by now, or more: that is read instead. */
static void forget_open(struct samples_source *src)
{
	if (!src->open.plain_bytes)
		return;
	src->noted_ns = src->blocks[src->count - 1].last_ns;
	samples_remove_open_block(src);
	end_scan(src);
}

static int read_source(struct samples *s, struct samples_source *src)
{
	bool cut = false, is_new = !src->next;
	forget_open(src);
	int e = samples_index(src, &cut);
	if (cut)
		reader_remark(s->reader, MT_OK, src->file.path, (int64_t)src->next, "ends in the middle of a block");
	if (e && (e = reader_damage(s->reader)) != 0)
		return e;
	if (is_new && samples_add_open_block(src) && (e = reader_damage(s->reader)) != 0)
		return e;
	e = take_blocks(s, src);
	return e ? reader_damage(s->reader) : 0;
}

/* The clock of any process of the session. */
static const struct image *some_image(const struct reader *r, const struct session *session)
{
	for (size_t i = 0; i < r->image_count; i++)
		if (r->images[i]->session == session)
			return r->images[i];
	return NULL;
}

static int open_source(struct samples *s, struct samples_source *src, const struct session *session)
{
	const struct image *im = some_image(s->reader, session);
	src->file = FILE_CLOSED;
	src->session = session;
	if (!im)
		return 0;
	src->host = im->process.host;
	src->clock = im->clock;
	int e = file_open(&src->file, session->dir, "samples");
	if (e)
		return reader_damage(s->reader);
	return file_is_open(&src->file) && src->file.size ? read_source(s, src) : 0;
}

int samples_open(struct samples **out, struct reader *r)
{
	struct samples *s = calloc(1, sizeof(*s));
	int e = 0;
	*out = NULL;
	if (s)
		s->sources = calloc(r->session_count + 1, sizeof(*s->sources));
	if (!s || !s->sources) {
		free(s);
		return error_memory();
	}
	s->reader = r;
	for (size_t i = 0; !e && i < r->session_count; i++) {
		s->source_count++;
		e = open_source(s, &s->sources[i], &r->sessions[i]);
	}
	if (e)
		samples_close(s);
	else
		*out = s;
	return e;
}

int samples_resume(struct samples *s)
{
	int e = 0;
	for (size_t i = 0; !e && i < s->source_count; i++) {
		struct samples_source *src = &s->sources[i];
		const bool was_open = file_is_open(&src->file);
		src->file.fd = -1;
		src->scan = NULL; /* it belongs to who follows a trace */
		e = was_open ? file_resume(&src->file) : 0;
	}
	return e;
}

int samples_refresh(struct samples *s)
{
	int e = 0;
	for (size_t i = 0; !e && i < s->source_count; i++) {
		struct samples_source *src = &s->sources[i];
		if (!file_is_open(&src->file)) {
			file_close(&src->file);
			e = open_source(s, src, src->session);
		} else if ((e = file_refresh(&src->file)) == 0 && src->file.size) {
			e = read_source(s, src);
		}
	}
	return e;
}

void samples_close(struct samples *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->source_count; i++) {
		end_scan(&s->sources[i]);
		samples_remove_open_block(&s->sources[i]);
		file_close(&s->sources[i].file);
		free(s->sources[i].blocks);
	}
	HASH_CLEAR(hh, s->by_key);
	for (size_t i = 0; i < s->count; i++) {
		free(s->entries[i]->key);
		free(s->entries[i]->text);
		free(s->entries[i]->text2);
		free(s->entries[i]);
	}
	free(s->entries);
	free(s->sources);
	free(s);
}

/* ---- facts ----------------------------------------------------------------------------------------------- */

unsigned samples_subjects(const struct samples *s)
{
	return (unsigned)s->count;
}
const struct sample_subject *samples_subject(const struct samples *s, unsigned i)
{
	return &s->entries[i]->subject;
}

unsigned samples_find(const struct samples *s, enum mt_subject kind, const struct reader_host *host, unsigned i)
{
	while (i < s->count && (s->entries[i]->subject.kind != kind || (host && s->entries[i]->subject.host != host)))
		i++;
	return i;
}

static bool is_of(const struct entry *e, const struct image *im)
{
	const struct sample_subject *d = &e->subject;
	return im->process.host == d->host && im->process.pid == d->pid &&
	       (!e->start || e->start == im->info.boot_start);
}

const struct process *samples_process(const struct samples *s, const struct sample_subject *d, uint64_t ns)
{
	const struct process *found = NULL;
	if (!d->pid)
		return NULL;
	for (size_t i = 0; i < s->reader->image_count; i++) {
		const struct process *p = &s->reader->images[i]->process;
		if (is_of(s->entries[d->index], s->reader->images[i]) && (!found || p->start_ns <= ns))
			found = p;
	}
	return found;
}
