/* What is sampled: the fields of each kind of subject, and the subjects by name. A part of the reader. */
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

const struct sample_subject *samples_of_process(const struct samples *s, const struct process *p)
{
	char name[128];
	struct entry *e;
	uint64_t key[3] = { p->pid, image_of(p)->info.boot_start, 0 };
	make_key(name, sizeof(name), p->host, MT_SUBJECT_PROCESS, key, "", "");
	HASH_FIND_STR(s->by_key, name, e);
	return e ? &e->subject : NULL;
}
