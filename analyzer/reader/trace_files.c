/* Which files a trace consists of, for who copies it. */
#include "analyzer/reader/reader_internal.h"
#include "analyzer/util/error.h"
#include "analyzer/util/vec.h"

#include <stdio.h>

struct entry {
	const struct session *session;
	char name[40];
	struct file *file;
};

struct entries {
	struct entry *list;
	size_t count, room;
};

static int add(struct entries *l, const struct session *s, const char *image, const char *name, struct file *file)
{
	if (!file->path || (file->fd < 0 && !file->size))
		return 0;
	int e = vec_reserve(l->list, l->room, l->count + 1);
	if (e)
		return e;
	struct entry *entry = &l->list[l->count++];
	*entry = (struct entry){ .session = s, .file = file };
	snprintf(entry->name, sizeof(entry->name), "%s%s", image, name);
	return 0;
}

/* Opened for this alone. */
static int add_holders(struct entries *l, struct image *im, struct file *file)
{
	char name[64];
	snprintf(name, sizeof(name), "%s.holders", im->name);
	int e = file_open(file, im->session->dir, name);
	if (!e && file_is_open(file)) {
		e = add(l, im->session, im->name, ".holders", file);
		file_suspend(file);
	}
	return e;
}

static int add_image(struct entries *l, struct image *im)
{
	const struct session *s = im->session;
	int e = add(l, s, im->name, ".info", &im->info_file);
	e = e ? e : add(l, s, im->name, ".nodes", &im->node_file);
	e = e ? e : add(l, s, im->name, ".ring", &im->raw.file);
	e = e ? e : add(l, s, im->name, ".young", &im->young_file);
	return e ? e : add(l, s, im->name, ".trace", &im->trace.file);
}

static int compare(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;
	return x->session != y->session ? x->session < y->session ? -1 : 1 : strcmp(x->name, y->name);
}

static int show(struct entry *entry, reader_file_seen *seen, void *context)
{
	int e = file_resume(entry->file);
	if (!e)
		e = file_refresh(entry->file);
	if (!e)
		e = seen(context, entry->name, entry->file);
	if (entry->file != &entry->session->file)
		file_suspend(entry->file);
	return e;
}

/* Those that the reader's other parts open for themselves. */
static int add_more(struct entries *l, const struct session *s, struct file more[2])
{
	static const char *const names[] = { "samples", "samples.open" };
	int e = 0;
	for (int i = 0; !e && i < 2; i++) {
		e = file_open(&more[i], s->dir, names[i]);
		if (!e && file_is_open(&more[i]))
			e = add(l, s, "", names[i], &more[i]);
	}
	return e;
}

int reader_files(struct reader *r, reader_file_seen *seen, void *context)
{
	struct entries l = { 0 };
	size_t opened = 2 * r->session_count + r->image_count;
	struct file *more = calloc(opened + 1, sizeof(*more));
	int e = more ? 0 : error_memory();
	for (size_t i = 0; more && i < opened; i++)
		more[i] = FILE_CLOSED;
	for (size_t i = 0; !e && i < r->session_count; i++) {
		e = add(&l, &r->sessions[i], "", "session", &r->sessions[i].file);
		e = e ? e : add_more(&l, &r->sessions[i], &more[2 * i]);
	}
	for (size_t i = 0; !e && i < r->image_count; i++) {
		e = add_image(&l, r->images[i]);
		e = e ? e : add_holders(&l, r->images[i], &more[2 * r->session_count + i]);
	}
	if (!e && l.count)
		qsort(l.list, l.count, sizeof(*l.list), compare);
	for (size_t i = 0; !e && i < l.count; i++)
		e = show(&l.list[i], seen, context);
	for (size_t i = 0; more && i < opened; i++)
		file_close(&more[i]);
	free(more);
	free(l.list);
	return e;
}

const struct process *reader_recording(const struct reader *r)
{
	for (size_t i = 0; i < r->image_count; i++) {
		const struct image *im = r->images[i];
		bool raw = im->info_file.size != 0;
		if (im->process.state == PROCESS_RUNNING || (im->session->recorder && raw))
			return &im->process;
	}
	return NULL;
}
