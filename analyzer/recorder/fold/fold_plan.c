/* What to do with a file, and how its process was forked. */
#include "analyzer/recorder/fold/fold_internal.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Less where the limit is small. */
#define OUT_SLOTS  262144u /* of a folded block */
#define HELD_SLOTS 524288u /* decoded once: 20 MiB */

/* ---- reading a file -------------------------------------------------------------------------------------- */

/* Calls seen() for each block of a trace until that is false. */
static void walk(int fd, uint64_t size,
		 bool (*seen)(void *arg, uint64_t offset, uint64_t bytes, const struct mt_block *b), void *arg)
{
	struct mt_block b;
	uint64_t bytes;
	for (uint64_t at = sizeof(struct mt_trace_header);
	     at < size && (bytes = read_block_header(fd, at, size, &b)) != 0; at += bytes)
		if (!seen(arg, at, bytes, &b))
			return;
}

/* ---- forks ----------------------------------------------------------------------------------------------- */

struct node_search {
	int fd;
	struct codec *codec;
	struct mt_node *nodes;
	size_t count;
};
struct info_search {
	int fd;
	struct mt_info info;
	bool found;
};

static bool see_info(void *arg, uint64_t offset, uint64_t bytes, const struct mt_block *b)
{
	struct info_search *s = arg;
	if (b->type != MT_BLOCK_INFO || b->count < MT_INFO_LEAST || b->count > CODEC_MAX_INFO || bytes > 1u << 30)
		return true;
	struct codec *codec = codec_new();
	void *block = malloc(bytes), *info = malloc(b->count);
	struct mt_block head;
	size_t n;
	if (codec && block && info && read_at(s->fd, offset, block, bytes) && !codec_check(block, bytes, &head, &n) &&
	    !codec_decode_info(codec, block, bytes, info)) {
		memcpy(&s->info, info, MT_INFO_LEAST); /* what is asked for is in any */
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

int fold_add_fork(struct folding *f, const struct mt_info *info)
{
	if (info->origin != MT_ORIGIN_FORK)
		return 0;
	int e = vec_reserve(f->forks, f->fork_room, f->fork_count + 1);
	if (!e)
		f->forks[f->fork_count++] = (struct fork){ info->parent_pid, info->fork_ticks };
	return e;
}

bool fold_is_trace(const char *file, char name[32])
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
static void find_forks(struct folding *f, const struct recorder *r, struct record_process *processes)
{
	char name[32];
	DIR *dir = f->forks_known ? NULL : opendir(r->dir);
	for (struct dirent *entry; dir && (entry = readdir(dir)) != NULL;) {
		struct stat st;
		struct mt_info info;
		int fd = fold_is_trace(entry->d_name, name) && !known(processes, name)
				 ? openat(dirfd(dir), entry->d_name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
				 : -1;
		if (fd >= 0 && !fstat(fd, &st) && find_info(fd, (uint64_t)st.st_size, &info))
			fold_add_fork(f, &info);
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
static uint64_t *forks_of(const struct folding *f, uint32_t pid, size_t *count)
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

struct listing {
	struct job *job;
	uint64_t settled, young;
	bool events, complete;
	int e;
};

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
		j->parts[j->part_count++] = (struct part){ .offset = offset,
							   .bytes = bytes,
							   .slots = (uint32_t)b->count,
							   .covers = b->covers,
							   .shift = (uint8_t)codec_shift(b),
							   .level = (uint8_t)codec_level(b) };
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
	unsigned level = file->level + file->hurry < FOLD_LEVELS ? file->level + file->hurry : FOLD_LEVELS;
	uint64_t fresh = bytes_of(j, false), folded = bytes_of(j, true),
		 again = file->hurry          ? folded
			 : folded * 2 > fresh ? (folded + 1) / 2
					      : 0;
	bool any = false;
	for (size_t i = 0; i < j->part_count; i++) {
		struct part *p = &j->parts[i];
		if (!p->level)
			p->target = (uint8_t)level;
		else if (again)
			p->target = (uint8_t)(p->level >= FOLD_LEVELS ? FOLD_LEVELS
					      : p->level + 1u > level ? p->level + 1u
								      : level);
		p->wide = p->level || file->hurry;
		if (p->level)
			again -= p->bytes < again ? p->bytes : again;
		any |= p->target != 0;
	}
	return any;
}

/* ---- a job ----------------------------------------------------------------------------------------------- */

static int open_files(struct job *j, const struct recorder *r)
{
	struct mt_trace_header header;
	snprintf(j->path, sizeof(j->path), "%s/%s.trace", r->dir, j->name);
	snprintf(j->temp, sizeof(j->temp), "%.4390s" FOLD_TEMP, j->path);
	j->in = record_open(j->path, O_RDONLY);
	if (j->in < 0 || !read_at(j->in, 0, &header, sizeof(header)))
		return error_errno(MT_EIO, j->path, ERROR_NO_OFFSET);
	j->out = record_open(j->temp, O_RDWR | O_CREAT | O_TRUNC);
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
static void load_parents(const struct job *j, const struct recorder *r, const struct mt_info *info,
			 struct fold_facts *facts)
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

uint64_t fold_still_needed(const struct job *j)
{
	uint64_t sum = 0, at = j->copied, end = j->p ? j->p->trace.end : j->in_bytes;
	for (size_t i = 0; i < j->part_count; i++) {
		const struct part *p = &j->parts[i];
		if (p->offset < j->copied)
			continue;
		sum += !p->target  ? p->bytes
		       : p->level  ? p->bytes / 8 * 7
		       : j->before ? p->bytes * j->after / j->before + p->bytes / 8
				   : p->bytes / 2;
		at = p->offset + p->bytes;
	}
	return sum + (end > at ? end - at : 0);
}

static int plan(struct job *j, struct folding *f, const struct recorder *r, const struct folded *file)
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
	if (file->hurry || fold_disk_left(r) < fold_still_needed(j))
		j->part_count = settled;
	if ((!j->p && !l.complete) || !facts(j, &info) || !set_targets(j, file))
		return 1;
	if (l.young > j->in_bytes / 8)
		return 1; /* soon: it can't be folded yet */
	struct fold_facts facts = { .exact_sizes = info.stacks == MT_STACKS_SAMPLE || info.record == MT_RECORD_SAMPLED,
				    .mean = info.record == MT_RECORD_SAMPLED ? info.sample_bytes : 0 };
	facts.forks = forks_of(f, info.pid, &facts.fork_count);
	load_parents(j, r, &info, &facts);
	j->window = facts.forks ? fold_window_new(&facts) : NULL;
	if (!j->window)
		fold_facts_fini(&facts);
	return j->window ? 0 : error_set(MT_EMEMORY, j->path, ERROR_NO_OFFSET, NULL);
}

struct job *fold_begin(struct folding *f, struct recorder *r, struct record_process *processes,
		       const struct folded *file)
{
	struct record_process *p = known(processes, file->name);
	struct job *j = !p || p->trace.fd >= 0 ? calloc(1, sizeof(*j)) : NULL;
	if (!j)
		return NULL;
	j->in = j->out = -1;
	j->p = p;
	j->held_slots = r->session->limit_bytes / 32 < HELD_SLOTS ? r->session->limit_bytes / 32 : HELD_SLOTS;
	j->out_slots = r->session->limit_bytes / 128 < OUT_SLOTS ? r->session->limit_bytes / 128 : OUT_SLOTS;
	snprintf(j->name, sizeof(j->name), "%s", file->name);
	find_forks(f, r, processes);
	int e = open_files(j, r);
	if (!e)
		e = plan(j, f, r, file);
	if (!e)
		e = fold_begin_window(j);
	if (!e) {
		recorder_charge(r, 0, j->out_end);
		return j;
	}
	unlink(j->temp);
	fold_free_job(j);
	return NULL;
}
