#include "analyzer/record_fold.h"

#include "analyzer/error.h"
#include "analyzer/record_io.h"
#include "analyzer/slot.h"
#include "analyzer/thin.h"
#include "analyzer/ticks.h"
#include "analyzer/vec.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define MS          1000000ull
#define WORK_NS     (10 * MS)   /* of a round */
#define HURRY_NS    (60 * MS)   /* ... while blocks wait for it */
#define LOOK_NS     (200 * MS)  /* between two looks for something to do */
#define OUT_SLOTS   262144u     /* of a folded block, less where the limit is small */
#define OUT_MOST    786432u     /* it is ended before it could have more */
#define COPY_BYTES  (4u << 20)
#define SYNC_BYTES  (16u << 20)
#define TEMP        ".fold"     /* behind the name of the trace */

/* A block of events of the file that is folded. */
struct part {
	uint64_t offset, bytes;
	uint32_t slots;
	uint8_t shift, level, target; /* target: how often it is to have been folded; 0 = it stays as it is */
};

/* Who owns each ring, and how far blocks have come. */
struct owners {
	struct owner { uint32_t thread; uint64_t covered; } *rings;
	size_t room;
};

enum phase { LOOK, WRITE, COPY, TAIL };

struct job {
	char name[32], path[4400], temp[4410];
	struct record_process *p;    /* NULL: it has ended and its trace is complete */
	int in, out;
	uint64_t in_bytes;           /* when it began */
	struct part *parts;
	size_t part_count, part_room;
	uint64_t copied;             /* of `in`: what lies before is in `out`, folded or not */
	uint64_t out_end, synced;
	uint64_t before, after;      /* bytes of fresh blocks that were folded, and of what they became */

	enum phase phase;
	size_t first, end, next;     /* parts of the window; the one that is up */
	struct thin *thin;
	struct thin_out kept;
	struct owners owners, at_first; /* now; when the window began */
	struct mt_cover *covers;     /* of the block that is being made */
	size_t cover_count, cover_room;
	uint32_t *last_cover;        /* by ring: its last one of these, + 1 */
	size_t last_cover_room;
	unsigned shift;
	size_t out_slots;            /* a folded block has at least as many, if there are */

	struct codec_buf block;      /* the part at hand */
	struct mt_event *slots;
	uint32_t *rings, *threads;
	size_t slot_room, ring_room, thread_room;
};

/* What is remembered of a file that was folded. */
struct folded {
	char name[32];
	uint64_t bytes;              /* then */
	unsigned level;              /* fresh blocks begin with */
	unsigned hurry;              /* so many times in a row there was too little space, or little was gained: all of it at higher levels */
	uint64_t retry_ns;           /* not before, as there was too little space */
};

struct fork { uint32_t pid; uint64_t ticks; };

struct folder {
	struct job *job;
	struct folded *files;
	size_t file_count, file_room;
	uint64_t look_ns;
	struct fork *forks;          /* of traces that had ended when we began */
	size_t fork_count, fork_room;
	bool forks_known;
};

struct folder *folder_new(void)
{
	return calloc(1, sizeof(struct folder));
}

static void free_job(struct job *j)
{
	if (!j)
		return;
	if (j->in >= 0)
		close(j->in);
	if (j->out >= 0)
		close(j->out);
	thin_free(j->thin);
	thin_out_fini(&j->kept);
	codec_buf_fini(&j->block);
	free(j->parts);
	free(j->owners.rings);
	free(j->at_first.rings);
	free(j->covers);
	free(j->last_cover);
	free(j->slots);
	free(j->rings);
	free(j->threads);
	free(j);
}

void folder_free(struct folder *f)
{
	if (!f)
		return;
	if (f->job)
		unlink(f->job->temp);
	free_job(f->job);
	free(f->files);
	free(f->forks);
	free(f);
}

void folder_forget(struct folder *f, const struct record_process *p)
{
	if (f && f->job && f->job->p == p)
		f->job->p = NULL;
}

/* ---- reading a file -------------------------------------------------------------------------------------- */

/* Calls seen() for each block of a trace until that is false. */
static void walk(int fd, uint64_t size, bool (*seen)(void *arg, uint64_t offset, uint64_t bytes, const struct mt_block *b), void *arg)
{
	struct mt_block b;
	uint64_t bytes;
	for (uint64_t at = sizeof(struct mt_trace_header); at < size && (bytes = block_at(fd, at, size, &b)) != 0; at += bytes)
		if (!seen(arg, at, bytes, &b))
			return;
}

/* ---- forks ----------------------------------------------------------------------------------------------- */

struct node_search { int fd; struct codec *codec; struct mt_node *nodes; size_t count; };
struct info_search { int fd; struct mt_info info; bool found; };

static bool see_info(void *arg, uint64_t offset, uint64_t bytes, const struct mt_block *b)
{
	struct info_search *s = arg;
	if (b->type != MT_BLOCK_INFO || b->count < sizeof(s->info) || b->count > CODEC_MAX_INFO || bytes > 1u << 30)
		return true;
	struct codec *codec = codec_new();
	void *block = malloc(bytes), *info = malloc(b->count);
	struct mt_block head;
	size_t n;
	if (codec && block && info && read_at(s->fd, offset, block, bytes) && !codec_check(block, bytes, &head, &n) &&
	    !codec_decode_info(codec, block, bytes, info)) {
		memcpy(&s->info, info, sizeof(s->info));
		s->found = true;
	}
	codec_free(codec);
	free(block);
	free(info);
	return false;
}

/* Of a process that has ended; false without. */
static bool find_info(int fd, uint64_t size, struct mt_info *info)
{
	struct info_search s = { .fd = fd };
	walk(fd, size, see_info, &s);
	*info = s.info;
	return s.found;
}

static int add_fork(struct folder *f, const struct mt_info *info)
{
	if (info->origin != MT_ORIGIN_FORK)
		return 0;
	int e = vec_reserve(f->forks, f->fork_room, f->fork_count + 1);
	if (!e)
		f->forks[f->fork_count++] = (struct fork){ info->parent_pid, info->fork_ticks };
	return e;
}

static bool is_trace(const char *file, char name[32])
{
	uint32_t pid, image;
	char wanted[64];
	if (sscanf(file, "%" SCNu32 "-%" SCNu32, &pid, &image) != 2)
		return false;
	snprintf(name, 32, "%" PRIu32 "-%" PRIu32, pid, image);
	snprintf(wanted, sizeof(wanted), "%s.trace", name);
	return !strcmp(file, wanted);
}

static struct record_process *known(struct record_process *processes, const char *name)
{
	struct record_process *p = processes;
	while (p && strcmp(p->name, name))
		p = p->next;
	return p;
}

/* Those that an earlier recorder has finished. Everybody else is noted when it comes. */
static void find_forks(struct folder *f, const struct recorder *r, struct record_process *processes)
{
	char name[32];
	DIR *dir = f->forks_known ? NULL : opendir(r->dir);
	for (struct dirent *entry; dir && (entry = readdir(dir)) != NULL;) {
		struct stat st;
		struct mt_info info;
		int fd = is_trace(entry->d_name, name) && !known(processes, name) ?
			 openat(dirfd(dir), entry->d_name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC) : -1;
		if (fd >= 0 && !fstat(fd, &st) && find_info(fd, (uint64_t)st.st_size, &info))
			add_fork(f, &info);
		if (fd >= 0)
			close(fd);
	}
	if (dir)
		closedir(dir);
	f->forks_known = true;
}

static int compare_ticks(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return (x > y) - (x < y);
}

/* When the process was forked. */
static uint64_t *forks_of(const struct folder *f, uint32_t pid, size_t *count)
{
	uint64_t *ticks = malloc((f->fork_count + 1) * sizeof(*ticks));
	*count = 0;
	for (size_t i = 0; ticks && i < f->fork_count; i++)
		if (f->forks[i].pid == pid)
			ticks[(*count)++] = f->forks[i].ticks;
	if (ticks && *count)
		qsort(ticks, *count, sizeof(*ticks), compare_ticks);
	return ticks;
}

/* ---- what to do with a file ------------------------------------------------------------------------------ */

struct listing { struct job *job; uint64_t settled, young; bool events, complete; int e; };

static bool see_part(void *arg, uint64_t offset, uint64_t bytes, const struct mt_block *b)
{
	struct listing *l = arg;
	struct job *j = l->job;
	l->complete = b->type == MT_BLOCK_END;
	if (!codec_holds_events(b->type) || b->last_ticks > l->settled)
		l->events = false;
	if (!l->events) {
		l->young += codec_holds_events(b->type) ? bytes : 0;
		return true;
	}
	l->e = vec_reserve(j->parts, j->part_room, j->part_count + 1);
	if (!l->e)
		j->parts[j->part_count++] = (struct part){ .offset = offset, .bytes = bytes, .slots = (uint32_t)b->count,
							   .shift = (uint8_t)codec_shift(b), .level = (uint8_t)codec_level(b) };
	return !l->e;
}

static uint64_t bytes_of(const struct job *j, bool folded)
{
	uint64_t sum = 0;
	for (size_t i = 0; i < j->part_count; i++)
		sum += !j->parts[i].level == !folded ? j->parts[i].bytes : 0;
	return sum;
}

/* The newest stay as they are. */
static void leave_tail(struct job *j)
{
	uint64_t most = (bytes_of(j, false) + bytes_of(j, true)) / 4, tail = 0;
	while (j->part_count && tail + j->parts[j->part_count - 1].bytes <= most)
		tail += j->parts[--j->part_count].bytes;
}

/* Fresh blocks are folded, of the others the older half once more if they are many. True if there is anything to do. */
static bool set_targets(struct job *j, const struct folded *file)
{
	unsigned level = file->level + file->hurry < THIN_LEVELS ? file->level + file->hurry : THIN_LEVELS;
	uint64_t fresh = bytes_of(j, false), folded = bytes_of(j, true), again = file->hurry ? folded : folded * 2 > fresh ? (folded + 1) / 2 : 0;
	bool any = false;
	for (size_t i = 0; i < j->part_count; i++) {
		struct part *p = &j->parts[i];
		if (!p->level)
			p->target = (uint8_t)level;
		else if (again)
			p->target = (uint8_t)(p->level >= THIN_LEVELS ? THIN_LEVELS : p->level + 1u > level ? p->level + 1u : level);
		if (p->level)
			again -= p->bytes < again ? p->bytes : again;
		any |= p->target != 0;
	}
	return any;
}

static uint64_t disk_left(const struct recorder *r)
{
	const struct mt_session *s = r->session;
	uint64_t used = __atomic_load_n(&s->used_bytes, __ATOMIC_RELAXED);
	return s->limit_bytes > used ? s->limit_bytes - used : 0;
}

static struct folded *remembered(struct folder *f, const char *name)
{
	for (size_t i = 0; i < f->file_count; i++)
		if (!strcmp(f->files[i].name, name))
			return &f->files[i];
	if (vec_reserve(f->files, f->file_room, f->file_count + 1))
		return NULL;
	struct folded *file = &f->files[f->file_count++];
	*file = (struct folded){ .level = 1 };
	snprintf(file->name, sizeof(file->name), "%s", name);
	return file;
}

/* What the new file may well need: what was folded before gets little smaller. */
static uint64_t need(const struct folded *file, uint64_t bytes)
{
	uint64_t old = file->bytes < bytes ? file->bytes : bytes;
	return old + (bytes - old) / 8 * 5;
}

static bool is_hopeless(const struct folded *file) { return file->hurry > 2 * THIN_LEVELS; }

/* Whether folding a file of that size is due, and worth it. */
static bool is_due(const struct recorder *r, const struct folded *file, uint64_t bytes)
{
	uint64_t left = disk_left(r), limit = r->session->limit_bytes;
	if (left > need(file, bytes) + limit / 4 || ticks_mono_ns() < file->retry_ns)
		return false;
	return bytes > file->bytes / 4 * 5 || (left < need(file, bytes) + limit / 16 && !is_hopeless(file));
}

/* The largest of those that are due. */
static struct folded *choose(struct folder *f, struct recorder *r)
{
	struct folded *best = NULL;
	uint64_t most = 65536, reserved = 0;
	char name[32], best_name[32] = "";
	DIR *dir = opendir(r->dir);
	for (struct dirent *entry; dir && (entry = readdir(dir)) != NULL;) {
		struct stat st;
		if (!is_trace(entry->d_name, name) || fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) ||
		    (uint64_t)st.st_size <= most)
			continue;
		struct folded *file = remembered(f, name);
		if (!file)
			continue;
		if (!is_hopeless(file) && need(file, (uint64_t)st.st_size) > reserved)
			reserved = need(file, (uint64_t)st.st_size);
		if (!is_due(r, file, (uint64_t)st.st_size))
			continue;
		most = (uint64_t)st.st_size;
		snprintf(best_name, sizeof(best_name), "%s", name);
	}
	if (dir)
		closedir(dir);
	if (*best_name)
		best = remembered(f, best_name);
	r->reserved = reserved ? reserved + r->session->limit_bytes / 16 : 0;
	return best;
}

/* ---- a job ----------------------------------------------------------------------------------------------- */

static int open_files(struct job *j, const struct recorder *r)
{
	struct mt_trace_header header;
	snprintf(j->path, sizeof(j->path), "%s/%s.trace", r->dir, j->name);
	snprintf(j->temp, sizeof(j->temp), "%.4390s" TEMP, j->path);
	j->in = open(j->path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (j->in < 0 || !read_at(j->in, 0, &header, sizeof(header)))
		return error_errno(MT_EIO, j->path, ERROR_NO_OFFSET);
	j->out = open(j->temp, O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (j->out < 0 || !write_at(j->out, 0, &header, sizeof(header)))
		return error_errno(MT_EOUTPUT, j->temp, ERROR_NO_OFFSET);
	j->out_end = j->copied = sizeof(header);
	return 0;
}

/* What is known of the process: its stacks' mode. */
static bool facts(const struct job *j, struct mt_info *info)
{
	if (j->p && j->p->info) {
		*info = *j->p->info;
		return true;
	}
	return find_info(j->in, j->in_bytes, info);
}

static bool see_nodes(void *arg, uint64_t offset, uint64_t bytes, const struct mt_block *b)
{
	struct node_search *s = arg;
	struct mt_block head;
	size_t n;
	if (b->type != MT_BLOCK_NODES || b->count > MT_MAX_NODES || bytes > 1u << 30)
		return true;
	void *block = malloc(bytes);
	s->nodes = malloc((b->count + 1) * sizeof(*s->nodes));
	if (block && s->nodes && read_at(s->fd, offset, block, bytes) && !codec_check(block, bytes, &head, &n) &&
	    !codec_decode_nodes(s->codec, block, bytes, s->nodes))
		s->count = b->count;
	free(block);
	return false;
}

/* Who called whom, if that can be had: without it less is known of steps. */
static void load_parents(const struct job *j, const struct recorder *r, const struct mt_info *info, struct thin_facts *facts)
{
	struct node_search s = { .fd = j->in, .codec = r->codec };
	if (j->p && !j->p->info)
		return;
	if (j->p && record_process_nodes(j->p, r, &s.nodes, &s.count))
		return;
	if (!j->p)
		walk(j->in, j->in_bytes, see_nodes, &s);
	if (s.count && (facts->parents = malloc(s.count * sizeof(*facts->parents))) != NULL) {
		for (size_t i = 0; i < s.count; i++)
			facts->parents[i] = s.nodes[i].parent;
		facts->node_base = info->node_base;
		facts->node_count = (uint32_t)s.count;
	}
	if (j->p && s.nodes)
		munmap(s.nodes, s.count * sizeof(*s.nodes));
	else
		free(s.nodes);
}

/* Bytes that the new file takes beyond what it has, if folding halves what is fresh. */
static uint64_t still_needed(const struct job *j)
{
	uint64_t sum = 0, at = j->copied, end = j->p ? j->p->trace.end : j->in_bytes;
	for (size_t i = 0; i < j->part_count; i++) {
		const struct part *p = &j->parts[i];
		if (p->offset < j->copied)
			continue;
		sum += !p->target ? p->bytes : p->level ? p->bytes / 8 * 7 : p->bytes / 2;
		at = p->offset + p->bytes;
	}
	return sum + (end > at ? end - at : 0);
}

static int plan(struct job *j, struct folder *f, const struct recorder *r, const struct folded *file)
{
	struct stat st;
	struct mt_info info;
	struct listing l = { .job = j, .settled = r->settled, .events = true };
	if (fstat(j->in, &st))
		return error_errno(MT_EIO, j->path, ERROR_NO_OFFSET);
	j->in_bytes = j->p ? j->p->trace.end : (uint64_t)st.st_size;
	walk(j->in, j->in_bytes, see_part, &l);
	if (l.e)
		return l.e;
	size_t settled = j->part_count;
	leave_tail(j);
	if (file->hurry || disk_left(r) < still_needed(j))
		j->part_count = settled;
	if ((!j->p && !l.complete) || !facts(j, &info) || !set_targets(j, file))
		return 1;
	if (l.young > j->in_bytes / 8)
		return 1; /* soon: it can't be folded yet */
	struct thin_facts facts = { .exact_sizes = info.stacks == MT_STACKS_SAMPLE };
	facts.forks = forks_of(f, info.pid, &facts.fork_count);
	load_parents(j, r, &info, &facts);
	j->thin = facts.forks ? thin_new(&facts) : NULL;
	if (!j->thin)
		thin_facts_fini(&facts);
	return j->thin ? 0 : error_set(MT_EMEMORY, j->path, ERROR_NO_OFFSET, NULL);
}

/* The next parts with one target, as many as a window holds. */
static void next_window(struct job *j)
{
	uint64_t slots = 0;
	j->first = j->next = j->end;
	if (j->first == j->part_count) {
		j->phase = TAIL;
		return;
	}
	while (j->end < j->part_count && j->parts[j->end].target == j->parts[j->first].target &&
	       (j->end == j->first || slots + j->parts[j->end].slots <= THIN_WINDOW_SLOTS))
		slots += j->parts[j->end++].slots;
	j->phase = LOOK;
}

static int copy_owners(struct owners *to, const struct owners *from)
{
	int e = vec_reserve(to->rings, to->room, from->room);
	if (!e && from->room)
		memcpy(to->rings, from->rings, from->room * sizeof(*from->rings));
	return e;
}

static int begin_window(struct job *j)
{
	next_window(j);
	if (j->phase == TAIL)
		return 0;
	int e = copy_owners(&j->at_first, &j->owners);
	return e ? e : thin_begin(j->thin, j->parts[j->first].target);
}

static struct job *begin_job(struct folder *f, struct recorder *r, struct record_process *processes, const struct folded *file)
{
	struct record_process *p = known(processes, file->name);
	struct job *j = !p || p->trace.fd >= 0 ? calloc(1, sizeof(*j)) : NULL;
	if (!j)
		return NULL;
	j->in = j->out = -1;
	j->p = p;
	j->out_slots = r->session->limit_bytes / 128 < OUT_SLOTS ? r->session->limit_bytes / 128 : OUT_SLOTS;
	snprintf(j->name, sizeof(j->name), "%s", file->name);
	find_forks(f, r, processes);
	int e = open_files(j, r);
	if (!e)
		e = plan(j, f, r, file);
	if (!e)
		e = begin_window(j);
	if (!e) {
		recorder_charge(r, (int64_t)j->out_end);
		return j;
	}
	unlink(j->temp);
	free_job(j);
	return NULL;
}

/* ---- its parts ------------------------------------------------------------------------------------------- */

static int bad_part(const struct job *j, const struct part *part, const char *what)
{
	return error_set(MT_EFORMAT, j->path, (int64_t)part->offset, "%s", what);
}

static int take_covers(struct job *j, const struct mt_cover *covers, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		const struct mt_cover *c = &covers[i];
		int e = vec_reserve(j->owners.rings, j->owners.room, c->ring + 1ul);
		if (e)
			return e;
		struct owner *o = &j->owners.rings[c->ring];
		bool goes_on = o->covered == c->from || (o->covered + 1 == c->from && c->from % MT_CHUNK_SLOTS == 0);
		if (!o->covered || !goes_on)
			o->thread = c->thread;
		o->covered = c->to;
	}
	return 0;
}

static int find_threads(struct job *j, const struct part *part)
{
	const struct slot_limits limits = { UINT64_MAX };
	for (uint32_t i = 0; i < part->slots; i++) {
		uint32_t ring = j->rings[i];
		const char *wrong = j->slots[i].kind == MT_EXT && i && mt_has_ext(j->slots[i - 1].kind) ? NULL :
				    slot_problem(&j->slots[i], i + 1 < part->slots ? &j->slots[i + 1] : NULL, &limits);
		if (wrong || ring >= j->owners.room)
			return bad_part(j, part, wrong ? wrong : "an event of a ring that the block does not cover");
		if (j->slots[i].kind == MT_THREAD)
			j->owners.rings[ring].thread = (uint32_t)j->slots[i].addr;
		j->threads[i] = j->owners.rings[ring].thread;
	}
	return 0;
}

/* Reads and decodes it. */
static int load(struct job *j, struct recorder *r, const struct part *part, struct thin_slots *slots)
{
	struct mt_block head;
	size_t bytes;
	int e = vec_reserve_raw(j->slots, j->slot_room, part->slots + 1ul);
	if (!e)
		e = vec_reserve_raw(j->rings, j->ring_room, part->slots + 1ul);
	if (!e)
		e = vec_reserve_raw(j->threads, j->thread_room, part->slots + 1ul);
	if (!e && codec_buf_reserve(&j->block, part->bytes))
		e = error_set(MT_EMEMORY, j->path, ERROR_NO_OFFSET, NULL);
	if (e)
		return e;
	if (!read_at(j->in, part->offset, j->block.data, part->bytes))
		return error_errno(MT_EIO, j->path, (int64_t)part->offset);
	if (codec_check(j->block.data, part->bytes, &head, &bytes) || head.count != part->slots ||
	    codec_decode_events(r->codec, j->block.data, bytes, j->slots, j->rings))
		return bad_part(j, part, "the block is damaged");
	const struct mt_cover *covers = (const struct mt_cover *)(j->block.data + sizeof(head));
	for (uint32_t i = 0; i < head.covers; i++)
		if (covers[i].ring >= MT_MAX_CHUNKS || covers[i].thread >= IMAGE_MAX_THREADS)
			return bad_part(j, part, "the block covers something impossible");
	e = take_covers(j, covers, head.covers);
	if (!e)
		e = find_threads(j, part);
	*slots = (struct thin_slots){ j->slots, j->rings, j->threads, part->slots };
	return e;
}

/* ---- writing --------------------------------------------------------------------------------------------- */

static int write_out(struct job *j, struct recorder *r, const void *data, size_t bytes)
{
	if (disk_left(r) < bytes + r->session->limit_bytes / 64) {
		errno = ENOSPC;
		return error_errno(MT_EOUTPUT, j->temp, (int64_t)j->out_end);
	}
	recorder_charge(r, (int64_t)bytes);
	uint64_t to = j->out_end;
	j->out_end += bytes;
	if (!write_at(j->out, to, data, bytes))
		return error_errno(MT_EOUTPUT, j->temp, (int64_t)to);
	if (j->out_end - j->synced > SYNC_BYTES) { /* so that the last fsync() has little to do */
		sync_file_range(j->out, (off_t)j->synced, (off_t)(j->out_end - j->synced), SYNC_FILE_RANGE_WRITE);
		j->synced = j->out_end;
	}
	return 0;
}

/* A ring's covers are joined where one ends and the next begins; the last slot of a chunk may be unused. */
static int join_covers(struct job *j)
{
	const struct mt_block *head = (const struct mt_block *)j->block.data;
	const struct mt_cover *covers = (const struct mt_cover *)(head + 1);
	for (uint32_t i = 0; i < head->covers; i++) {
		const struct mt_cover *c = &covers[i];
		int e = vec_reserve(j->last_cover, j->last_cover_room, c->ring + 1ul);
		if (!e)
			e = vec_reserve(j->covers, j->cover_room, j->cover_count + 1);
		if (e)
			return e;
		struct mt_cover *last = j->last_cover[c->ring] ? &j->covers[j->last_cover[c->ring] - 1] : NULL;
		if (last && (last->to == c->from || (last->to + 1 == c->from && c->from % MT_CHUNK_SLOTS == 0))) {
			last->to = c->to;
			continue;
		}
		j->covers[j->cover_count] = *c;
		j->last_cover[c->ring] = (uint32_t)++j->cover_count;
	}
	return 0;
}

static int flush(struct job *j, struct recorder *r)
{
	int e = thin_finish(j->thin, &j->kept);
	if (e || !j->kept.count)
		return e;
	if (codec_encode_folded(r->codec, j->kept.slots, j->kept.rings, (uint32_t)j->kept.count, j->covers, (uint32_t)j->cover_count,
				j->shift, j->parts[j->first].target, &r->block))
		return error_set(MT_EFORMAT, j->path, ERROR_NO_OFFSET, "can't be encoded");
	for (size_t i = 0; i < j->cover_count; i++)
		j->last_cover[j->covers[i].ring] = 0;
	j->cover_count = j->kept.count = 0;
	j->after += j->parts[j->first].level ? 0 : r->block.size;
	return write_out(j, r, r->block.data, r->block.size);
}

static int look(struct job *j, struct recorder *r)
{
	struct thin_slots slots;
	const struct part *part = &j->parts[j->next];
	int e = load(j, r, part, &slots);
	if (!e)
		e = thin_look(j->thin, &slots);
	if (e || ++j->next < j->end)
		return e;
	j->next = j->first;
	j->phase = part->target ? WRITE : COPY;
	e = thin_decide(j->thin);
	return e || j->phase == COPY ? e : copy_owners(&j->owners, &j->at_first);
}

static int write_part(struct job *j, struct recorder *r)
{
	struct thin_slots slots;
	const struct part *part = &j->parts[j->next];
	int e = 0;
	if (j->kept.count >= j->out_slots || j->kept.count + 2 * (thin_sums(j->thin) + part->slots) > OUT_MOST)
		e = flush(j, r);
	if (!e)
		e = load(j, r, part, &slots);
	if (!e)
		e = join_covers(j);
	if (e)
		return e;
	j->shift = j->kept.count && j->shift < part->shift ? j->shift : part->shift;
	j->before += part->level ? 0 : part->bytes;
	j->copied = part->offset + part->bytes;
	e = thin_write(j->thin, &slots, &j->kept);
	if (e || ++j->next < j->end)
		return e;
	e = flush(j, r);
	return e ? e : begin_window(j);
}

/* Up to `end`, some of it. */
static int copy_some(struct job *j, struct recorder *r, uint64_t end)
{
	uint64_t most = r->session->limit_bytes / 64 < COPY_BYTES ? r->session->limit_bytes / 64 : COPY_BYTES;
	uint64_t bytes = end - j->copied < most ? end - j->copied : most;
	if (codec_buf_reserve(&j->block, bytes))
		return error_set(MT_EMEMORY, j->path, ERROR_NO_OFFSET, NULL);
	if (!read_at(j->in, j->copied, j->block.data, bytes))
		return error_errno(MT_EIO, j->path, (int64_t)j->copied);
	j->copied += bytes;
	return write_out(j, r, j->block.data, bytes);
}

static int copy_window(struct job *j, struct recorder *r)
{
	const struct part *last = &j->parts[j->end - 1];
	int e = copy_some(j, r, last->offset + last->bytes);
	return e || j->copied < last->offset + last->bytes ? e : begin_window(j);
}

/* Whoever reads the old file by now keeps it. */
static int replace(struct job *j, struct recorder *r, uint64_t old_bytes)
{
	int dir;
	if (fsync(j->out) || rename(j->temp, j->path))
		return error_errno(MT_EOUTPUT, j->temp, ERROR_NO_OFFSET);
	*j->temp = 0;
	recorder_charge(r, -(int64_t)old_bytes);
	if (j->p) {
		close(j->p->trace.fd);
		j->p->trace.fd = j->out;
		j->p->trace.end = j->out_end;
		j->out = -1;
	}
	dir = open(r->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir >= 0) {
		fsync(dir);
		close(dir);
	}
	return 1;
}

static int copy_tail(struct job *j, struct recorder *r)
{
	struct stat st;
	if (j->p && j->p->trace.fd < 0)
		return error_set(MT_EIO, j->path, ERROR_NO_OFFSET, "is being read again");
	if (fstat(j->in, &st))
		return error_errno(MT_EIO, j->path, ERROR_NO_OFFSET);
	uint64_t end = j->p ? j->p->trace.end : (uint64_t)st.st_size;
	return j->copied < end ? copy_some(j, r, end) : replace(j, r, end);
}

/* 1 = done, 0 = there is more, or an error. */
static int step(struct job *j, struct recorder *r)
{
	switch (j->phase) {
	case LOOK:  return look(j, r);
	case WRITE: return write_part(j, r);
	case COPY:  return copy_window(j, r);
	default:    return copy_tail(j, r);
	}
}

/* ---- interface ------------------------------------------------------------------------------------------- */

static void end_job(struct folder *f, struct recorder *r, int result)
{
	struct job *j = f->job;
	struct folded *file = remembered(f, j->name);
	if (result < 0) {
		unlink(j->temp);
		recorder_charge(r, -(int64_t)j->out_end);
	}
	if (file) {
		file->bytes = result < 0 ? file->bytes : j->out_end;
		bool poor = result < 0 || j->out_end > j->copied / 16 * 15;
		file->hurry = poor ? file->hurry + 1 : 0;
		file->retry_ns = result < 0 ? ticks_mono_ns() + (LOOK_NS << (file->hurry < 6 ? file->hurry : 6)) : 0;
		if (j->after > j->before / 3 && file->level < THIN_LEVELS)
			file->level++;
	}
	f->job = NULL;
	r->reserved = 0;
	free_job(j);
}

/* Children that were met since the last time. */
static void note_forks(struct folder *f, struct record_process *processes)
{
	for (struct record_process *p = processes; p; p = p->next)
		if (p->info && p->info->magic[0] && !p->fork_noted)
			p->fork_noted = !add_fork(f, p->info);
}

bool folder_work(struct folder *f, struct recorder *r, struct record_process *processes)
{
	uint64_t now = ticks_mono_ns();
	if (!f || !r->counted)
		return false;
	note_forks(f, processes);
	if (!f->job && now - f->look_ns >= LOOK_NS && disk_left(r) <= r->trace_bytes + r->session->limit_bytes / 4) {
		struct folded *file = choose(f, r);
		f->look_ns = now;
		f->job = file ? begin_job(f, r, processes, file) : NULL;
	}
	if (f->job)
		r->reserved = still_needed(f->job) + r->session->limit_bytes / 16;
	uint64_t until = now + (disk_left(r) < r->reserved ? HURRY_NS : WORK_NS);
	int e = 0;
	while (f->job && !e && ticks_mono_ns() < until)
		e = step(f->job, r);
	if (e)
		end_job(f, r, e);
	return f->job != NULL;
}

void folder_settle(struct recorder *r)
{
	char name[32];
	uint64_t bytes = 0;
	struct mt_session *s = r->session;
	DIR *dir = opendir(r->dir);
	r->counted = s->limit_bytes && s->bytes >= sizeof(*s) && dir;
	for (struct dirent *entry; dir && (entry = readdir(dir)) != NULL;) {
		struct stat st;
		size_t n = strlen(entry->d_name), temp = sizeof(TEMP) - 1;
		if (n > temp && !strcmp(entry->d_name + n - temp, TEMP) && isdigit((unsigned char)*entry->d_name))
			unlinkat(dirfd(dir), entry->d_name, 0);
		else if (is_trace(entry->d_name, name) && !fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW))
			bytes += (uint64_t)st.st_size;
	}
	if (dir)
		closedir(dir);
	if (!r->counted)
		return;
	uint64_t counted = __atomic_load_n(&s->trace_bytes, __ATOMIC_RELAXED);
	r->trace_bytes = counted;
	recorder_charge(r, (int64_t)(bytes - counted));
}
