/* One trace directory: its session, and which images it holds. */
#include "analyzer/reader/files/packed.h"
#include "analyzer/reader/reader_internal.h"
#include "analyzer/util/error.h"
#include "analyzer/util/system/file_owner.h"
#include "analyzer/util/vec.h"
#include "format/output_name.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- sessions -------------------------------------------------------------------------------------------- */

static int check_session(struct session *s)
{
	const struct mt_session *h = &s->head;
	const char *path = s->file.path;
	if (memcmp(h->magic, MT_SESSION_MAGIC, sizeof(h->magic)) != 0)
		return error_set(MT_EMAGIC, path, 0, NULL);
	if (h->version != MT_VERSION)
		return error_set(MT_EVERSION, path, 8, "was written by format version %" PRIu32 ", this reads %d",
				 h->version, MT_VERSION);
	if (h->bytes < MT_SESSION_LEAST || h->bytes > MT_SESSION_PAGE)
		return error_set(MT_EFORMAT, path, 12, "header is %" PRIu32 " bytes long", h->bytes);
	if (h->clock < MT_CLOCK_TSC || h->clock > MT_CLOCK_CNTVCT)
		return error_set(MT_EFORMAT, path, offsetof(struct mt_session, clock), "clock is %" PRIu32, h->clock);
	if (!memchr(h->boot_id, 0, sizeof(h->boot_id)) || !memchr(h->host, 0, sizeof(h->host)) ||
	    !memchr(h->ring_dir, 0, sizeof(h->ring_dir)))
		return error_set(MT_EFORMAT, path, offsetof(struct mt_session, boot_id), "a name has no end");
	return 0;
}

static void look_around(struct session *s)
{
	char boot[40] = "";
	FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");
	if (!f)
		return;
	if (fgets(boot, sizeof(boot), f))
		boot[strcspn(boot, "\n")] = 0;
	fclose(f);
	s->here = *boot && strncmp(boot, s->head.boot_id, sizeof(boot)) == 0;
	uint64_t beat = s->head.recorder_beat_ns, now = clock_mono_ns();
	/* also of one that is only being started, or has its last look: neither has a pid there */
	bool fresh = beat && beat <= now && now - beat < 10ull * 1000000000;
	s->recorder = s->here &&
		      (fresh || (s->head.recorder_pid && (!kill((pid_t)s->head.recorder_pid, 0) || errno == EPERM)));
}

/* Raw files in a ring directory begin with a name of the session's own. */
static int set_raw_prefix(struct session *s)
{
	char prefix[MT_RAW_PREFIX];
	struct stat st;
	if (!*s->head.ring_dir || s->file.packed)
		return 0;
	s->owner = fstat(s->file.fd, &st) ? geteuid() : st.st_uid;
	s->shared = lstat(s->head.ring_dir, &st) || !S_ISDIR(st.st_mode) || st.st_mode & 022 ||
		    !file_is_of(st.st_uid, s->owner);
	mt_raw_prefix(prefix, s->head.start_real_ns);
	s->raw_prefix = strdup(prefix);
	return s->raw_prefix ? 0 : error_set(MT_EMEMORY, s->file.path, ERROR_NO_OFFSET, NULL);
}

static int open_session(struct reader *r, struct session *s, const char *dir)
{
	s->dir = dir;
	int e = file_open(&s->file, dir, "session");
	if (!e && !file_is_open(&s->file))
		e = error_set(MT_ENOTRACE, s->file.path, ERROR_NO_OFFSET, "is missing");
	if (!e)
		e = file_read(&s->file, 0, &s->head, sizeof(s->head));
	if (!e)
		e = check_session(s);
	s->known = !e;
	if (!e) {
		look_around(s);
		return set_raw_prefix(s);
	}
	s->head = (struct mt_session){ .clock = MT_CLOCK_MONOTONIC, .start_ticks = 1, .start_mono_ns = 1 };
	return reader_damage(r);
}

/* ---- images ---------------------------------------------------------------------------------------------- */

/* "PID-N.info" and the like: its length without the extension, or 0. */
static size_t image_name(const char *file)
{
	static const char *const extensions[] = { ".info", ".nodes", ".ring", ".young", ".trace" };
	const char *c = file;
	while (isdigit((unsigned char)*c))
		c++;
	if (c == file || *c != '-' || !isdigit((unsigned char)c[1]))
		return 0;
	for (c++; isdigit((unsigned char)*c); c++)
		;
	for (size_t i = 0; i < sizeof(extensions) / sizeof(*extensions); i++)
		if (!strcmp(c, extensions[i]) && c - file < 24)
			return (size_t)(c - file);
	return 0;
}

struct names {
	char (*list)[32];
	size_t count, room;
};

static int compare_names(const void *a, const void *b)
{
	return strcmp(a, b);
}

/* Somebody else's file in a shared ring directory; a link or a FIFO is of nobody whom we trust. */
static bool is_foreign(const struct session *s, DIR *d, const char *file)
{
	struct stat st;
	return fstatat(dirfd(d), file, &st, AT_SYMLINK_NOFOLLOW) || !S_ISREG(st.st_mode) ||
	       !file_is_of(st.st_uid, s->owner);
}

/* Of the first: there may be any number. */
static void remark_foreign(struct reader *r, struct session *s, const char *file)
{
	char path[sizeof(s->head.ring_dir) + 300];
	if (s->foreign)
		return;
	s->foreign = true;
	snprintf(path, sizeof(path), "%s/%s", s->head.ring_dir, file);
	reader_remark(r, MT_OK, path, ERROR_NO_OFFSET, "is somebody else's or no regular file; such files are ignored");
}

static int add_name(struct names *names, const char *file)
{
	size_t n = image_name(file);
	int e = n ? vec_reserve(names->list, names->room, names->count + 1) : 0;
	if (n && !e)
		snprintf(names->list[names->count++], sizeof(*names->list), "%.*s", (int)n, file);
	return e;
}

/* `raw`: of the ring directory. */
static int list_images(struct reader *r, struct session *s, DIR *d, bool raw, struct names *names)
{
	int e = 0;
	const char *prefix = raw ? s->raw_prefix : "";
	for (struct dirent *entry; !e && (entry = readdir(d));) {
		const char *file = entry->d_name;
		if (strncmp(file, prefix, strlen(prefix)) != 0)
			continue;
		file += strlen(prefix);
		if (raw && s->shared && image_name(file) && is_foreign(s, d, entry->d_name)) {
			remark_foreign(r, s, entry->d_name);
			continue;
		}
		e = add_name(names, file);
	}
	return e;
}

static int list_packed_images(struct session *s, struct names *names)
{
	int e = 0;
	const char *file;
	for (size_t i = 0; !e && (file = packed_file(s->dir, i)); i++)
		e = add_name(names, file);
	return e;
}

static int list_raw_images(struct reader *r, struct session *s, struct names *names)
{
	DIR *d = opendir(s->raw_prefix ? s->head.ring_dir : s->dir);
	if (!d)
		return 0; /* of another machine: what has ended is in the directory itself */
	int e = list_images(r, s, d, s->raw_prefix != NULL, names);
	closedir(d);
	return e;
}

static int open_image(struct reader *r, struct session *s, const char *name)
{
	int e = vec_reserve(r->images, r->image_room, r->image_count + 1);
	struct image *im = e ? NULL : calloc(1, sizeof(*im));
	if (!im)
		return error_set(MT_EMEMORY, s->dir, ERROR_NO_OFFSET, NULL);
	im->reader = r;
	im->session = s;
	e = image_open(im, name);
	if (!e && im->unborn) {
		reader_remark(r, MT_OK, im->info_file.path, ERROR_NO_OFFSET, "ended before it recorded anything");
		image_close(im);
		return 0;
	}
	r->images[r->image_count++] = im;
	return e;
}

/* What is there of the session by now; it grows by none while new ones are opened. */
static int list_known(const struct reader *r, const struct session *s, struct names *known)
{
	int e = vec_reserve(known->list, known->room, r->image_count + 1);
	for (size_t i = 0; !e && i < r->image_count; i++)
		if (r->images[i]->session == s)
			memcpy(known->list[known->count++], r->images[i]->name, sizeof(*known->list));
	if (known->count)
		qsort(known->list, known->count, sizeof(*known->list), compare_names);
	return e;
}

static bool is_known(const struct names *known, const char *name)
{
	return known->count && bsearch(name, known->list, known->count, sizeof(*known->list), compare_names);
}

static int open_images(struct reader *r, struct session *s, struct names *names)
{
	struct names known = { 0 };
	int e = list_known(r, s, &known);
	if (names->count)
		qsort(names->list, names->count, sizeof(*names->list), compare_names);
	for (size_t i = 0; !e && i < names->count; i++)
		if ((!i || strcmp(names->list[i], names->list[i - 1]) != 0) && !is_known(&known, names->list[i]))
			e = open_image(r, s, names->list[i]);
	free(known.list);
	return e;
}

/* A recorder makes PID-N.trace and removes PID-N.info a little later, and who reads a directory meanwhile may see
 * neither. So raw files are looked for first: one whose info had gone by then has a trace when the directory is read
 * (again). */
static int take_images(struct reader *r, struct session *s)
{
	struct names names = { 0 };
	int e = s->file.packed ? list_packed_images(s, &names) : list_raw_images(r, s, &names);
	DIR *d = e || s->file.packed ? NULL : opendir(s->dir);
	if (!e && !d && !s->file.packed)
		e = error_errno(MT_EIO, s->dir, ERROR_NO_OFFSET);
	if (!e && d)
		e = list_images(r, s, d, false, &names);
	if (d)
		closedir(d);
	if (!e)
		e = open_images(r, s, &names);
	free(names.list);
	return e;
}

int directory_open(struct reader *r, struct session *s, const char *dir)
{
	struct stat st;
	if (stat(dir, &st) && errno != ENOTDIR) /* a folder in a packed file */
		return error_errno(MT_EIO, dir, ERROR_NO_OFFSET);
	int e = open_session(r, s, dir);
	return e ? e : take_images(r, s);
}

void directory_look_again(struct session *s)
{
	struct mt_session head;
	if (file_read(&s->file, 0, &head, sizeof(head)) || !s->known)
		return;
	s->head.recorder_pid = head.recorder_pid;
	s->head.recorder_beat_ns = head.recorder_beat_ns;
	s->head.unrecorded = head.unrecorded;
	s->head.unrecorded_why = head.unrecorded_why;
	if (s->head.bytes >= offsetof(struct mt_session, ended_ticks))
		memcpy(s->head.unseen, head.unseen, sizeof(head.unseen));
	s->head.root_exit_kind = head.root_exit_kind;
	s->head.root_exit_code = head.root_exit_code;
	s->head.root_pid = head.root_pid;
	look_around(s);
}

int directory_refresh(struct reader *r, struct session *s)
{
	directory_look_again(s);
	return take_images(r, s);
}
