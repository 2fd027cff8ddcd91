/* The record log of PID-N.info: facts that are not events. Strings are used where they lie. */
#include "analyzer/reader/image.h"
#include "analyzer/util/error.h"
#include "analyzer/util/vec.h"
#include "analyzer/util/event_check.h"

#include <inttypes.h>

/* One record. Nothing in it is trusted: text() and fixed() look at `bytes` first. */
struct record {
	struct mt_record head;
	const char *payload;
	size_t bytes;
};

enum { LAST_KNOWN_TYPE = MT_REC_LATE };

/* The string at `offset` of the payload, or NULL if it does not end within it. */
static const char *text(const struct record *rec, size_t offset)
{
	if (offset >= rec->bytes || !memchr(rec->payload + offset, 0, rec->bytes - offset))
		return NULL;
	return rec->payload + offset;
}

static bool fixed(const struct record *rec, void *to, size_t bytes)
{
	if (rec->bytes < bytes)
		return false;
	memcpy(to, rec->payload, bytes);
	return true;
}

static int may_grow(struct image *im, size_t need, size_t room, size_t size)
{
	uint64_t bytes = need > room ? ((need > 2 * room ? need : 2 * room) - room) * size : 0;
	return memory_bound_take(reader_bound(im->reader), bytes, im->trace.file.path, ERROR_NO_OFFSET);
}

/* A record of a few bytes can ask for a table of millions. */
#define reserve(im, list, room, need) \
	(may_grow(im, need, room, sizeof(*(list))) < 0 ? -error_get()->code : vec_reserve(list, room, need))

static const char *basename_of(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash && slash[1] ? slash + 1 : path;
}

/* NULL-terminated list of the strings from `offset` on. The padding behind the last one is zeros too: an empty string
 * is only taken while `left` says that there is one. */
static int strings(struct image *im, const struct record *rec, size_t offset, const char ***list, size_t *room,
		   unsigned *count)
{
	*count = 0;
	for (const char *s; (s = text(rec, offset)) != NULL; offset += strlen(s) + 1) {
		bool padding = !*s && rec->bytes - offset < 8;
		if (padding)
			break;
		int e = reserve(im, *list, *room, *count + 2u);
		if (e)
			return e;
		(*list)[(*count)++] = s;
	}
	int e = reserve(im, *list, *room, *count + 1u);
	if (!e)
		(*list)[*count] = NULL;
	return e;
}

static int take_program(struct image *im, const struct record *rec)
{
	struct process *p = &im->process;
	const char *exe = text(rec, 0);
	if (!exe)
		return -MT_EFORMAT;
	p->exe = exe;
	int e = strings(im, rec, strlen(exe) + 1, &im->argv, &im->argv_room, &p->argc);
	p->argv = im->argv;
	p->program = basename_of(p->argc && *p->argv[0] ? p->argv[0] : exe);
	return e;
}

static int take_env(struct image *im, const struct record *rec)
{
	int e = strings(im, rec, 0, &im->env, &im->env_room, &im->process.env_count);
	im->process.env = im->env;
	return e;
}

static int take_late(struct image *im, const struct record *rec)
{
	int e = strings(im, rec, 0, &im->late, &im->late_room, &im->process.late_count);
	im->process.late = im->late;
	return e;
}

static int take_hook(struct image *im, const struct record *rec)
{
	struct mt_rec_hook hook;
	const char *name = text(rec, sizeof(hook));
	if (!fixed(rec, &hook, sizeof(hook)) || !name || hook.id >= 1024)
		return -MT_EFORMAT;
	im->hooks[hook.id] = name;
	uint64_t *moves = &im->process.moving_hooks[hook.id / 64], bit = 1ull << hook.id % 64;
	uint64_t *pools = &im->process.pool_hooks[hook.id / 64];
	*moves = strncmp(name, "realloc", 7) && strcmp(name, "mremap") ? *moves & ~bit : *moves | bit;
	*pools = strncmp(name, "tensorflow_", 11) ? *pools & ~bit : *pools | bit;
	return 0;
}

static int take_module(struct image *im, const struct record *rec)
{
	struct mt_rec_module m;
	if (!fixed(rec, &m, sizeof(m)) || m.build_id_bytes > 64 || m.start >= m.end)
		return -MT_EFORMAT;
	const char *path = text(rec, sizeof(m) + m.build_id_bytes);
	if (!path)
		return -MT_EFORMAT;
	int e = reserve(im, im->modules, im->module_room, im->module_count + 1);
	if (e)
		return e;
	im->modules[im->module_count++] = (struct process_module){
		.start = m.start,
		.end = m.end,
		.bias = m.bias,
		.node_from = m.node_from,
		.node_until = UINT32_MAX,
		.ticks = rec->head.ticks,
		.until_ticks = UINT64_MAX,
		.path = path,
		.build_id = (const unsigned char *)rec->payload + sizeof(m),
		.build_id_bytes = m.build_id_bytes,
	};
	return 0;
}

static int take_unmodule(struct image *im, const struct record *rec)
{
	struct mt_rec_unmodule gone;
	if (!fixed(rec, &gone, sizeof(gone)))
		return -MT_EFORMAT;
	for (size_t i = im->module_count; i-- > 0;) {
		struct process_module *m = &im->modules[i];
		if (m->start == gone.start && m->node_until == UINT32_MAX) {
			m->node_until = gone.node_until;
			m->until_ticks = rec->head.ticks;
			return 0;
		}
	}
	return 0; /* a module that was there before recording began */
}

static int take_thread(struct image *im, const struct record *rec)
{
	struct mt_rec_thread t;
	const char *name = text(rec, sizeof(t));
	if (!fixed(rec, &t, sizeof(t)) || !name || t.index >= EVENT_MAX_THREADS)
		return -MT_EFORMAT;
	int e = reserve(im, im->threads, im->thread_room, t.index + 1ul);
	if (e)
		return e;
	if (im->thread_count <= t.index)
		im->thread_count = t.index + 1ul;
	struct process_thread *known = &im->threads[t.index];
	known->index = t.index;
	known->tid = t.tid ? t.tid : known->tid;
	known->name = name;
	return 0;
}

static int take_file(struct image *im, const struct record *rec)
{
	struct mt_rec_file f;
	const char *path = text(rec, sizeof(f));
	if (!fixed(rec, &f, sizeof(f)) || !path)
		return -MT_EFORMAT;
	int e = reserve(im, im->files, im->file_room, im->file_count + 1);
	if (!e)
		im->files[im->file_count++] = (struct process_mapped_file){ f.id, path };
	return e;
}

static int take_child(struct image *im, const struct record *rec)
{
	struct mt_rec_child c;
	if (!fixed(rec, &c, sizeof(c)) || c.kind > MT_EXIT_EXEC)
		return -MT_EFORMAT;
	int e = reserve(im, im->exits, im->exit_room, im->exit_count + 1);
	if (!e)
		im->exits[im->exit_count++] = (struct process_child){ c.pid, c.kind, c.code, rec->head.ticks };
	return e;
}

static int take_code(struct image *im, const struct record *rec)
{
	struct mt_rec_code c;
	if (!fixed(rec, &c, sizeof(c)) || !c.id || c.table_bytes > rec->bytes - sizeof(c))
		return -MT_EFORMAT;
	const char *path = text(rec, sizeof(c) + c.table_bytes);
	const char *name = path ? text(rec, sizeof(c) + c.table_bytes + strlen(path) + 1) : NULL;
	if (!name)
		return -MT_EFORMAT;
	int e = reserve(im, im->codes, im->code_room, im->code_count + 1);
	if (!e)
		im->codes[im->code_count++] = (struct process_code){
			.id = c.id,
			.version = c.version,
			.first_line = c.first_line,
			.table_bytes = c.table_bytes,
			.table = (const unsigned char *)rec->payload + sizeof(c),
			.file = path,
			.name = name,
		};
	return e;
}

static int take_device(struct image *im, const struct record *rec)
{
	struct mt_rec_device d;
	const char *uuid = text(rec, sizeof(d));
	const char *name = uuid ? text(rec, sizeof(d) + strlen(uuid) + 1) : NULL;
	if (!fixed(rec, &d, sizeof(d)) || !name || !d.id || d.id > UINT16_MAX)
		return -MT_EFORMAT;
	int e = reserve(im, im->devices, im->device_room, im->device_count + 1);
	if (!e)
		im->devices[im->device_count++] = (struct process_device){
			.id = d.id,
			.backend = d.backend,
			.ordinal = d.ordinal,
			.total_bytes = d.total_bytes,
			.uuid = uuid,
			.name = name,
		};
	return e;
}

static int take_name(struct image *im, const struct record *rec)
{
	struct mt_rec_name n;
	const char *name = text(rec, sizeof(n));
	if (!fixed(rec, &n, sizeof(n)) || !name || !n.id || n.id >= IMAGE_MAX_NAMES)
		return -MT_EFORMAT;
	int e = reserve(im, im->names, im->name_room, n.id + 1ul);
	if (!e)
		im->names[n.id] = name;
	return e;
}

static int take_mode(struct image *im, const struct record *rec)
{
	struct mt_rec_mode m;
	if (!fixed(rec, &m, sizeof(m)) || m.record > MT_RECORD_YOUNG)
		return -MT_EFORMAT;
	int e = reserve(im, im->modes, im->mode_room, im->mode_count + 1);
	if (!e)
		im->modes[im->mode_count++] = (struct process_mode){ rec->head.ticks, m.record };
	return e;
}

static int take_never(struct image *im, const struct record *rec)
{
	struct mt_rec_never n;
	if (!fixed(rec, &n, sizeof(n)) || n.addr < MT_NOWHERE)
		return -MT_EFORMAT;
	int e = reserve(im, im->nevers, im->never_room, im->never_count + 1);
	if (!e)
		im->nevers[im->never_count++] = n.addr;
	return e;
}

static int take_import(struct image *im, const struct record *rec)
{
	struct process *p = &im->process;
	struct mt_rec_import i;
	const char *what = text(rec, sizeof(i));
	const char *file = what ? text(rec, sizeof(i) + strlen(what) + 1) : NULL;
	const char *lacks = file ? text(rec, sizeof(i) + strlen(what) + strlen(file) + 2) : NULL;
	if (!fixed(rec, &i, sizeof(i)) || !lacks)
		return -MT_EFORMAT;
	p->imported_has = i.has;
	p->imported = what;
	p->imported_file = file;
	p->imported_lacks = lacks;
	return 0;
}

static int take_record(struct image *im, const struct record *rec)
{
	switch (rec->head.type) {
	case MT_REC_PROGRAM:
		return take_program(im, rec);
	case MT_REC_ENV:
		return take_env(im, rec);
	case MT_REC_HOOK:
		return take_hook(im, rec);
	case MT_REC_MODULE:
		return take_module(im, rec);
	case MT_REC_UNMODULE:
		return take_unmodule(im, rec);
	case MT_REC_THREAD:
		return take_thread(im, rec);
	case MT_REC_FILE:
		return take_file(im, rec);
	case MT_REC_CHILD:
		return take_child(im, rec);
	case MT_REC_CODE:
		return take_code(im, rec);
	case MT_REC_DEVICE:
		return take_device(im, rec);
	case MT_REC_NAME:
		return take_name(im, rec);
	case MT_REC_MODE:
		return take_mode(im, rec);
	case MT_REC_IMPORT:
		return take_import(im, rec);
	case MT_REC_NEVER:
		return take_never(im, rec);
	case MT_REC_LATE:
		return take_late(im, rec);
	default:
		return -MT_EFORMAT;
	}
}

static int compare_addresses(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return (x > y) - (x < y);
}

static int compare_files(const void *a, const void *b)
{
	uint32_t x = ((const struct process_mapped_file *)a)->id, y = ((const struct process_mapped_file *)b)->id;
	return (x > y) - (x < y);
}

static int compare_codes(const void *a, const void *b)
{
	uint32_t x = ((const struct process_code *)a)->id, y = ((const struct process_code *)b)->id;
	return (x > y) - (x < y);
}

/* A record whose length makes no sense ends the log: there is no way to find the next. */
static int bad_length(struct image *im, const char *file, uint64_t offset, uint32_t bytes)
{
	error_set(MT_EFORMAT, file, (int64_t)offset, "a record of the log says it is %" PRIu32 " bytes long", bytes);
	im->process.unwritten_bytes += im->log_bytes;
	return reader_damage(im->reader);
}

int log_parse(struct image *im, const char *file, uint64_t file_offset)
{
	int e = 0;
	uint64_t newer = 0; /* where the first record of a type lies that is not known */
	for (size_t at = 0; !e && at < im->log_bytes;) {
		struct record rec = { .payload = im->log + at + sizeof(rec.head) };
		if (im->log_bytes - at < sizeof(rec.head))
			return bad_length(im, file, file_offset + at, 0);
		memcpy(&rec.head, im->log + at, sizeof(rec.head));
		uint32_t bytes = rec.head.bytes;
		if (bytes < sizeof(rec.head) || bytes % 8 || bytes > im->log_bytes - at)
			return bad_length(im, file, file_offset + at, bytes);
		rec.bytes = bytes - sizeof(rec.head);
		if (rec.head.type <= LAST_KNOWN_TYPE)
			e = take_record(im, &rec);
		else if (!newer)
			newer = file_offset + at;
		if (e == -MT_EFORMAT) {
			error_set(MT_EFORMAT, file, (int64_t)(file_offset + at), "a record of type %u makes no sense",
				  rec.head.type);
			e = reader_damage(im->reader);
		}
		at += bytes;
	}
	if (newer)
		reader_remark(im->reader, MT_OK, file, (int64_t)newer,
			      "a newer memtrace wrote records that this one does not know");
	if (im->file_count)
		qsort(im->files, im->file_count, sizeof(*im->files), compare_files);
	if (im->code_count)
		qsort(im->codes, im->code_count, sizeof(*im->codes), compare_codes);
	im->process.codes = im->codes;
	im->process.code_count = (unsigned)im->code_count;
	im->process.modules = im->modules;
	im->process.module_count = (unsigned)im->module_count;
	im->process.files = im->files;
	im->process.file_count = (unsigned)im->file_count;
	im->process.children = im->exits;
	im->process.child_count = (unsigned)im->exit_count;
	im->process.devices = im->devices;
	im->process.device_count = (unsigned)im->device_count;
	if (im->never_count)
		qsort(im->nevers, im->never_count, sizeof(*im->nevers), compare_addresses);
	im->process.nevers = im->nevers;
	im->process.never_count = im->never_count;
	im->process.modes = im->modes;
	im->process.mode_count = (unsigned)im->mode_count;
	im->process.thread_end = (unsigned)im->thread_count;
	return e;
}
