#include "analyzer/reader/files/packed.h"

#include "analyzer/util/error.h"
#include "analyzer/util/system/unnamed_file.h"
#include "analyzer/util/vec.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

/* What an archive may become: raw files are mostly zeros. */
#define PACKED_LEAST_BYTES ((uint64_t)1 << 30)
#define TIMES              64u
#define MAX_WINDOW         27 /* log2, of zstd: as its program has it */
#define MOST_MEMBERS       262144u
#define TAR_BLOCK          512u
#define MOST_FOLDERS       4096

struct member {
	char *name;    /* FOLDER/FILE */
	size_t folder; /* length of FOLDER */
	uint64_t offset, bytes;
};

struct trace {
	char *path; /* ARCHIVE/FOLDER, of a single one ARCHIVE */
	size_t first, count;
};

struct archive {
	struct archive *next;
	char *path;
	int fd;
	uint64_t stored, plain;
	struct member *members; /* sorted by name */
	size_t count, room;
	struct trace *traces;
	size_t trace_count, trace_room;
};

static struct archive *archives; /* as long as the command runs */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- decompressing ------------------------------------------------------------------------------------------- */

static int put(struct archive *a, const char *from, size_t n)
{
	if (a->plain + n > PACKED_LEAST_BYTES + TIMES * a->stored)
		return error_set(MT_EFORMAT, a->path, ERROR_NO_OFFSET, "becomes more than %" PRIu64 " bytes",
				 PACKED_LEAST_BYTES + TIMES * a->stored);
	while (n) {
		ssize_t done = write(a->fd, from, n);
		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return error_errno(MT_EOUTPUT, "TMPDIR", ERROR_NO_OFFSET);
		from += done;
		n -= (size_t)done;
		a->plain += (uint64_t)done;
	}
	return 0;
}

static int decompress_some(struct archive *a, ZSTD_DCtx *z, ZSTD_inBuffer *in, char *out, size_t room, size_t *more)
{
	int e = 0;
	do {
		ZSTD_outBuffer to = { out, room, 0 };
		*more = ZSTD_decompressStream(z, &to, in);
		e = ZSTD_isError(*more) ? error_set(MT_EFORMAT, a->path, ERROR_NO_OFFSET, "can't be decompressed")
					: put(a, out, to.pos);
		if (in->pos == in->size && (to.pos < to.size || !*more))
			break;
	} while (!e);
	return e;
}

static int decompress(struct archive *a, int from, ZSTD_DCtx *z, char *buffer, size_t half)
{
	int e = 0;
	ssize_t n = 0;
	size_t more = 1;
	ZSTD_DCtx_setParameter(z, ZSTD_d_windowLogMax, MAX_WINDOW);
	while (!e && (n = read(from, buffer, half)) > 0) {
		ZSTD_inBuffer in = { buffer, (size_t)n, 0 };
		a->stored += (uint64_t)n;
		e = decompress_some(a, z, &in, buffer + half, half, &more);
	}
	if (!e && n < 0)
		return error_errno(MT_EIO, a->path, ERROR_NO_OFFSET);
	if (!e && more)
		return error_set(MT_ECUT, a->path, (int64_t)a->stored, NULL);
	return e;
}

static int decompress_file(struct archive *a)
{
	const size_t half = 1 << 18;
	uint8_t magic[4] = { 0 };
	int from = open(a->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (from < 0)
		return error_errno(MT_EIO, a->path, ERROR_NO_OFFSET);
	ZSTD_DCtx *z = ZSTD_createDCtx();
	char *buffer = malloc(2 * half);
	int e = z && buffer ? 0 : error_memory();
	if (!e && (pread(from, magic, 4, 0) < 4 || memcmp(magic, "\x28\xb5\x2f\xfd", 4)))
		e = error_set(MT_ENOTRACE, a->path, ERROR_NO_OFFSET, "is neither a directory nor a packed trace");
	if (!e)
		e = decompress(a, from, z, buffer, half);
	ZSTD_freeDCtx(z);
	free(buffer);
	close(from);
	return e;
}

/* ---- tar ----------------------------------------------------------------------------------------------------- */

/* POSIX's ustar, and GNU's, which has large sizes as binary. */
struct tar {
	char name[100], mode[8], uid[8], gid[8], size[12], time[12], sum[8], type, link[100], magic[8], user[32];
	char group[32], major[8], minor[8], prefix[155], rest[12];
};
_Static_assert(sizeof(struct tar) == TAR_BLOCK, "tar header");

static int bad_tar(const struct archive *a, uint64_t offset, const char *why)
{
	return error_set(MT_EFORMAT, a->path, ERROR_NO_OFFSET, "at %" PRIu64 " of what is in it: %s", offset, why);
}

static uint64_t number_of(const char *text, size_t n)
{
	uint64_t value = 0;
	if (*text & 0x80) {
		for (size_t i = 1; i < n; i++)
			value = value << 8 | (unsigned char)text[i];
		return value;
	}
	while (n && *text == ' ')
		text++, n--;
	for (; n && *text >= '0' && *text <= '7'; text++, n--)
		value = value << 3 | (uint64_t)(*text - '0');
	return value;
}

static bool has_sum(const struct tar *t)
{
	unsigned sum = 0;
	for (size_t i = 0; i < sizeof(*t); i++)
		sum += i >= offsetof(struct tar, sum) && i < offsetof(struct tar, type) ? ' '
											: ((const unsigned char *)t)[i];
	return number_of(t->sum, sizeof(t->sum)) == sum;
}

/* FOLDER/FILE of ./FOLDER/FILE; a file of a trace lies in no other place. */
static const char *inner_name(const char *name, size_t *folder)
{
	while (name[0] == '.' && name[1] == '/')
		name += 2;
	const char *slash = strchr(name, '/');
	*folder = slash ? (size_t)(slash - name) : 0;
	bool up = *folder == 2 && name[0] == '.' && name[1] == '.';
	return slash && slash > name && slash[1] && !strchr(slash + 1, '/') && !up && strcmp(slash, "/..") ? name
													   : NULL;
}

static int add_member(struct archive *a, const struct tar *t, uint64_t offset, uint64_t bytes)
{
	char name[sizeof(t->prefix) + sizeof(t->name) + 2];
	bool prefixed = !memcmp(t->magic, "ustar", 6) && *t->prefix;
	snprintf(name, sizeof(name), "%.*s%s%.*s", prefixed ? (int)sizeof(t->prefix) : 0, t->prefix,
		 prefixed ? "/" : "", (int)sizeof(t->name), t->name);
	size_t folder;
	const char *inner = inner_name(name, &folder);
	if (!inner)
		return bad_tar(a, offset, "a file that lies in no trace directory");
	if (a->count == MOST_MEMBERS)
		return bad_tar(a, offset, "too many files");
	int e = vec_reserve(a->members, a->room, a->count + 1);
	char *copy = e ? NULL : strdup(inner);
	if (!copy)
		return error_memory();
	a->members[a->count++] = (struct member){ copy, folder, offset + TAR_BLOCK, bytes };
	return 0;
}

static int read_header(struct archive *a, uint64_t *at)
{
	struct tar t;
	uint64_t offset = *at;
	if (pread(a->fd, &t, sizeof(t), (off_t)offset) != sizeof(t))
		return bad_tar(a, offset, "it is cut off");
	if (!t.name[0] && !t.sum[0]) { /* the end; zeros follow */
		*at = a->plain;
		return 0;
	}
	uint64_t bytes = number_of(t.size, sizeof(t.size));
	if (!has_sum(&t))
		return bad_tar(a, offset, "no header of tar");
	if (bytes > a->plain - offset - TAR_BLOCK)
		return bad_tar(a, offset, "a file that is not whole");
	*at = offset + TAR_BLOCK + (bytes + TAR_BLOCK - 1) / TAR_BLOCK * TAR_BLOCK;
	if (t.type == '5' || t.type == 'g')
		return 0;
	if (t.type != '0' && t.type)
		return bad_tar(a, offset, "a link, or what else no trace has");
	return add_member(a, &t, offset, bytes);
}

static int compare_members(const void *a, const void *b)
{
	return strcmp(((const struct member *)a)->name, ((const struct member *)b)->name);
}

static bool same_folder(const struct member *x, const struct member *y)
{
	return x->folder == y->folder && !strncmp(x->name, y->name, x->folder);
}

static int list_traces(struct archive *a)
{
	for (size_t i = 0, n; i < a->count; i += n) {
		for (n = 1; i + n < a->count && same_folder(&a->members[i], &a->members[i + n]);)
			if (!strcmp(a->members[i + n - 1].name, a->members[i + n].name))
				return bad_tar(a, a->members[i + n].offset, "a file that is there twice");
			else
				n++;
		if (a->trace_count == MOST_FOLDERS)
			return bad_tar(a, a->members[i].offset, "too many directories");
		int e = vec_reserve(a->traces, a->trace_room, a->trace_count + 1);
		if (e)
			return e;
		struct trace *t = &a->traces[a->trace_count++];
		*t = (struct trace){ .first = i, .count = n };
		if (asprintf(&t->path, "%s/%.*s", a->path, (int)a->members[i].folder, a->members[i].name) < 0) {
			t->path = NULL;
			return error_memory();
		}
	}
	if (a->trace_count == 1)
		a->traces[0].path[strlen(a->path)] = 0;
	return a->count ? 0 : error_set(MT_ENOTRACE, a->path, ERROR_NO_OFFSET, "no trace is in it");
}

static int read_tar(struct archive *a)
{
	int e = 0;
	for (uint64_t at = 0; !e && at < a->plain;)
		e = read_header(a, &at);
	if (!e && a->count)
		qsort(a->members, a->count, sizeof(*a->members), compare_members);
	return e ? e : list_traces(a);
}

/* ---- interface ------------------------------------------------------------------------------------------------ */

static void archive_free(struct archive *a)
{
	for (size_t i = 0; i < a->count; i++)
		free(a->members[i].name);
	for (size_t i = 0; i < a->trace_count; i++)
		free(a->traces[i].path);
	if (a->fd >= 0)
		close(a->fd);
	free(a->members);
	free(a->traces);
	free(a->path);
	free(a);
}

static int archive_open(struct archive **out, const char *path, size_t n)
{
	for (*out = archives; *out; *out = (*out)->next)
		if (strlen((*out)->path) == n && !strncmp((*out)->path, path, n))
			return 0;
	struct archive *a = calloc(1, sizeof(*a));
	if (!a || !(a->path = strndup(path, n))) {
		free(a);
		return error_memory();
	}
	a->fd = unnamed_file();
	int e = a->fd < 0 ? a->fd : decompress_file(a);
	if (!e)
		e = read_tar(a);
	if (e) {
		archive_free(a);
		return e;
	}
	a->next = archives;
	*out = archives = a;
	return 0;
}

/* Of the path's beginning that many bytes are a regular file; 0 = none are. */
static size_t archive_length(const char *path)
{
	char name[PATH_MAX];
	struct stat st;
	size_t n = strlen(path);
	for (int parts = 0; parts < 3 && n && n < sizeof(name); parts++) {
		snprintf(name, sizeof(name), "%.*s", (int)n, path);
		if (!stat(name, &st))
			return S_ISREG(st.st_mode) ? n : 0;
		while (n && path[n - 1] != '/')
			n--;
		while (n && path[n - 1] == '/')
			n--;
	}
	return 0;
}

/* The trace that `path` begins with, and the rest of it in *file. */
static int find_trace(const char *path, const struct archive **archive, const struct trace **trace, const char **file)
{
	size_t n = archive_length(path);
	struct archive *a;
	*trace = NULL;
	if (!n)
		return 0;
	int e = archive_open(&a, path, n);
	if (e)
		return e;
	*archive = a;
	*file = path + n + strspn(path + n, "/");
	for (size_t i = 0; i < a->trace_count; i++) {
		const struct member *m = &a->members[a->traces[i].first];
		if (!strncmp(*file, m->name, m->folder) && ((*file)[m->folder] == '/' || !(*file)[m->folder])) {
			*trace = &a->traces[i];
			*file += m->folder;
			*file += strspn(*file, "/");
			return 0;
		}
	}
	*trace = a->trace_count == 1 ? a->traces : NULL;
	return 0;
}

static int compare_file(const void *file, const void *member)
{
	const struct member *m = member;
	return strcmp(file, m->name + m->folder + 1);
}

static int find(const char *path, struct packed_member *out)
{
	const struct archive *a;
	const struct trace *t;
	const char *file;
	int e = find_trace(path, &a, &t, &file);
	if (e || !t)
		return e;
	const struct member *m = bsearch(file, &a->members[t->first], t->count, sizeof(*m), compare_file);
	if (!m)
		return 0;
	double share = (double)a->stored / (double)a->plain * (double)m->bytes;
	*out = (struct packed_member){ a->fd, m->offset, m->bytes, (uint64_t)share + 1 };
	return 1;
}

int packed_find(const char *path, struct packed_member *out)
{
	pthread_mutex_lock(&lock);
	int found = find(path, out);
	pthread_mutex_unlock(&lock);
	return found;
}

const char *packed_file(const char *dir, size_t number)
{
	const struct archive *a;
	const struct trace *t;
	const char *file, *name = NULL;
	pthread_mutex_lock(&lock);
	if (!find_trace(dir, &a, &t, &file) && t && number < t->count) {
		const struct member *m = &a->members[t->first + number];
		name = m->name + m->folder + 1;
	}
	pthread_mutex_unlock(&lock);
	return name;
}

int packed_traces(const char *path)
{
	struct archive *a;
	struct stat st;
	if (stat(path, &st) || !S_ISREG(st.st_mode))
		return 0;
	pthread_mutex_lock(&lock);
	int e = archive_open(&a, path, strlen(path));
	pthread_mutex_unlock(&lock);
	return e ? e : (int)a->trace_count;
}

const char *packed_trace(const char *path, int number)
{
	struct archive *a;
	pthread_mutex_lock(&lock);
	int e = archive_open(&a, path, strlen(path));
	pthread_mutex_unlock(&lock);
	return e || number < 0 || (size_t)number >= a->trace_count ? NULL : a->traces[number].path;
}
