#include "analyzer/analysis/index.h"

#include "analyzer/analysis/open.h"
#include "analyzer/symbols/module/symbols.h"
#include "analyzer/util/error.h"
#include "analyzer/util/memory/memory.h"
#include "analyzer/util/memory/whole.h"
#include "analyzer/util/system/own_build_id.h"
#include "analyzer/util/ticks.h"
#include "analyzer/util/vec.h"
#include "format/fnv.h"
#include "format/format.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include <zlib.h>

#define MAGIC        "MTINDEX1"
#define ENDING       ".index"
#define MOST_OF_NAME 48
#define MOST_BYTES   (1ull << 30) /* of all indices; the oldest goes first */
#define FREE_TIMES   10           /* so many times what an index takes has to be free on its disk */
#define MOST_OF_KEY  (64u << 20)

/* Followed by the key, and what mem_save() writes. */
struct head {
	char magic[8];
	uint64_t key_bytes, selection;
	uint32_t wants;
	uint32_t crc; /* CRC-32 of the header with crc = 0 */
};

/* What mem_load() finds. */
struct kept {
	struct selection *selection;
	struct analysis analysis;
};

/* ---- what it is good for ----------------------------------------------------------------------------------- */

static bool is_possible(const struct options *o)
{
	const char *setting = getenv(INDEX_SETTING), *rules = getenv("MEMTRACE_RULES");
	struct stat st;
	return !(setting && !strcmp(setting, "0")) && o->ndirs == 1 && !stat(o->dirs[0], &st) && S_ISDIR(st.st_mode) &&
	       !o->process && !o->device && !o->filter && !o->rules && !(rules && *rules) && !o->no_python &&
	       !o->no_native && !o->all_frames && !o->no_debug_files && !o->force && !o->shown &&
	       o->from.kind == WHEN_UNSET && o->to.kind == WHEN_UNSET && o->at.kind == WHEN_UNSET &&
	       o->by != BY_THREAD && o->by != BY_SIZE && mem_is_fixed();
}

static int no_dots(const struct dirent *d)
{
	return strcmp(d->d_name, ".") && strcmp(d->d_name, "..");
}

static bool put_files(FILE *to, const char *dir)
{
	struct dirent **list;
	char *path;
	const int n = scandir(dir, &list, no_dots, alphasort);
	for (int i = 0; i < n; i++) {
		struct stat st;
		if (asprintf(&path, "%s/%s", dir, list[i]->d_name) >= 0 && !stat(path, &st))
			fprintf(to, "%s %" PRIu64 " %" PRId64 ".%09ld %" PRIu64 "\n", list[i]->d_name,
				(uint64_t)st.st_size, (int64_t)st.st_mtim.tv_sec, st.st_mtim.tv_nsec,
				(uint64_t)st.st_ino);
		free(path);
		free(list[i]);
	}
	if (n >= 0)
		free(list);
	return n > 0;
}

/* All that has to be the same. To be freed; NULL: there is no memory, or no such directory. */
static char *key_of(const struct options *o, size_t *bytes)
{
	static const char *const settings[] = { "MEMTRACE_READ_MEMORY", "MEMTRACE_DEBUG_PATH", "MEMTRACE_SYMBOL_CACHE",
						"MEMTRACE_PROC_ROOT" };
	char *key = NULL, cwd[4096];
	const struct own_build_id id = own_build_id();
	FILE *to = id.count ? open_memstream(&key, bytes) : NULL;
	if (!to)
		return NULL;
	fwrite(id.bytes, 1, id.count, to);
	fprintf(to, "\n%s\n%s\n", o->dirs[0], *o->dirs[0] != '/' && getcwd(cwd, sizeof(cwd)) ? cwd : "");
	for (size_t i = 0; i < sizeof(settings) / sizeof(*settings); i++)
		fprintf(to, "%s\n", getenv(settings[i]) ? getenv(settings[i]) : "");
	const bool found = put_files(to, o->dirs[0]);
	if (fclose(to) == 0 && found && *bytes <= MOST_OF_KEY)
		return key;
	free(key);
	return NULL;
}

/* ---- where it lies ------------------------------------------------------------------------------------------- */

static bool is_only_ours(int fd)
{
	struct stat st;
	return !fstat(fd, &st) && st.st_uid == geteuid() && !(st.st_mode & 022);
}

/* The folder, made where it is not there; -1: there is none, or others may write to it. */
static int open_folder(bool make)
{
	const char *set = getenv(INDEX_SETTING), *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
	char *path = NULL, *above = NULL;
	if (set && *set)
		path = strdup(set);
	else if ((cache && *cache ? (above = strdup(cache)) != NULL
				  : home && *home && asprintf(&above, "%s/.cache", home) >= 0) &&
		 asprintf(&path, "%s/memtrace", above) < 0)
		path = NULL;
	if (make && above)
		mkdir(above, 0700);
	if (make && path)
		mkdir(path, 0700);
	int fd = path ? open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	if (fd >= 0 && !is_only_ours(fd)) {
		close(fd);
		fd = -1;
	}
	free(path);
	free(above);
	return fd;
}

static uint32_t crc_of(struct head h)
{
	h.crc = 0;
	return (uint32_t)crc32_z(0, (const Bytef *)&h, sizeof(h));
}

static void name_of(const struct options *o, char name[static MOST_OF_NAME])
{
	char *real = realpath(o->dirs[0], NULL);
	snprintf(name, MOST_OF_NAME, "%016" PRIx64 ENDING, real ? mt_fnv_stir(mt_fnv_text(MT_FNV_START, real)) : 0);
	free(real);
}

struct old {
	uint64_t bytes, written_ns;
	char name[MOST_OF_NAME];
};

static int by_age(const void *a, const void *b)
{
	const struct old *x = a, *y = b;
	return (x->written_ns > y->written_ns) - (x->written_ns < y->written_ns);
}

/* Removes the oldest indices until the others take half of what all may, and returns what one more may take: the rest,
 * and no more than a part of what is free on the disk. The one of `name` goes anyway, when it is replaced. */
static uint64_t make_room(int folder, const char *name)
{
	struct statvfs disk;
	struct old *list = NULL;
	size_t count = 0, room = 0;
	uint64_t all = 0;
	const int copy = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = copy < 0 ? NULL : fdopendir(copy);
	for (struct dirent *entry; d && (entry = readdir(d));) {
		struct stat st;
		if (!strstr(entry->d_name, ENDING) || !strcmp(entry->d_name, name) ||
		    strlen(entry->d_name) >= MOST_OF_NAME || fstatat(folder, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) ||
		    vec_reserve(list, room, count + 1))
			continue;
		list[count] =
			(struct old){ (uint64_t)st.st_size,
				      (uint64_t)st.st_mtim.tv_sec * 1000000000u + (uint64_t)st.st_mtim.tv_nsec, "" };
		strcpy(list[count].name, entry->d_name);
		all += list[count++].bytes;
	}
	if (d)
		closedir(d);
	else if (copy >= 0)
		close(copy);
	if (count)
		qsort(list, count, sizeof(*list), by_age);
	for (size_t i = 0; i < count && all > MOST_BYTES / 2; i++)
		if (!unlinkat(folder, list[i].name, 0))
			all -= list[i].bytes;
	free(list);
	if (all > MOST_BYTES || fstatvfs(folder, &disk))
		return 0;
	const uint64_t left = MOST_BYTES - all, free_part = (uint64_t)disk.f_bavail * disk.f_frsize / FREE_TIMES;
	return left < free_part ? left : free_part;
}

/* The index of that key, at what mem_save() wrote; sets x->has. -1: there is none. */
static int open_index(struct index *x, const struct selection *sel)
{
	struct head h;
	char name[MOST_OF_NAME], *key = NULL;
	const int folder = open_folder(false);
	if (folder < 0)
		return -1;
	name_of(sel->options, name);
	int fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	close(folder);
	if (fd < 0)
		return -1;
	const bool good = is_only_ours(fd) && whole_read(fd, &h, sizeof(h)) &&
			  !memcmp(h.magic, MAGIC, sizeof(h.magic)) && h.crc == crc_of(h) && h.key_bytes == x->bytes &&
			  h.selection == (uintptr_t)sel && (key = malloc(x->bytes)) && whole_read(fd, key, x->bytes) &&
			  !memcmp(key, x->key, x->bytes);
	free(key);
	if (good) {
		x->has = h.wants;
		return fd;
	}
	close(fd);
	return -1;
}

/* ---- taking and keeping -------------------------------------------------------------------------------------- */

struct selection *index_selection(const struct options *o, bool wanted)
{
	const bool before = mem_use(wanted && is_possible(o));
	struct selection *sel = calloc(1, sizeof(*sel));
	mem_use(before);
	return sel;
}

/* What the other process had and this one has not. */
static int resume(struct kept *k, const struct options *o)
{
	struct selection *sel = k->selection;
	struct analysis *a = &k->analysis;
	sel->options = o;
	symbols_resume(stacks_symbols(sel->stacks));
	int e = reader_resume(sel->reader, o->dirs);
	if (!e && a->timeline)
		e = timeline_resume(a->timeline);
	if (!e && a->host)
		e = host_memory_resume(a->host);
	return e;
}

/* 1, 0 or an error, as index_take(). */
static int load(struct selection *sel, struct analysis *a, int fd)
{
	const struct options *o = sel->options;
	const enum by by = sel->by;
	selection_close(sel);
	struct kept *k = mem_load(fd);
	if (k && symbols_are_unchanged(stacks_symbols(k->selection->stacks)) && !resume(k, o)) {
		sel->by = by;
		*a = k->analysis;
		return 1;
	}
	mem_clear();
	if (index_selection(o, true) != sel)
		return error_memory();
	const int e = selection_open(sel, o);
	sel->by = by;
	return e;
}

int index_take(struct index *x, struct selection *sel, struct analysis *a, unsigned wants)
{
	*x = (struct index){ .begin_ns = ticks_mono_ns() };
	x->key = mem_has(sel) ? key_of(sel->options, &x->bytes) : NULL;
	const int fd = x->key ? open_index(x, sel) : -1;
	const int e = fd >= 0 && !(wants & ~x->has) ? load(sel, a, fd) : 0;
	if (fd >= 0)
		close(fd);
	return e;
}

static bool is_worth_it(const struct index *x, const struct selection *sel, unsigned wants)
{
	const char *set = getenv(INDEX_SETTING);
	const bool long_enough = (set && *set) || ticks_mono_ns() - x->begin_ns >= INDEX_LEAST_NS;
	return x->key && wants & ~x->has && long_enough && reader_is_finished(sel->reader) &&
	       !stacks_gaps(sel->stacks).given_up;
}

/* The trace may have changed meanwhile. */
static bool is_unchanged(const struct index *x, const struct selection *sel)
{
	size_t bytes;
	char *key = key_of(sel->options, &bytes);
	const bool same = key && bytes == x->bytes && !memcmp(key, x->key, bytes);
	free(key);
	return same;
}

static bool write_index(const struct index *x, struct kept *k, unsigned wants, int fd, uint64_t most)
{
	struct head h = { .key_bytes = x->bytes, .selection = (uintptr_t)k->selection, .wants = wants };
	memcpy(h.magic, MAGIC, sizeof(h.magic));
	h.crc = crc_of(h);
	return whole_write(fd, &h, sizeof(h)) && whole_write(fd, x->key, x->bytes) && !mem_save(fd, k, most);
}

/* Beside its place, and renamed when it is whole. */
static void write_into(int folder, const struct index *x, struct kept *k, unsigned wants)
{
	char name[MOST_OF_NAME], temporary[MOST_OF_NAME + 16];
	name_of(k->selection->options, name);
	snprintf(temporary, sizeof(temporary), "%s.%d", name, (int)getpid());
	const uint64_t most = make_room(folder, name);
	const int fd = openat(folder, temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return;
	const bool whole = write_index(x, k, wants, fd, most);
	if (close(fd) || !whole || !is_unchanged(x, k->selection) || renameat(folder, temporary, folder, name))
		unlinkat(folder, temporary, 0);
}

void index_keep(struct index *x, struct selection *sel, const struct analysis *a, unsigned wants)
{
	const int folder = is_worth_it(x, sel, wants) ? open_folder(true) : -1;
	if (folder < 0)
		return;
	const bool before = mem_use(true);
	struct kept *k = malloc(sizeof(*k));
	mem_use(before);
	if (k) {
		*k = (struct kept){ sel, *a };
		reader_release(sel->reader);
		write_into(folder, x, k, wants);
	}
	free(k);
	close(folder);
}

void index_fini(struct index *x)
{
	free(x->key);
}
