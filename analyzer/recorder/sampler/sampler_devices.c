/* Which of the traced processes use devices, and the figures of their driver. A part of sampler.c. */
#include "analyzer/recorder/rings/file_io.h"
#include "analyzer/recorder/sampler/sampler_internal.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define RETRY_NS (10 * SECOND)

static const struct device_source *const sources[DEVICE_SOURCES] = { &nvml_source, &kfd_source };

static const struct device_source *source_of(uint32_t backend)
{
	for (size_t i = 0; i < DEVICE_SOURCES; i++)
		if (sources[i]->backend == backend)
			return sources[i];
	return NULL;
}

static bool take_library(struct target *t, const char *path)
{
	for (size_t i = 0; i < DEVICE_SOURCES; i++)
		if (sources[i]->library && strstr(path, sources[i]->library)) {
			snprintf(t->library, sizeof(t->library), "%s", path);
			return true;
		}
	return false;
}

/* Its log says so once it has met one; the library's path is found in passing. */
static void take_record(struct target *t, const struct mt_record *head, const char *payload, size_t bytes)
{
	if (head->type == MT_REC_DEVICE && bytes >= sizeof(struct mt_rec_device)) {
		struct mt_rec_device d;
		memcpy(&d, payload, sizeof(d));
		if (source_of(d.backend))
			t->backends |= 1u << d.backend;
	} else if (head->type == MT_REC_MODULE && bytes > sizeof(struct mt_rec_module)) {
		struct mt_rec_module m;
		memcpy(&m, payload, sizeof(m));
		size_t at = sizeof(m) + m.build_id_bytes;
		if (at < bytes && memchr(payload + at, 0, bytes - at))
			take_library(t, payload + at);
	}
}

/* Takes the whole records in `buf`; returns how many bytes they are, 0 where they make no sense. */
static uint64_t take_records(struct target *t, const char *buf, uint64_t bytes)
{
	struct mt_record head;
	uint64_t at = 0;
	while (at + sizeof(head) <= bytes) {
		memcpy(&head, buf + at, sizeof(head));
		if (head.bytes < sizeof(head) || head.bytes % 8)
			return 0;
		if (at + head.bytes <= bytes)
			take_record(t, &head, buf + at + sizeof(head), head.bytes - sizeof(head));
		else if (at)
			break;
		at += head.bytes; /* one larger than the buffer is none of ours */
	}
	return at;
}

static void read_log(struct target *t)
{
	static char buf[65536];
	struct mt_info info;
	int fd = record_open(t->who.info, O_RDONLY);
	if (fd < 0)
		return;
	if (pread(fd, &info, sizeof(info), 0) != sizeof(info))
		info.log_bytes = 0;
	while (t->log_at < info.log_bytes) {
		ssize_t n = pread(fd, buf, sizeof(buf), (off_t)(MT_INFO_LOG + t->log_at));
		uint64_t left = info.log_bytes - t->log_at, got = n > 0 ? (uint64_t)n : 0,
			 taken = take_records(t, buf, got < left ? got : left);
		if (!taken)
			break;
		t->log_at += taken;
	}
	close(fd);
}

/* Where nobody told, the mappings do. */
static void find_library(struct target *t)
{
	char path[64], line[1400];
	bool found = false;
	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/maps", t->number);
	FILE *f = fopen(path, "re");
	while (f && !found && fgets(line, sizeof(line), f)) {
		char *slash = strchr(line, '/');
		line[strcspn(line, "\n")] = '\0';
		found = slash && take_library(t, slash);
	}
	if (f)
		fclose(f);
}

static bool uses(const struct target *t, const struct device_source *source)
{
	return t->backends >> source->backend & 1;
}

static bool is_used(const struct sampler *s, const struct device_source *source)
{
	for (size_t i = 0; i < s->count; i++)
		if (uses(s->targets[i], source))
			return true;
	return false;
}

bool uses_devices(const struct sampler *s)
{
	for (size_t i = 0; i < s->count; i++)
		if (s->targets[i]->backends)
			return true;
	return false;
}

static void open_source(struct sampler *s, const struct device_source *source, struct opened *o)
{
	for (size_t i = 0; i < s->count; i++) {
		struct target *t = s->targets[i];
		if (!uses(t, source) || o->source || s->now < o->retry_ns)
			continue;
		if (source->library && !*t->library && t->number)
			find_library(t);
		o->source = source->open(t->library);
		o->retry_ns = s->now + RETRY_NS;
	}
}

void close_devices(struct sampler *s)
{
	for (size_t i = 0; i < DEVICE_SOURCES; i++)
		if (s->devices[i].source)
			sources[i]->close(s->devices[i].source);
}

struct asker {
	struct sampler *sampler;
	const struct device_source *source;
};

/* What the trace calls a process of the driver's. In a container the driver may speak of the host's numbers, which mean
 * others here; there only a process that is known to use its devices is taken for it. */
static uint32_t find_pid(void *arg, uint32_t pid, char name[64])
{
	const struct asker *a = arg;
	const struct sampler *s = a->sampler;
	struct proc_who who;
	for (size_t i = 0; i < s->count; i++)
		if (s->targets[i]->number == pid && (s->own_namespace || uses(s->targets[i], a->source))) {
			if (sample_process_stat(pid, &who, NULL))
				snprintf(name, 64, "%s", who.name);
			return s->targets[i]->who.pid;
		}
	if (!s->own_namespace || !sample_process_stat(pid, &who, NULL))
		return 0;
	snprintf(name, 64, "%s", who.name);
	return pid;
}

static void look_at_source(struct sampler *s, const struct device_source *source, struct opened *o)
{
	bool processes = true;
	open_source(s, source, o);
	if (o->source && is_used(s, source)) {
		processes = source->sample(o->source, s->file, s->now, find_pid, &(struct asker){ s, source });
		samples_file_end_stale(s->file, MT_SUBJECT_DEVICE, source->backend, s->now);
	}
	if (processes)
		samples_file_end_stale(s->file, MT_SUBJECT_DEVICE_PROCESS, source->backend, s->now);
}

void look_at_devices(struct sampler *s)
{
	for (size_t i = 0; i < s->count; i++)
		read_log(s->targets[i]);
	for (size_t i = 0; i < DEVICE_SOURCES; i++)
		look_at_source(s, sources[i], &s->devices[i]);
}
