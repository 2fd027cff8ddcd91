/*
 * Lines, as scripts/decode.py prints them too:
 *
 *   sample MONO_NS KIND PID OTHER_PID ADDRESS TEXT TEXT2 FIELD VALUE ...     in bytes, nanoseconds, counts
 *   gone MONO_NS KIND PID OTHER_PID ADDRESS TEXT TEXT2
 */
#include "analyzer/report/dump/dump_samples.h"

#include "analyzer/reader/samples.h"
#include "analyzer/report/json/json.h"
#include "analyzer/util/print.h"

#include <inttypes.h>
#include <stdio.h>

static const char *const kinds[MT_SUBJECTS] = {
	[MT_SUBJECT_MACHINE] = "machine", [MT_SUBJECT_CGROUP] = "cgroup",
	[MT_SUBJECT_PROCESS] = "process", [MT_SUBJECT_MAPPING] = "mapping",
	[MT_SUBJECT_DEVICE] = "device",   [MT_SUBJECT_DEVICE_PROCESS] = "device-process",
};

static int print_line(void *arg, const struct sample *s)
{
	const struct sample_subject *d = s->subject;
	(void)arg;
	print("%s %" PRIu64 " %s %" PRIu32 " %" PRIu32 " 0x%" PRIx64, s->gone ? "gone" : "sample", s->mono_ns,
	      kinds[d->kind], d->pid, d->other_pid, d->address);
	print(" ");
	json_print_text(d->text);
	print(" ");
	json_print_text(d->text2);
	for (unsigned i = 0; i < MT_SAMPLES_MAX_FIELDS; i++)
		if (s->fields >> i & 1)
			print(" %s %" PRIu64, samples_field_name(d->kind, i), s->value[i]);
	print("\n");
	return 0;
}

static int print_object(void *arg, const struct sample *s)
{
	const struct sample_subject *d = s->subject;
	json_t *o = json_object(), *fields = json_object();
	(void)arg;
	json_object_set_new(o, "record", json_string(s->gone ? "gone" : "sample"));
	json_object_set_new(o, "mono_ns", json_bytes(s->mono_ns));
	json_object_set_new(o, "time_s", json_seconds(s->ns));
	json_object_set_new(o, "kind", json_string(kinds[d->kind]));
	json_object_set_new(o, "pid", json_integer(d->pid));
	json_object_set_new(o, "other_pid", json_integer(d->other_pid));
	json_object_set_new(o, "traced", json_boolean(d->traced));
	json_object_set_new(o, "address", json_bytes(d->address));
	json_object_set_new(o, "text", json_text(d->text));
	json_object_set_new(o, "text2", json_text(d->text2));
	for (unsigned i = 0; i < MT_SAMPLES_MAX_FIELDS; i++)
		if (s->fields >> i & 1)
			json_object_set_new(fields, samples_field_name(d->kind, i), json_bytes(s->value[i]));
	json_object_set_new(o, "fields", fields);
	return json_print_line(o);
}

int dump_samples(struct reader *r, bool json)
{
	struct samples *s;
	int e = samples_open(&s, r);
	if (!e)
		e = samples_each(s, 0, UINT64_MAX, json ? print_object : print_line, NULL);
	samples_close(s);
	return e;
}
