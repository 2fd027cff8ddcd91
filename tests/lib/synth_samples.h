/*
 * What a recorder saw of the system, made by hand, beside a trace made by synth.h:
 *
 *   struct synth_samples x = { 0 };
 *   unsigned machine = synth_subject(&x, MT_SUBJECT_MACHINE, 0, 0, 0, "", "");
 *   SYNTH_FIGURES(&x, machine, { MT_MACHINE_total, 1 << 30 }, { MT_MACHINE_free, 1 << 20 });    in bytes, counts, nanoseconds
 *   synth_wait(&x, 1000000000);                                      what follows is of a second later than SYNTH_START
 *   synth_gone(&x, subject);
 *   synth_write_samples(&x, &synth);
 *
 * Written by docs/FORMAT.md, without the recorder's code: one block.
 */
#ifndef MT_SYNTH_SAMPLES_H
#define MT_SYNTH_SAMPLES_H

#include "format/samples.h"
#include "format/varint.h"
#include "tests/lib/synth.h"

#include <zlib.h>
#include <zstd.h>

enum { SYNTH_SUBJECTS = 16 };

struct synth_samples {
	unsigned char plain[65536];
	size_t bytes;
	uint64_t waited_ns;
	unsigned subjects;
	enum mt_subject kind[SYNTH_SUBJECTS];
	uint64_t value[SYNTH_SUBJECTS][MT_SAMPLES_MAX_FIELDS];
};

struct synth_figure { unsigned field; uint64_t value; };

static void synth_put_numbers(struct synth_samples *x, const uint64_t *numbers, size_t count)
{
	if (x->bytes + count * VARINT_MAX > sizeof(x->plain))
		abort();
	for (size_t i = 0; i < count; i++)
		x->bytes = (size_t)(varint_put(x->plain + x->bytes, numbers[i]) - x->plain);
}

static void synth_put_text(struct synth_samples *x, const char *text)
{
	synth_put_numbers(x, &(uint64_t){ strlen(text) }, 1);
	if (x->bytes + strlen(text) > sizeof(x->plain))
		abort();
	memcpy(x->plain + x->bytes, text, strlen(text));
	x->bytes += strlen(text);
}

static SYNTH_UNUSED unsigned synth_subject(struct synth_samples *x, enum mt_subject kind, uint64_t key, uint64_t key2, uint64_t key3,
					   const char *text, const char *text2)
{
	if (x->subjects == SYNTH_SUBJECTS)
		abort();
	synth_put_numbers(x, (uint64_t[]){ MT_SAMPLES_SUBJECT, kind, key, key2, key3 }, 5);
	synth_put_text(x, text);
	synth_put_text(x, text2);
	x->kind[x->subjects] = kind;
	return x->subjects++;
}

static uint64_t synth_unit(enum mt_subject kind, unsigned field)
{
	enum { K = 1024, B = 1, N = 1, U = 1000 };
#define X(name, unit) unit,
	static const uint16_t machine[] = { MT_MACHINE_FIELDS(X) }, cgroup[] = { MT_CGROUP_FIELDS(X) }, process[] = { MT_PROCESS_FIELDS(X) },
		mapping[] = { MT_MAPPING_FIELDS(X) }, device[] = { MT_DEVICE_FIELDS(X) }, device_process[] = { MT_DEVICE_PROCESS_FIELDS(X) };
#undef X
	static const uint16_t *const units[MT_SUBJECTS] = { NULL, machine, cgroup, process, mapping, device, device_process };
	return units[kind][field];
}

static SYNTH_UNUSED void synth_figures(struct synth_samples *x, unsigned subject, const struct synth_figure *figures, size_t count)
{
	uint64_t mask = 0, *last = x->value[subject], next[MT_SAMPLES_MAX_FIELDS];
	for (size_t i = 0; i < count; i++) {
		mask |= 1ull << figures[i].field;
		next[figures[i].field] = figures[i].value / synth_unit(x->kind[subject], figures[i].field);
	}
	synth_put_numbers(x, (uint64_t[]){ MT_SAMPLES_FIGURES, subject, mask }, 3);
	for (unsigned i = 0; i < MT_SAMPLES_MAX_FIELDS; i++)
		if (mask >> i & 1) {
			synth_put_numbers(x, &(uint64_t){ zigzag(next[i] - last[i]) }, 1);
			last[i] = next[i];
		}
}

#define SYNTH_FIGURES(x, subject, ...)                                          \
	synth_figures(x, subject, (const struct synth_figure[]){ __VA_ARGS__ }, \
		      sizeof((const struct synth_figure[]){ __VA_ARGS__ }) / sizeof(struct synth_figure))

static SYNTH_UNUSED void synth_gone(struct synth_samples *x, unsigned subject)
{
	synth_put_numbers(x, (uint64_t[]){ MT_SAMPLES_GONE, subject }, 2);
}

static SYNTH_UNUSED void synth_wait(struct synth_samples *x, uint64_t ns)
{
	synth_put_numbers(x, (uint64_t[]){ MT_SAMPLES_TIME, ns / 1000 }, 2);
	x->waited_ns += ns;
}

static SYNTH_UNUSED void synth_write_samples(const struct synth_samples *x, const struct synth *s)
{
	struct mt_samples_header head = { .magic = MT_SAMPLES_MAGIC, .version = MT_VERSION, .bytes = sizeof(head) };
	size_t before = sizeof(head) + sizeof(struct mt_samples_block), room = ZSTD_compressBound(x->bytes);
	unsigned char *file = malloc(before + room);
	size_t stored = file ? ZSTD_compress(file + before, room, x->plain, x->bytes, 1) : 0;
	if (!file || ZSTD_isError(stored))
		abort();
	struct mt_samples_block block = {
		.magic = MT_SAMPLES_BLOCK_MAGIC, .stored_bytes = (uint32_t)stored, .plain_bytes = (uint32_t)x->bytes,
		.first_ns = SYNTH_START, .last_ns = SYNTH_START + x->waited_ns,
	};
	memcpy(file, &head, sizeof(head));
	memcpy(file + sizeof(head), &block, sizeof(block));
	block.crc = (uint32_t)crc32(0, file + sizeof(head), (uInt)(sizeof(block) + stored));
	memcpy(file + sizeof(head), &block, sizeof(block));
	synth_save(s, "samples", file, before + stored);
	free(file);
}

#endif
