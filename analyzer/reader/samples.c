/* The subjects of all DIR/samples of a reader, with their extremes. A part of the reader. */
#include "analyzer/reader/samples_internal.h"

#include "analyzer/util/error.h"
#include "analyzer/util/vec.h"

#include <inttypes.h>
#include <stdio.h>

/* ---- fields ---------------------------------------------------------------------------------------------- */

enum { UNIT_K = 1024, UNIT_B = 1, UNIT_N = 1, UNIT_U = 1000 };

#define X(name, unit) { #name, UNIT_##unit },
static const struct sample_field machine_fields[] = { MT_MACHINE_FIELDS(X) }, cgroup_fields[] = { MT_CGROUP_FIELDS(X) },
				 process_fields[] = { MT_PROCESS_FIELDS(X) },
				 mapping_fields[] = { MT_MAPPING_FIELDS(X) }, device_fields[] = { MT_DEVICE_FIELDS(X) },
				 device_process_fields[] = { MT_DEVICE_PROCESS_FIELDS(X) };
#undef X

const struct sample_kind sample_kinds[MT_SUBJECTS] = {
	[MT_SUBJECT_MACHINE] = { machine_fields, MT_MACHINE_COUNT },
	[MT_SUBJECT_CGROUP] = { cgroup_fields, MT_CGROUP_COUNT },
	[MT_SUBJECT_PROCESS] = { process_fields, MT_PROCESS_COUNT },
	[MT_SUBJECT_MAPPING] = { mapping_fields, MT_MAPPING_COUNT },
	[MT_SUBJECT_DEVICE] = { device_fields, MT_DEVICE_COUNT },
	[MT_SUBJECT_DEVICE_PROCESS] = { device_process_fields, MT_DEVICE_PROCESS_COUNT },
};

const char *samples_field_name(enum mt_subject kind, unsigned field)
{
	return kind < MT_SUBJECTS && field < sample_kinds[kind].count ? sample_kinds[kind].field[field].name : NULL;
}

/* ---- subjects -------------------------------------------------------------------------------------------- */

static bool is_traced(const struct samples *s, const struct reader_host *host, uint32_t pid)
{
	for (size_t i = 0; i < s->reader->image_count; i++)
		if (s->reader->images[i]->process.host == host && s->reader->images[i]->process.pid == pid)
			return true;
	return false;
}

static void describe(const struct samples *s, struct entry *e, const uint64_t key[3])
{
	struct sample_subject *d = &e->subject;
	switch (d->kind) {
	case MT_SUBJECT_CGROUP:
		d->number = (uint32_t)key[0];
		break;
	case MT_SUBJECT_PROCESS:
		d->pid = (uint32_t)key[0];
		e->start = key[1];
		break;
	case MT_SUBJECT_MAPPING:
		d->pid = (uint32_t)key[0];
		e->start = key[1];
		d->address = key[2];
		break;
	case MT_SUBJECT_DEVICE:
		d->backend = (uint32_t)key[0];
		d->number = (uint32_t)key[1];
		break;
	case MT_SUBJECT_DEVICE_PROCESS:
		d->backend = (uint32_t)key[0];
		d->pid = (uint32_t)key[1];
		d->other_pid = (uint32_t)key[2];
		d->traced = d->pid && is_traced(s, d->host, d->pid);
		break;
	default:
		break;
	}
}

static int set_texts(struct entry *e, const char *text, const char *text2)
{
	if (e->text && !strcmp(e->text, text) && !strcmp(e->text2, text2))
		return 0;
	free(e->text);
	free(e->text2);
	e->text = strdup(text);
	e->text2 = strdup(text2);
	e->subject.text = e->text;
	e->subject.text2 = e->text2;
	return e->text && e->text2 ? 0 : error_memory();
}

/* A process may change its name and is seen by several recorders, of whom one traces it: pid and start are enough. */
static void make_key(char *out, size_t size, const struct reader_host *host, uint64_t kind, const uint64_t key[3],
		     const char *text, const char *text2)
{
	if (kind == MT_SUBJECT_PROCESS)
		snprintf(out, size, "%u %" PRIu64 " %" PRIx64 " %" PRIx64, host->index, kind, key[0], key[1]);
	else
		snprintf(out, size, "%u %" PRIu64 " %" PRIx64 " %" PRIx64 " %" PRIx64 " %s %s", host->index, kind,
			 key[0], key[1], key[2], kind == MT_SUBJECT_MACHINE ? "" : text,
			 kind == MT_SUBJECT_CGROUP ? text2 : "");
}

static int add_entry(struct samples *s, const char *key, struct entry **out)
{
	struct entry *e = calloc(1, sizeof(*e));
	if (!e || !(e->key = strdup(key)) || vec_reserve(s->entries, s->room, s->count + 1)) {
		free(e ? e->key : NULL);
		free(e);
		return error_memory();
	}
	e->subject.index = (unsigned)s->count;
	e->subject.gone_ns = UINT64_MAX;
	e->subject.text = e->subject.text2 = "";
	s->entries[s->count++] = e;
	HASH_ADD_KEYPTR(hh, s->by_key, e->key, strlen(e->key), e);
	*out = e;
	return 0;
}

int samples_entry_of(struct samples *s, const struct reader_host *host, uint64_t kind, const uint64_t key[3],
		     const char *text, const char *text2, bool make, struct entry **out)
{
	char name[2200];
	make_key(name, sizeof(name), host, kind, key, text, text2);
	HASH_FIND_STR(s->by_key, name, *out);
	if (!make)
		return *out ? 0 : error_set(MT_ECHANGED, "samples", ERROR_NO_OFFSET, NULL);
	int e = 0;
	if (!*out) {
		e = add_entry(s, name, out);
		if (e)
			return e;
		(*out)->subject.kind = (enum mt_subject)kind;
		(*out)->subject.host = host;
		describe(s, *out, key);
	}
	(*out)->subject.traced |= kind == MT_SUBJECT_PROCESS && key[2];
	return set_texts(*out, text, text2);
}

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
		samples_drop_open(src);
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
	samples_drop_open(src);
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
	if (is_new && samples_take_open(src) && (e = reader_damage(s->reader)) != 0)
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
		samples_drop_open(&s->sources[i]);
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

const struct sample_subject *samples_of_process(const struct samples *s, const struct process *p)
{
	char name[128];
	struct entry *e;
	uint64_t key[3] = { p->pid, image_of(p)->info.boot_start, 0 };
	make_key(name, sizeof(name), p->host, MT_SUBJECT_PROCESS, key, "", "");
	HASH_FIND_STR(s->by_key, name, e);
	return e ? &e->subject : NULL;
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
