/*
 * Which trace is folded, and when. One job at a time: the largest file that is due, into a file with FOLD_TEMP behind
 * its name, which is renamed at the end. The old file stays whole until then, so a kill at any moment leaves one
 * complete trace, and folding_settle() removes the other one.
 *
 * What holds:
 * - A round takes WORK_NS and one step at most. Emptying rings comes first: a program loses events where they are full.
 * - The limit counts both files, so a job begins while there is room for its output (need(), spare()).
 * - A job that fails or saves little makes its file wait longer, and be folded harder next time. One of which all was
 *   tried is left alone.
 *
 * What it does not do: it decides nothing about single events (fold_window.h), and moves none from file to file.
 */
#include "analyzer/recorder/fold/fold_internal.h"

#include "analyzer/util/ticks.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define MS       1000000ull
#define WORK_NS  (10 * MS) /* of a round, so that rings are emptied as ever */
#define HOPELESS (2 * FOLD_LEVELS + 1)
#define LOOK_NS  (200 * MS) /* between two looks for something to do */

struct folding *folding_new(void)
{
	return calloc(1, sizeof(struct folding));
}

void folding_free(struct folding *f)
{
	if (!f)
		return;
	if (f->job)
		unlink(f->job->temp);
	fold_free_job(f->job);
	free(f->files);
	free(f->forks);
	free(f);
}

void folding_forget(struct folding *f, const struct record_process *p)
{
	if (f && f->job && f->job->p == p)
		f->job->p = NULL;
}

/* ---- choosing a file ------------------------------------------------------------------------------------- */

static struct folded *remembered(struct folding *f, const char *name)
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

/* As much was folded as can be, or it failed so often. */
static bool is_hopeless(const struct folded *file)
{
	return file->hurry >= HOPELESS;
}

/* What rings and blocks may need meanwhile: a quarter of what is theirs. */
static uint64_t spare(const struct recorder *r)
{
	uint64_t limit = r->session->limit_bytes;
	return (limit - (r->kept_bytes < limit / 4 * 3 ? r->kept_bytes : limit / 4 * 3)) / 4;
}

/* Whether folding a file of that size is due, and worth it. */
static bool is_due(const struct recorder *r, const struct folded *file, uint64_t bytes)
{
	uint64_t left = fold_disk_left(r), limit = r->session->limit_bytes;
	if (left > need(file, bytes) + spare(r) || ticks_mono_ns() < file->retry_ns)
		return false;
	return bytes > file->bytes / 4 * 5 || (left < need(file, bytes) + limit / 16 && !is_hopeless(file));
}

/* The largest of those that are due. */
static struct folded *choose(struct folding *f, struct recorder *r)
{
	struct folded *best = NULL;
	uint64_t most = 65536, reserved = 0;
	char name[32], best_name[32] = "";
	DIR *dir = opendir(r->dir);
	for (struct dirent *entry; dir && (entry = readdir(dir)) != NULL;) {
		struct stat st;
		if (!fold_is_trace(entry->d_name, name) ||
		    fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) || (uint64_t)st.st_size <= most)
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

/* ---- interface ------------------------------------------------------------------------------------------- */

static void end_job(struct folding *f, struct recorder *r, int result)
{
	struct job *j = f->job;
	struct folded *file = remembered(f, j->name);
	if (result < 0) {
		unlink(j->temp);
		recorder_charge(r, j->out_end, 0);
	}
	if (file) {
		bool poor = result < 0 || j->out_end > j->copied / 16 * 15,
		     all = result >= 0 && file->hurry + file->level > FOLD_LEVELS;
		file->hurry = !poor ? 0 : all ? HOPELESS : file->hurry + 1;
		if (result >= 0 || is_hopeless(file))
			file->bytes = result < 0 ? j->in_bytes : j->out_end;
		file->retry_ns = result < 0 ? ticks_mono_ns() + (LOOK_NS << (file->hurry < 6 ? file->hurry : 6)) : 0;
		if (j->after > j->before / 3 && file->level < FOLD_LEVELS)
			file->level++;
	}
	f->job = NULL;
	r->reserved = 0;
	fold_free_job(j);
}

static uint64_t count_kept(const struct record_process *processes)
{
	uint64_t bytes = 0;
	for (const struct record_process *p = processes; p; p = p->next)
		if (p->info && p->info->magic[0] && !p->over)
			bytes += (uint64_t)(p->info->node_end - p->info->node_base) * sizeof(struct mt_node) +
				 p->info->log_bytes;
	return bytes;
}

/* Children that were met since the last time. */
static void note_forks(struct folding *f, struct record_process *processes)
{
	for (struct record_process *p = processes; p; p = p->next)
		if (p->info && p->info->magic[0] && !p->fork_noted)
			p->fork_noted = !fold_add_fork(f, p->info);
}

bool folding_work(struct folding *f, struct recorder *r, struct record_process *processes)
{
	uint64_t now = ticks_mono_ns();
	if (!f || !r->counted)
		return false;
	note_forks(f, processes);
	r->kept_bytes = count_kept(processes);
	if (!f->job && now - f->look_ns >= LOOK_NS && fold_disk_left(r) <= r->trace_bytes + spare(r)) {
		struct folded *file = choose(f, r);
		f->look_ns = now;
		f->job = file ? fold_begin(f, r, processes, file) : NULL;
	}
	if (f->job)
		r->reserved = fold_still_needed(f->job) + r->session->limit_bytes / 16;
	int e = 0;
	while (f->job && !e && ticks_mono_ns() < now + WORK_NS)
		e = fold_step(f->job, r);
	if (e)
		end_job(f, r, e);
	return f->job != NULL;
}

void folding_settle(struct recorder *r)
{
	char name[32];
	uint64_t bytes = 0;
	struct mt_session *s = r->session;
	DIR *dir = opendir(r->dir);
	r->counted = s->limit_bytes && s->bytes >= sizeof(*s) && dir;
	for (struct dirent *entry; dir && (entry = readdir(dir)) != NULL;) {
		struct stat st;
		size_t n = strlen(entry->d_name), temp = sizeof(FOLD_TEMP) - 1;
		if (n > temp && !strcmp(entry->d_name + n - temp, FOLD_TEMP) && isdigit((unsigned char)*entry->d_name))
			unlinkat(dirfd(dir), entry->d_name, 0);
		else if (fold_is_trace(entry->d_name, name) &&
			 !fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW))
			bytes += recorder_disk((uint64_t)st.st_size);
	}
	if (dir)
		closedir(dir);
	if (!r->counted)
		return;
	uint64_t counted = __atomic_load_n(&s->trace_bytes, __ATOMIC_RELAXED);
	r->trace_bytes = counted;
	recorder_charge(r, counted, bytes);
}
