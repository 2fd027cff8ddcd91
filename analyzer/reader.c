/* Directories, who is whose parent, and one stream of all processes. */
#include "analyzer/reader.h"
#include "format/output_name.h"

#include "analyzer/error.h"
#include "analyzer/image.h"
#include "analyzer/stream.h"
#include "analyzer/vec.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/resource.h>

/* Where an image stands in the stream. Sources lie in a heap by the time of what they do next. */
struct source {
	struct image *image;
	enum reader_what next;    /* 0 = nothing more */
	uint64_t ticks, ns;
	struct stream *stream;
	struct batch batch;
	size_t at;
};

struct reader {
	unsigned flags;
	struct session *sessions;
	size_t session_count;
	struct image **images;
	size_t image_count, image_room;
	struct reader_host *hosts;
	size_t host_count, host_room;
	struct clock *clocks;     /* one per image at most; never moves */
	size_t clock_count;
	uint64_t origin_real_ns;
	struct reader_note *notes;
	size_t note_count, note_room;
	uint64_t notes_dropped;
	struct codec *codec;
	struct source *sources;
	struct source **heap;
	size_t heap_count;
};

#define MAX_NOTES 1000u

/* ---- notes ----------------------------------------------------------------------------------------------- */

bool reader_force(const struct reader *r) { return r->flags & READER_FORCE; }
struct codec *reader_codec(struct reader *r) { return r->codec; }

static void add_note(struct reader *r, int code, const char *file, int64_t offset, const char *text)
{
	if (r->note_count == MAX_NOTES || vec_reserve(r->notes, r->note_room, r->note_count + 1)) {
		r->notes_dropped++;
		return;
	}
	struct reader_note *n = &r->notes[r->note_count++];
	*n = (struct reader_note){ .code = code, .offset = offset };
	snprintf(n->file, sizeof(n->file), "%s", file ? file : "");
	snprintf(n->text, sizeof(n->text), "%s", text);
}

void reader_remark(struct reader *r, int code, const char *file, int64_t offset, const char *format, ...)
{
	char text[256];
	va_list args;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	add_note(r, code, file, offset, text);
}

int reader_damage(struct reader *r)
{
	const struct error *e = error_get();
	if (!reader_force(r) || e->code == MT_EMEMORY)
		return -e->code;
	add_note(r, e->code, e->file, e->offset, e->why);
	return 0;
}

/* ---- sessions -------------------------------------------------------------------------------------------- */

static bool same_text(const char *a, const char *b, size_t n)
{
	return strncmp(a, b, n) == 0;
}

static int check_session(struct session *s)
{
	const struct mt_session *h = &s->head;
	const char *path = s->file.path;
	if (memcmp(h->magic, MT_SESSION_MAGIC, sizeof(h->magic)) != 0)
		return error_set(MT_EMAGIC, path, 0, NULL);
	if (h->version != MT_VERSION)
		return error_set(MT_EVERSION, path, 8, "was written by format version %" PRIu32 ", this reads %d", h->version,
				 MT_VERSION);
	if (h->bytes != sizeof(*h))
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
	s->here = *boot && same_text(boot, s->head.boot_id, sizeof(boot));
	uint64_t beat = s->head.recorder_beat_ns, now = clock_mono_ns();
	bool fresh = beat && beat <= now && now - beat < 10ull * 1000000000;
	s->recorder = s->here && s->head.recorder_pid && (fresh || !kill((pid_t)s->head.recorder_pid, 0) || errno == EPERM);
}

/* Raw files in a ring directory, which sessions share, begin with the name of the trace directory. */
static int set_raw_prefix(struct session *s)
{
	char prefix[MT_RAW_PREFIX];
	if (!*s->head.ring_dir)
		return 0;
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
	static const char *const extensions[] = { ".info", ".nodes", ".ring", ".trace" };
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

struct names { char (*list)[32]; size_t count, room; };

static int compare_names(const void *a, const void *b) { return strcmp(a, b); }

static int list_images(DIR *d, const char *prefix, struct names *names)
{
	int e = 0;
	for (struct dirent *entry; !e && (entry = readdir(d));) {
		const char *file = entry->d_name;
		if (strncmp(file, prefix, strlen(prefix)) != 0)
			continue;
		file += strlen(prefix);
		size_t n = image_name(file);
		if (!n)
			continue;
		e = vec_reserve(names->list, names->room, names->count + 1);
		if (!e)
			snprintf(names->list[names->count++], sizeof(*names->list), "%.*s", (int)n, file);
	}
	return e;
}

static int list_raw_images(const struct session *s, struct names *names)
{
	DIR *d = s->raw_prefix ? opendir(s->head.ring_dir) : NULL;
	if (!d)
		return 0; /* of another machine: what has ended is in the directory itself */
	int e = list_images(d, s->raw_prefix, names);
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

static int open_images(struct reader *r, struct session *s, struct names *names)
{
	int e = 0;
	if (names->count)
		qsort(names->list, names->count, sizeof(*names->list), compare_names);
	for (size_t i = 0; !e && i < names->count; i++)
		if (!i || strcmp(names->list[i], names->list[i - 1]) != 0)
			e = open_image(r, s, names->list[i]);
	return e;
}

static int open_directory(struct reader *r, struct session *s, const char *dir)
{
	struct names names = { 0 };
	DIR *d = opendir(dir);
	if (!d)
		return error_errno(MT_EIO, dir, ERROR_NO_OFFSET);
	int e = open_session(r, s, dir);
	if (!e)
		e = list_images(d, "", &names);
	closedir(d);
	if (!e)
		e = list_raw_images(s, &names);
	if (!e)
		e = open_images(r, s, &names);
	free(names.list);
	return e;
}

/* ---- hosts and clocks ------------------------------------------------------------------------------------ */

static int find_host(struct reader *r, const struct session *s, unsigned *index)
{
	for (size_t i = 0; i < r->host_count; i++)
		if (!strcmp(r->hosts[i].boot_id, s->head.boot_id) && !strcmp(r->hosts[i].name, s->head.host)) {
			*index = (unsigned)i;
			return 0;
		}
	r->hosts[r->host_count] = (struct reader_host){ .index = (unsigned)r->host_count, .name = s->head.host,
							.boot_id = s->head.boot_id };
	*index = (unsigned)r->host_count++;
	return 0;
}

static struct clock *find_clock(struct reader *r, unsigned host, uint32_t kind)
{
	for (size_t i = 0; i < r->clock_count; i++)
		if (r->clocks[i].host == host && r->clocks[i].kind == kind)
			return &r->clocks[i];
	struct clock *c = &r->clocks[r->clock_count++];
	*c = (struct clock){ .host = host, .kind = kind };
	return c;
}

static void take_samples(struct image *im)
{
	const struct mt_session *s = &im->session->head;
	const struct mt_info *info = &im->info;
	struct clock *c = im->clock;
	if (im->session->known && s->clock == c->kind)
		clock_sample(c, s->start_ticks, s->start_mono_ns, s->start_real_ns);
	clock_sample(c, info->start_ticks, info->start_mono_ns, info->start_real_ns);
	clock_sample(c, info->pair_ticks, info->pair_mono_ns, 0);
	if (im->session->here)
		clock_sample(c, clock_now(c->kind), clock_mono_ns(), 0);
}

/* A file to name when a clock makes no sense: any of its sessions or infos may be the one that is wrong. */
static const char *clock_file(const struct reader *r, const struct clock *c)
{
	size_t i = 0;
	while (r->images[i]->clock != c)
		i++;
	return r->images[i]->session->file.path;
}

static int settle_clocks(struct reader *r)
{
	r->hosts = calloc(r->image_count + 1, sizeof(*r->hosts));
	r->clocks = calloc(r->image_count + 1, sizeof(*r->clocks));
	if (!r->hosts || !r->clocks)
		return error_set(MT_EMEMORY, NULL, ERROR_NO_OFFSET, NULL);
	for (size_t i = 0; i < r->image_count; i++) {
		struct image *im = r->images[i];
		unsigned host;
		find_host(r, im->session, &host);
		im->process.host = &r->hosts[host];
		r->hosts[host].processes++;
		im->clock = find_clock(r, host, im->info.clock);
		take_samples(im);
	}
	for (size_t i = 0; i < r->clock_count; i++)
		if (clock_settle(&r->clocks[i])) {
			error_set(MT_EFORMAT, clock_file(r, &r->clocks[i]), ERROR_NO_OFFSET,
				  "clocks of host %s contradict each other", r->hosts[r->clocks[i].host].name);
			int e = reader_damage(r);
			if (e)
				return e;
		}
	return 0;
}

static uint64_t start_ticks(const struct image *im)
{
	return im->process.fork_ticks ? im->process.fork_ticks : im->info.start_ticks;
}

/* Time 0 is the start of the earliest process. */
static void settle_origin(struct reader *r)
{
	uint64_t origin = UINT64_MAX;
	for (size_t i = 0; i < r->image_count; i++) {
		struct image *im = r->images[i];
		struct reader_host *host = &r->hosts[im->process.host->index];
		uint64_t real = clock_real_ns(im->clock, start_ticks(im));
		im->process.start_real_ns = real;
		if (!host->start_real_ns || real < host->start_real_ns)
			host->start_real_ns = real;
		origin = real < origin ? real : origin;
	}
	r->origin_real_ns = r->image_count ? origin : 0;
	for (size_t i = 0; i < r->clock_count; i++) {
		uint64_t first = clock_real_ns(&r->clocks[i], r->clocks[i].first_ticks);
		/* a clock's first sample may lie before the first process: keep the sum right where it can't be negative */
		if (first >= origin) {
			r->clocks[i].zero_ns = first - origin;
			continue;
		}
		uint64_t ahead = clock_ticks_at(&r->clocks[i], r->clocks[i].first_mono + (origin - first));
		r->clocks[i].first_mono += origin - first;
		r->clocks[i].first_ticks = ahead;
		r->clocks[i].real_ns = origin;
	}
}

/* ---- relations ------------------------------------------------------------------------------------------- */

static int compare_images(const void *a, const void *b)
{
	const struct image *x = *(struct image *const *)a, *y = *(struct image *const *)b;
	if (x->process.start_real_ns != y->process.start_real_ns)
		return x->process.start_real_ns < y->process.start_real_ns ? -1 : 1;
	if (x->info.pid != y->info.pid)
		return x->info.pid < y->info.pid ? -1 : 1;
	return (x->info.image > y->info.image) - (x->info.image < y->info.image);
}

/* An image of this pid on the same host and session; image UINT32_MAX = the latest that started by `ticks`. */
static struct image *find_image(struct reader *r, const struct image *of, uint32_t pid, uint32_t image, uint64_t ticks)
{
	struct image *best = NULL;
	for (size_t i = 0; i < r->image_count; i++) {
		struct image *im = r->images[i];
		if (im == of || im->info.pid != pid || im->process.host != of->process.host)
			continue;
		if (image != UINT32_MAX && im->info.image == image && im->session == of->session)
			return im;
		bool comparable = im->info.pid_ns == of->info.pid_ns || !im->info_known || !of->info_known;
		if (image == UINT32_MAX && comparable && im->info.start_ticks <= ticks &&
		    (!best || im->info.start_ticks > best->info.start_ticks))
			best = im;
	}
	return best;
}

/* Loops can't be: a parent's ids end where the child's begin, and it started no later. */
static void link_parent(struct reader *r, struct image *im)
{
	struct process *p = &im->process;
	const struct mt_info *info = &im->info;
	struct image *before = NULL;
	if (info->origin == MT_ORIGIN_FORK) {
		before = find_image(r, im, info->parent_pid, info->parent_image, 0);
		bool fits = before && before->process.id < p->id;
		p->parent = fits ? &before->process : NULL;
	} else if (info->image) {
		before = find_image(r, im, info->pid, info->image - 1, 0);
	} else {
		before = find_image(r, im, info->parent_pid, UINT32_MAX, info->start_ticks);
	}
	p->creator = before && before->process.id < p->id ? &before->process : NULL;
}

static void set_end(struct image *im)
{
	struct process *p = &im->process;
	p->start_ns = clock_ns(im->clock, start_ticks(im));
	p->end_ns = clock_ns(im->clock, im->sign_of_life);
	if (p->end_ns < p->start_ns)
		p->end_ns = p->start_ns;
}

/* An image that was replaced says so; a child that was killed can't, but its parent's wait may have. */
static void fill_exits(struct reader *r)
{
	for (size_t i = 0; i < r->image_count; i++) {
		struct image *im = r->images[i], *before = NULL;
		for (size_t k = 0; k < im->exit_count; k++) {
			const struct process_child *x = &im->exits[k];
			struct image *child = find_image(r, im, x->pid, UINT32_MAX, x->ticks);
			if (!child || child->info.exit_kind != MT_EXIT_NONE || child->process.state == PROCESS_RUNNING)
				continue;
			child->process.exit_kind = x->kind;
			child->process.exit_code = x->code;
			child->sign_of_life = x->ticks > child->sign_of_life ? x->ticks : child->sign_of_life;
		}
		if (im->info.origin == MT_ORIGIN_EXEC && im->info.image)
			before = find_image(r, im, im->info.pid, im->info.image - 1, 0);
		if (before && before->info.boot_start == im->info.boot_start) {
			before->process.exit_kind = MT_EXIT_EXEC;
			if (before->sign_of_life > im->info.start_ticks || !before->info.end_ticks)
				before->sign_of_life = im->info.start_ticks;
		}
	}
}

/* `memtrace run` saw how its child ended; the child's last image is the one that did. */
static void fill_root_exit(struct image *im)
{
	const struct mt_session *h = &im->session->head;
	if (!h->root_exit_kind || im->info.pid != h->root_pid || im->process.exit_kind != MT_EXIT_NONE)
		return;
	im->process.exit_kind = h->root_exit_kind == MT_EXIT_SIGNAL ? MT_EXIT_SIGNAL : MT_EXIT_CODE;
	im->process.exit_code = h->root_exit_code;
	im->process.state = PROCESS_ENDED;
}

static int load_images(struct reader *r)
{
	int e = 0;
	for (size_t i = 0; i < r->image_count; i++) {
		r->images[i]->process.id = (unsigned)i;
		r->images[i]->process.state = image_is_alive(r->images[i]) ? PROCESS_RUNNING : PROCESS_GONE;
	}
	for (size_t i = 0; !e && i < r->image_count; i++)
		e = image_load(r->images[i]);
	if (e)
		return e;
	for (size_t i = 0; i < r->image_count; i++)
		link_parent(r, r->images[i]);
	fill_exits(r);
	for (size_t i = 0; i < r->image_count; i++) {
		struct image *im = r->images[i];
		fill_root_exit(im);
		if (im->process.exit_kind != MT_EXIT_NONE)
			im->process.state = PROCESS_ENDED;
		set_end(im);
	}
	return 0;
}

/* ---- opening --------------------------------------------------------------------------------------------- */

static int make_sources(struct reader *r);

static int open_all(struct reader *r, const char *const *dirs, int ndirs)
{
	r->sessions = calloc((size_t)ndirs, sizeof(*r->sessions));
	r->codec = codec_new();
	if (!r->sessions || !r->codec)
		return error_set(MT_EMEMORY, NULL, ERROR_NO_OFFSET, NULL);
	int e = 0;
	for (int i = 0; i < ndirs; i++)
		r->sessions[i].file = FILE_CLOSED;
	r->session_count = (size_t)ndirs;
	for (int i = 0; !e && i < ndirs; i++)
		e = open_directory(r, &r->sessions[i], dirs[i]);
	if (!e && !r->image_count)
		e = error_set(MT_ENOTRACE, dirs[0], ERROR_NO_OFFSET, "holds no trace of any process");
	if (!e)
		e = settle_clocks(r);
	if (e)
		return e;
	settle_origin(r);
	qsort(r->images, r->image_count, sizeof(*r->images), compare_images);
	e = load_images(r);
	return e ? e : make_sources(r);
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
		return error_set(MT_EMEMORY, NULL, ERROR_NO_OFFSET, NULL);
	r->flags = flags;
	raise_file_limit();
	int e = ndirs > 0 ? open_all(r, dirs, ndirs) : error_set(MT_ENOTRACE, NULL, ERROR_NO_OFFSET, NULL);
	if (e)
		reader_close(r);
	else
		*out = r;
	return e;
}

void reader_close(struct reader *r)
{
	if (!r)
		return;
	for (size_t i = 0; r->sources && i < r->image_count; i++)
		stream_free(r->sources[i].stream);
	for (size_t i = 0; i < r->image_count; i++)
		image_close(r->images[i]);
	for (size_t i = 0; i < r->session_count; i++) {
		free(r->sessions[i].raw_prefix);
		file_close(&r->sessions[i].file);
	}
	codec_free(r->codec);
	free(r->sessions);
	free(r->images);
	free(r->hosts);
	free(r->clocks);
	free(r->notes);
	free(r->sources);
	free(r->heap);
	free(r);
}

/* ---- facts ----------------------------------------------------------------------------------------------- */

unsigned reader_processes(const struct reader *r) { return (unsigned)r->image_count; }
unsigned reader_hosts(const struct reader *r) { return (unsigned)r->host_count; }
const struct reader_host *reader_host(const struct reader *r, unsigned i) { return &r->hosts[i]; }
uint64_t reader_origin_real_ns(const struct reader *r) { return r->origin_real_ns; }
unsigned reader_notes(const struct reader *r) { return (unsigned)r->note_count; }
const struct reader_note *reader_note(const struct reader *r, unsigned i) { return &r->notes[i]; }

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

uint32_t reader_session_flags(const struct reader *r)
{
	uint32_t flags = 0;
	for (size_t i = 0; i < r->session_count; i++)
		flags |= r->sessions[i].head.flags;
	return flags;
}

static bool matches(const struct process *p, const char *what)
{
	char pid[16];
	snprintf(pid, sizeof(pid), "%" PRIu32, p->pid);
	if (!strcmp(what, pid) || !strcmp(what, p->name))
		return true;
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

uint64_t process_ns(const struct process *p, uint64_t ticks)
{
	return clock_ns(image_of(p)->clock, ticks);
}

/* ---- names and stacks ------------------------------------------------------------------------------------ */

const struct mt_node *process_node(const struct process *p, uint32_t id)
{
	while (p && id < p->node_base)
		p = p->parent;
	if (!p || !id || id >= p->node_end)
		return NULL;
	return &p->nodes[id - p->node_base];
}

/* What a parent had mapped at the fork counts for the child until it says otherwise. */
static const struct process_module *module_at(const struct process *p, uint32_t node, uint64_t pc)
{
	for (unsigned i = p->module_count; i-- > 0;) {
		const struct process_module *m = &p->modules[i];
		if (pc >= m->start && pc < m->end && node >= m->node_from && node < m->node_until)
			return m;
	}
	return NULL;
}

const struct process_module *reader_module_of(const struct process *p, uint32_t node)
{
	const struct mt_node *n = process_node(p, node);
	if (!n || n->flags & MT_NODE_PYTHON)
		return NULL;
	uint64_t pc = n->pc - (n->flags & MT_NODE_EXACT ? 0 : 1);
	while (p && node < p->node_base)
		p = p->parent;
	for (; p; p = p->parent) {
		const struct process_module *m = module_at(p, node, pc);
		if (m)
			return m;
	}
	return NULL;
}

const char *process_hook(const struct process *p, unsigned hook)
{
	const char *name = hook < 1024 ? image_of(p)->hooks[hook] : NULL;
	return name ? name : "?";
}

const char *process_file(const struct process *p, uint32_t file)
{
	const struct image *im = image_of(p);
	size_t low = 0, high = im->file_count;
	while (low < high) {
		size_t mid = (low + high) / 2;
		if (im->files[mid].id < file)
			low = mid + 1;
		else
			high = mid;
	}
	return low < im->file_count && im->files[low].id == file ? im->files[low].path : "";
}

static const struct process_code *own_code(const struct process *p, uint32_t code)
{
	unsigned low = 0, high = p->code_count;
	while (low < high) {
		unsigned mid = low + (high - low) / 2;
		if (p->codes[mid].id < code)
			low = mid + 1;
		else
			high = mid;
	}
	return low < p->code_count && p->codes[low].id == code ? &p->codes[low] : NULL;
}

const struct process_code *process_code(const struct process *p, uint32_t code)
{
	const struct process_code *found = NULL;
	for (; p && !found; p = p->parent)
		found = own_code(p, code);
	return found;
}

const struct process_thread *process_thread(const struct process *p, uint32_t index)
{
	const struct image *im = image_of(p);
	return index < im->thread_count && im->threads[index].name ? &im->threads[index] : NULL;
}

/* ---- the stream ------------------------------------------------------------------------------------------ */

/* Order of steps: time; on one clock the ticks themselves; a process begins before anything else happens and ends after
 * everything did. */
static bool source_before(const struct source *a, const struct source *b)
{
	if (a->image->clock == b->image->clock && a->ticks != b->ticks)
		return a->ticks < b->ticks;
	if (a->image->clock != b->image->clock && a->ns != b->ns)
		return a->ns < b->ns;
	if (a->next != b->next)
		return a->next < b->next;
	return a->image->process.id < b->image->process.id;
}

static void sift_down(struct reader *r, size_t i)
{
	struct source *s = r->heap[i];
	for (size_t child; (child = 2 * i + 1) < r->heap_count; i = child) {
		if (child + 1 < r->heap_count && source_before(r->heap[child + 1], r->heap[child]))
			child++;
		if (!source_before(r->heap[child], s))
			break;
		r->heap[i] = r->heap[child];
	}
	r->heap[i] = s;
}

static void set_time(struct source *s, uint64_t ticks)
{
	s->ticks = ticks;
	s->ns = clock_ns(s->image->clock, ticks);
}

static int make_sources(struct reader *r)
{
	r->sources = calloc(r->image_count, sizeof(*r->sources));
	r->heap = calloc(r->image_count, sizeof(*r->heap));
	if (!r->sources || !r->heap)
		return error_set(MT_EMEMORY, NULL, ERROR_NO_OFFSET, NULL);
	for (size_t i = 0; i < r->image_count; i++) {
		struct source *s = &r->sources[i];
		s->image = r->images[i];
		s->next = READER_START;
		set_time(s, start_ticks(s->image));
		r->heap[r->heap_count++] = s;
	}
	for (size_t i = r->heap_count / 2; i-- > 0;)
		sift_down(r, i);
	return 0;
}

/* Gets the next batch, or prepares for the exit. */
static int refill(struct source *s)
{
	int e = stream_next(s->stream, &s->batch);
	if (e)
		return e;
	s->at = 0;
	if (s->batch.count) {
		s->next = READER_EVENTS;
		uint64_t ticks = s->batch.slots[0].ticks;
		set_time(s, ticks > s->ticks ? ticks : s->ticks);
		return 0;
	}
	s->next = READER_EXIT;
	set_time(s, s->image->sign_of_life > s->ticks ? s->image->sign_of_life : s->ticks);
	return 0;
}

/* How many slots of the source come before what every other one does next. */
static size_t run_length(struct reader *r, const struct source *s)
{
	const struct source *other = NULL;
	for (size_t i = 1; i <= 2 && i < r->heap_count; i++)
		if (!other || source_before(r->heap[i], other))
			other = r->heap[i];
	if (!other)
		return s->batch.count - s->at;
	struct source probe = *s;
	size_t n = s->at + 1;
	for (; n < s->batch.count; n++) {
		if (s->batch.slots[n].kind == MT_EXT || s->batch.slots[n].ticks <= probe.ticks)
			continue;
		set_time(&probe, s->batch.slots[n].ticks);
		if (source_before(other, &probe))
			break;
	}
	return n - s->at;
}

static int step_start(struct source *s, struct reader_step *step)
{
	*step = (struct reader_step){ .what = READER_START, .process = &s->image->process, .ns = s->ns };
	int e = stream_new(&s->stream, s->image);
	return e ? e : refill(s);
}

static int step_events(struct reader *r, struct source *s, struct reader_step *step)
{
	size_t n = run_length(r, s);
	*step = (struct reader_step){ .what = READER_EVENTS, .process = &s->image->process, .ns = s->ns,
				      .slots = s->batch.slots + s->at, .rings = s->batch.rings + s->at,
				      .threads = s->batch.threads + s->at, .count = n };
	s->at += n;
	if (s->at < s->batch.count && s->batch.slots[s->at].ticks > s->ticks)
		set_time(s, s->batch.slots[s->at].ticks);
	return 0;
}

static void step_exit(struct source *s, struct reader_step *step)
{
	*step = (struct reader_step){ .what = READER_EXIT, .process = &s->image->process, .ns = s->ns };
	if (s->ns > s->image->process.end_ns)
		s->image->process.end_ns = s->ns;
	stream_free(s->stream);
	s->stream = NULL;
	s->next = 0;
}

int reader_next(struct reader *r, struct reader_step *step)
{
	int e = 0;
	/* the batch that was handed out is only replaced now, so that it was valid until this call */
	while (r->heap_count && r->heap[0]->next == READER_EVENTS && r->heap[0]->at == r->heap[0]->batch.count) {
		e = refill(r->heap[0]);
		if (e)
			return e;
		sift_down(r, 0);
	}
	if (!r->heap_count)
		return 0;
	struct source *s = r->heap[0];
	if (s->next == READER_START)
		e = step_start(s, step);
	else if (s->next == READER_EVENTS)
		e = step_events(r, s, step);
	else
		step_exit(s, step);
	if (e)
		return e;
	if (!s->next)
		r->heap[0] = r->heap[--r->heap_count];
	if (r->heap_count)
		sift_down(r, 0);
	return 1;
}

double reader_progress(const struct reader *r)
{
	double done = 0, all = 0;
	for (size_t i = 0; i < r->image_count; i++) {
		const struct source *s = &r->sources[i];
		double weight = (double)s->image->trace.count + (double)s->image->raw.count / 16 + 0.01;
		all += weight;
		done += weight * (!s->next ? 1 : s->stream ? stream_progress(s->stream) : 0);
	}
	return all > 0 ? done / all : 1;
}
