/* Which of the traced processes use devices, and the figures of their driver. A part of sampler.c. */
#include "analyzer/recorder/rings/file_io.h"
#include "analyzer/recorder/sampler/sampler_internal.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define NVML_RETRY_NS (10 * SECOND)

/* Its log says so once it has met one; the library's path is found in passing. */
static void take_record(struct target *t, const struct mt_record *head, const char *payload, size_t bytes)
{
	if (head->type == MT_REC_DEVICE && bytes >= sizeof(struct mt_rec_device)) {
		struct mt_rec_device d;
		memcpy(&d, payload, sizeof(d));
		t->cuda |= d.backend == MT_BACKEND_CUDA;
	} else if (head->type == MT_REC_MODULE && bytes > sizeof(struct mt_rec_module)) {
		struct mt_rec_module m;
		memcpy(&m, payload, sizeof(m));
		size_t at = sizeof(m) + m.build_id_bytes;
		if (at < bytes && memchr(payload + at, 0, bytes - at) && strstr(payload + at, "/libcuda.so"))
			snprintf(t->libcuda, sizeof(t->libcuda), "%s", payload + at);
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
static void find_libcuda(struct target *t)
{
	char path[64], line[1400];
	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/maps", t->number);
	FILE *f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f)) {
		const char *slash = strchr(line, '/');
		if (slash && strstr(slash, "/libcuda.so")) {
			snprintf(t->libcuda, sizeof(t->libcuda), "%.*s", (int)strcspn(slash, "\n"), slash);
			break;
		}
	}
	if (f)
		fclose(f);
}

bool uses_devices(const struct sampler *s)
{
	for (size_t i = 0; i < s->count; i++)
		if (s->targets[i]->cuda)
			return true;
	return false;
}

static void open_nvml(struct sampler *s)
{
	for (size_t i = 0; i < s->count; i++) {
		struct target *t = s->targets[i];
		if (!t->cuda || s->nvml || s->now < s->nvml_retry_ns)
			continue;
		if (!*t->libcuda && t->number)
			find_libcuda(t);
		s->nvml = nvml_open(t->libcuda);
		s->nvml_retry_ns = s->now + NVML_RETRY_NS;
	}
}

/* What the trace calls a process of the driver's. In a container the driver may speak of the host's numbers, which mean
 * others here; there only a process that is known to use devices is taken for it. */
static uint32_t pid_of(void *arg, uint32_t pid, char name[64])
{
	struct sampler *s = arg;
	struct proc_who who;
	for (size_t i = 0; i < s->count; i++)
		if (s->targets[i]->number == pid && (s->own_namespace || s->targets[i]->cuda)) {
			if (sample_process_stat(pid, &who, NULL))
				snprintf(name, 64, "%s", who.name);
			return s->targets[i]->who.pid;
		}
	if (!s->own_namespace || !sample_process_stat(pid, &who, NULL))
		return 0;
	snprintf(name, 64, "%s", who.name);
	return pid;
}

void look_at_devices(struct sampler *s)
{
	for (size_t i = 0; i < s->count; i++)
		read_log(s->targets[i]);
	open_nvml(s);
	if (s->nvml && uses_devices(s))
		sample_nvml(s->nvml, s->file, pid_of, s);
}
