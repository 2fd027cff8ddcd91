#include "analyzer/reader/trace_list.h"

#include "analyzer/util/error.h"
#include "analyzer/util/vec.h"
#include "format/format.h"
#include "format/output_name.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DEEPEST = 2 };

/* ---- one directory --------------------------------------------------------------------------------------------- */

/* "PID-N.info" and the like. */
static bool is_of_image(const char *name)
{
	static const char *const ends[] = {
		".info", ".nodes", ".ring", ".young", ".trace", ".trace.fold", ".holders",
	};
	size_t pid = strspn(name, "0123456789"), n = pid && name[pid] == '-' ? strspn(name + pid + 1, "0123456789") : 0;
	for (size_t i = 0; n && i < sizeof(ends) / sizeof(*ends); i++)
		if (!strcmp(name + pid + 1 + n, ends[i]))
			return true;
	return false;
}

static bool is_of_trace(const char *name)
{
	return !strcmp(name, "session") || !strncmp(name, "samples", 7) || !strncmp(name, "symbols", 7) ||
	       !strcmp(name, "reduced.ndjson.gz") || !strcmp(name, "push.log") || !strncmp(name, "push-", 5) ||
	       is_of_image(name);
}

static bool read_session(int dir, struct mt_session *s)
{
	int fd = openat(dir, "session", O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	bool whole = fd >= 0 && pread(fd, s, MT_SESSION_LEAST, 0) == (ssize_t)MT_SESSION_LEAST &&
		     !memcmp(s->magic, MT_SESSION_MAGIC, sizeof(s->magic)) &&
		     memchr(s->ring_dir, 0, sizeof(s->ring_dir));
	if (fd >= 0)
		close(fd);
	return whole;
}

typedef int seen_file(void *context, int dir, const char *name, const struct stat *st);

/* Of a directory's entries but . and .., until one is not 0. */
static int each_file(int dir, seen_file *seen, void *context)
{
	int copy = openat(dir, ".", O_RDONLY | O_CLOEXEC | O_DIRECTORY), e = 0;
	DIR *d = copy < 0 ? NULL : fdopendir(copy);
	if (!d && copy >= 0)
		close(copy);
	for (struct dirent *entry; d && !e && (entry = readdir(d));) {
		struct stat st;
		if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..") &&
		    !fstatat(dir, entry->d_name, &st, AT_SYMLINK_NOFOLLOW))
			e = seen(context, dir, entry->d_name, &st);
	}
	if (d)
		closedir(d);
	return e;
}

/* Raw files of this session in the ring directory, which may have others'. */
struct rings {
	char prefix[MT_RAW_PREFIX];
	int (*of)(void *context, int dir, const char *name, const struct stat *st);
	void *context;
};

static int see_ring(void *context, int dir, const char *name, const struct stat *st)
{
	const struct rings *r = context;
	size_t n = strlen(r->prefix);
	return !strncmp(name, r->prefix, n) && is_of_image(name + n) && S_ISREG(st->st_mode) && st->st_uid == geteuid()
		       ? r->of(r->context, dir, name, st)
		       : 0;
}

static int each_ring(const struct mt_session *s, seen_file *seen, void *context)
{
	struct rings r = { .of = seen, .context = context };
	int dir = *s->ring_dir ? open(s->ring_dir, O_RDONLY | O_CLOEXEC | O_DIRECTORY | O_NOFOLLOW) : -1;
	mt_raw_prefix(r.prefix, s->start_real_ns);
	int e = dir < 0 ? 0 : each_file(dir, see_ring, &r);
	if (dir >= 0)
		close(dir);
	return e;
}

static int add_bytes(void *context, int dir, const char *name, const struct stat *st)
{
	(void)dir;
	(void)name;
	*(uint64_t *)context += (uint64_t)st->st_blocks * 512;
	return 0;
}

/* ---- listing ---------------------------------------------------------------------------------------------------- */

struct search {
	struct trace_list *list;
	const char *path;
	int depth;
};

static int search(struct trace_list *l, int dir, const char *path, int depth);

static int search_below(void *context, int dir, const char *name, const struct stat *st)
{
	const struct search *s = context;
	char *path;
	if (!S_ISDIR(st->st_mode) || *name == '.')
		return 0;
	int fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_DIRECTORY | O_NOFOLLOW);
	if (fd < 0)
		return 0;
	bool here = !strcmp(s->path, ".");
	int n = asprintf(&path, "%s%s%s", here ? "" : s->path, here || s->path[strlen(s->path) - 1] == '/' ? "" : "/",
			 name);
	int e = n < 0 ? error_memory() : search(s->list, fd, path, s->depth + 1);
	if (n >= 0)
		free(path);
	close(fd);
	return e;
}

static int add(struct trace_list *l, int dir, const char *path, const struct mt_session *s)
{
	int e = vec_reserve(l->list, l->room, l->count + 1);
	struct listed_trace *t = e ? NULL : &l->list[l->count];
	if (!t || !(t->dir = strdup(path)))
		return error_memory();
	l->count++;
	t->start_real_ns = s->start_real_ns;
	e = each_file(dir, add_bytes, &t->bytes);
	return e ? e : each_ring(s, add_bytes, &t->bytes);
}

static int search(struct trace_list *l, int dir, const char *path, int depth)
{
	struct mt_session s = { 0 };
	struct search below = { l, path, depth };
	if (read_session(dir, &s))
		return add(l, dir, path, &s);
	return depth > DEEPEST ? 0 : each_file(dir, search_below, &below);
}

static int newer_first(const void *a, const void *b)
{
	const struct listed_trace *x = a, *y = b;
	if (x->start_real_ns != y->start_real_ns)
		return x->start_real_ns < y->start_real_ns ? 1 : -1;
	return strcmp(x->dir, y->dir);
}

static int search_folder(struct trace_list *l, const char *folder)
{
	int dir = open(folder, O_RDONLY | O_CLOEXEC | O_DIRECTORY);
	if (dir < 0)
		return error_errno(MT_EIO, folder, ERROR_NO_OFFSET);
	int e = search(l, dir, folder, 0);
	close(dir);
	return e;
}

int trace_list_make(struct trace_list *l, const char *const *folders, int count)
{
	int e = 0;
	*l = (struct trace_list){ 0 };
	for (int i = 0; !e && i < (count ? count : 1); i++)
		e = search_folder(l, count ? folders[i] : ".");
	if (!e && l->count)
		qsort(l->list, l->count, sizeof(*l->list), newer_first);
	return e;
}

void trace_list_fini(struct trace_list *l)
{
	for (size_t i = 0; i < l->count; i++)
		free(l->list[i].dir);
	free(l->list);
}

/* ---- removing ---------------------------------------------------------------------------------------------------- */

static int look(void *context, int dir, const char *name, const struct stat *st)
{
	(void)context;
	(void)dir;
	return S_ISREG(st->st_mode) && is_of_trace(name) ? 0 : TRACE_HOLDS_MORE;
}

/* The session goes last: as long as it is there the rest is known for what it is. */
static int unlink_one(void *context, int dir, const char *name, const struct stat *st)
{
	(void)st;
	return strcmp(name, "session") && unlinkat(dir, name, 0) && errno != ENOENT
		       ? error_errno(MT_EOUTPUT, context, ERROR_NO_OFFSET)
		       : 0;
}

static int remove_files(const struct listed_trace *t, int dir, const struct mt_session *s)
{
	int e = each_ring(s, unlink_one, t->dir);
	if (*s->ring_dir)
		rmdir(s->ring_dir); /* the session's own; with somebody else's files in it, it stays */
	if (!e)
		e = each_file(dir, unlink_one, t->dir);
	if (e || ((!unlinkat(dir, "session", 0) || errno == ENOENT) && !rmdir(t->dir)))
		return e;
	return errno == ENOENT ? TRACE_GONE : error_errno(MT_EOUTPUT, t->dir, ERROR_NO_OFFSET);
}

/* It was there when the list was made. */
static bool has_no_session(int dir)
{
	struct stat st;
	return fstatat(dir, "session", &st, AT_SYMLINK_NOFOLLOW) && errno == ENOENT;
}

int trace_list_remove(const struct listed_trace *t, bool dry)
{
	struct mt_session s = { 0 };
	struct stat st;
	int dir = open(t->dir, O_RDONLY | O_CLOEXEC | O_DIRECTORY | O_NOFOLLOW);
	if (dir < 0 || fstat(dir, &st)) {
		int e = errno == ENOENT ? TRACE_GONE : error_errno(MT_EIO, t->dir, ERROR_NO_OFFSET);
		if (dir >= 0)
			close(dir);
		return e;
	}
	int e = 0;
	if (st.st_uid != geteuid())
		e = TRACE_NOT_OURS;
	else if (!read_session(dir, &s))
		e = has_no_session(dir) ? TRACE_GONE : TRACE_HOLDS_MORE;
	if (!e)
		e = each_file(dir, look, NULL);
	if (!e && !dry)
		e = remove_files(t, dir, &s);
	close(dir);
	return e;
}
