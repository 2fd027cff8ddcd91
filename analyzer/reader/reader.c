/* Opening and closing, and facts about the whole; see reader_internal.h for the other parts. */
#include "analyzer/reader/reader.h"

#include "analyzer/reader/reader_internal.h"
#include "analyzer/util/error.h"
#include "analyzer/util/suggest.h"
#include "analyzer/util/vec.h"
#include "format/number.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/resource.h>

/* ---- opening --------------------------------------------------------------------------------------------- */

/* There is a session, so memtrace wrote the directory: the processes are what is missing. */
static int no_process(const struct reader *r, const char *dir)
{
	uint64_t n = reader_unrecorded(r);
	const char *rings = r->sessions[0].head.ring_dir;
	if (!n)
		return error_set(MT_ENOPROCESS, dir, ERROR_NO_OFFSET, "no process recorded anything");
	if (reader_unrecorded_why(r) & MT_LOSS_MEMORY)
		return error_set(MT_ENOPROCESS, dir, ERROR_NO_OFFSET, "%" PRIu64 " %s had no memory for being recorded",
				 n, n == 1 ? "process" : "processes");
	if (reader_unrecorded_why(r) & MT_LOSS_SANITIZER)
		return error_set(MT_ENOPROCESS, dir, ERROR_NO_OFFSET, "%" PRIu64 " %s with a sanitizer, left alone", n,
				 n == 1 ? "process" : "processes");
	return error_set(MT_ENOPROCESS, dir, ERROR_NO_OFFSET, "%" PRIu64 " %s could not make files in %s", n,
			 n == 1 ? "process" : "processes", *rings ? rings : dir);
}

static int open_all(struct reader *r, const char *const *dirs, int ndirs)
{
	r->sessions = calloc((size_t)ndirs, sizeof(*r->sessions));
	r->codec = codec_new();
	r->ahead = r->codec ? ahead_new(r->codec) : NULL;
	if (!r->sessions || !r->ahead)
		return error_memory();
	int e = 0;
	for (int i = 0; i < ndirs; i++)
		r->sessions[i].file = FILE_CLOSED;
	r->session_count = (size_t)ndirs;
	for (int i = 0; !e && i < ndirs; i++)
		e = directory_open(r, &r->sessions[i], dirs[i]);
	if (!e && !r->image_count)
		e = no_process(r, dirs[0]);
	if (!e)
		e = host_clocks_settle(r);
	if (!e)
		e = process_tree_load(r);
	return e ? e : merge_processes_make(r);
}

/* Each process that is alive at one point of the stream has two files open. */
static void raise_file_limit(void)
{
	struct rlimit limit;
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
}

int reader_open(struct reader **out, const char *const *dirs, int ndirs, unsigned flags)
{
	struct reader *r = calloc(1, sizeof(*r));
	*out = NULL;
	if (!r)
		return error_memory();
	r->flags = flags;
	raise_file_limit();
	r->bound = malloc(sizeof(*r->bound));
	int e = r->bound ? memory_bound_enforce() : error_memory();
	if (!e)
		e = memory_bound_make(r->bound);
	if (!e)
		e = ndirs > 0 ? open_all(r, dirs, ndirs) : error_set(MT_ENOTRACE, NULL, ERROR_NO_OFFSET, NULL);
	if (e)
		reader_close(r);
	else
		*out = r;
	return e;
}

/* What a pass changes is a copy's own: descriptors, and what it finds missing. A trace that a recorder writes is not
 * opened anew: that would index it again, in tables that the copy has no right to change, and with events that the
 * rings had, too. */
static int copy_images(struct reader *r, const struct reader *first)
{
	for (size_t i = 0; i < r->image_count; i++) {
		struct image *im = r->images[i] = &r->again[i];
		struct process *p = &im->process;
		*im = *first->images[i];
		im->reader = r;
		im->raw.file.fd = im->trace.file.fd = im->young_file.fd = -1;
		p->parent = p->parent ? &r->again[p->parent->id].process : NULL;
		p->creator = p->creator ? &r->again[p->creator->id].process : NULL;
	}
	for (size_t i = 0; i < r->image_count; i++) {
		const struct file *f = &first->images[i]->trace.file;
		if (image_is_growing(first->images[i]) && file_is_open(f) &&
		    (r->again[i].trace.file.fd = fcntl(f->fd, F_DUPFD_CLOEXEC, 0)) < 0)
			return error_errno(MT_EIO, f->path, ERROR_NO_OFFSET);
	}
	return 0;
}

int reader_open_again(struct reader **out, const struct reader *first)
{
	struct reader *r = calloc(1, sizeof(*r));
	*out = r;
	if (!r)
		return error_memory();
	*r = *first;
	r->notes = NULL;
	r->decoded = 0;
	r->note_count = r->note_room = r->heap_count = 0;
	r->flags &= ~(unsigned)READER_FOLLOW;
	r->sources = NULL;
	r->source_count = 0;
	r->heap = NULL;
	r->images = calloc(r->image_count, sizeof(*r->images));
	r->again = calloc(r->image_count, sizeof(*r->again));
	int e = error_memory();
	if (r->images && r->again)
		e = copy_images(r, first);
	if (!e)
		e = merge_processes_make(r);
	if (e) {
		reader_close(r);
		*out = NULL;
	}
	return e;
}

static void close_again(struct reader *r)
{
	for (size_t i = 0; r->images && i < r->image_count; i++)
		file_suspend(&r->again[i].trace.file);
	free(r->again);
	free(r->images);
	free(r->notes);
	free(r);
}

int reader_refresh(struct reader *r)
{
	size_t known = r->image_count;
	int e = directory_refresh(r, &r->sessions[0]);
	for (size_t i = known; !e && i < r->image_count; i++)
		e = host_clocks_add(r, r->images[i]);
	if (!e)
		e = process_tree_refresh(r, known);
	return e ? e : merge_processes_refresh(r);
}

bool reader_ended(const struct reader *r)
{
	for (size_t i = 0; i < r->source_count; i++)
		if (r->sources[i].next)
			return false;
	return true;
}

/* Nothing is left in its rings, or nobody is there who could write them; in a ring directory others' files are near. */
static bool is_finished(const struct image *im)
{
	const struct session *s = im->session;
	return im->process.state != PROCESS_RUNNING && (im->trace.end || (!s->recorder && !s->raw_prefix));
}

bool reader_is_finished(const struct reader *r)
{
	for (size_t i = 0; i < r->image_count; i++)
		if (!is_finished(r->images[i]))
			return false;
	return true;
}

static void forget_files(struct image *im)
{
	im->info_file.fd = im->node_file.fd = im->young_file.fd = im->raw.file.fd = im->trace.file.fd = -1;
}

int reader_resume(struct reader *r, const char *const *dirs)
{
	for (size_t i = 0; i < r->image_count; i++)
		forget_files(r->images[i]);
	for (size_t i = 0; i < r->session_count; i++) {
		r->sessions[i].file.fd = -1;
		r->sessions[i].dir = dirs[i];
	}
	raise_file_limit();
	r->codec = codec_new();
	r->ahead = r->codec ? ahead_new(r->codec) : NULL;
	return r->ahead ? memory_bound_enforce() : error_memory();
}

void reader_release(struct reader *r)
{
	if (r->ahead)
		ahead_stop(r->ahead); /* a pass may have ended before its streams did */
	codec_rest(r->codec);
}

void reader_close(struct reader *r)
{
	if (!r)
		return;
	merge_processes_free(r);
	if (r->again) {
		close_again(r);
		return;
	}
	for (size_t i = 0; i < r->image_count; i++)
		image_close(r->images[i]);
	for (size_t i = 0; i < r->session_count; i++) {
		free(r->sessions[i].raw_prefix);
		file_close(&r->sessions[i].file);
	}
	ahead_free(r->ahead);
	codec_free(r->codec);
	free(r->bound);
	free(r->sessions);
	free(r->images);
	free(r->hosts);
	free(r->clocks);
	free(r->notes);
	free(r);
}

/* ---- facts ----------------------------------------------------------------------------------------------- */

unsigned reader_processes(const struct reader *r)
{
	return (unsigned)r->image_count;
}
unsigned reader_hosts(const struct reader *r)
{
	return (unsigned)r->host_count;
}
const struct reader_host *reader_host(const struct reader *r, unsigned i)
{
	return &r->hosts[i];
}
uint64_t reader_origin_real_ns(const struct reader *r)
{
	return r->origin_real_ns;
}
unsigned reader_notes(const struct reader *r)
{
	return (unsigned)r->note_count;
}
const struct reader_note *reader_note(const struct reader *r, unsigned i)
{
	return &r->notes[i];
}

const struct process *reader_process(const struct reader *r, unsigned id)
{
	return &r->images[id]->process;
}

uint64_t reader_duration_ns(const struct reader *r)
{
	uint64_t end = 0;
	for (size_t i = 0; i < r->image_count; i++)
		if (r->images[i]->process.end_ns > end)
			end = r->images[i]->process.end_ns;
	return end;
}

uint64_t reader_unrecorded(const struct reader *r)
{
	uint64_t n = 0;
	for (size_t i = 0; i < r->session_count; i++)
		n += r->sessions[i].head.unrecorded;
	return n;
}

uint32_t reader_unrecorded_why(const struct reader *r)
{
	uint32_t why = 0;
	for (size_t i = 0; i < r->session_count; i++)
		why |= r->sessions[i].head.unrecorded_why;
	return why;
}

bool reader_unseen(const struct reader *r, unsigned i, struct mt_unseen *out)
{
	const size_t most = sizeof(r->sessions->head.unseen) / sizeof(*out);
	for (size_t k = 0; k < r->session_count * most; k++) {
		*out = r->sessions[k / most].head.unseen[k % most];
		out->path[sizeof(out->path) - 1] = 0;
		if (out->pid && out->why && !i--)
			return true;
	}
	return false;
}

static bool matches(const struct process *p, const char *what)
{
	char pid[16];
	uint64_t rank;
	snprintf(pid, sizeof(pid), "%" PRIu32, p->pid);
	if (!strcmp(what, pid) || !strcmp(what, p->program))
		return true;
	if (!strncmp(what, "rank:", 5))
		return p->rank != PROCESS_NO_RANK && !mt_read_count(what + 5, &rank) && (int64_t)rank == p->rank;
	for (unsigned i = 0; i < p->argc && i < 2; i++) {
		const char *slash = strrchr(p->argv[i], '/');
		if (!strcmp(what, p->argv[i]) || (slash && !strcmp(what, slash + 1)))
			return true;
	}
	return false;
}

unsigned reader_find(const struct reader *r, const char *what, unsigned i)
{
	while (i < r->image_count && what && !matches(&r->images[i]->process, what))
		i++;
	return i;
}

int reader_no_such_process(const struct reader *r, const char *what)
{
	enum { LISTED = 8 };
	char list[512] = "";
	size_t n = 0, count = r->image_count;
	struct suggestion s = { .text = what };
	for (size_t i = 0; i < count; i++) {
		const struct process *p = &r->images[i]->process;
		suggest(&s, p->program);
		if (i < LISTED && n < sizeof(list))
			n += (size_t)snprintf(list + n, sizeof(list) - n, "%s%" PRIu32 " %.40s", i ? ", " : "", p->pid,
					      p->name);
	}
	if (s.best)
		return error_set(MT_EUSAGE, "--process", ERROR_NO_OFFSET,
				 "no process '%s' in this trace; did you mean '%s'?", what, s.best);
	if (count > LISTED && n < sizeof(list))
		snprintf(list + n, sizeof(list) - n, " and %zu more", count - LISTED);
	return error_set(MT_EUSAGE, "--process", ERROR_NO_OFFSET, "no process '%s' in this trace, which has %s", what,
			 list);
}

bool reader_complete(const struct reader *r)
{
	for (size_t i = 0; i < r->image_count; i++) {
		const struct process *p = &r->images[i]->process;
		if (p->lost_events || p->unwritten_bytes || p->skipped_slots || p->bad_nodes || p->off)
			return false;
	}
	for (size_t i = 0; i < r->note_count; i++)
		if (r->notes[i].code != MT_OK)
			return false;
	return !r->notes_dropped && !reader_unrecorded(r);
}
