/* Lines of source around those of frames: of files below the working directory; where it is asked for, of others, too,
 * the program's own first. */
#include "analyzer/report/json/json.h"
#include "analyzer/report/page/page_internal.h"
#include "analyzer/symbols/python_frames.h"
#include "analyzer/util/vec.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PAGE_MOST_SOURCE = 4 << 20, MOST_LINE = 300, AROUND = 2, PAGE_MOST_LINES = 3000 };

struct place {
	const char *file;
	uint32_t line;
};

struct places {
	struct place *list;
	size_t count, room;
};

static void add_place(void *arg, const char *file, uint32_t line)
{
	struct places *p = arg;
	if (vec_reserve(p->list, p->room, p->count + 1) == 0)
		p->list[p->count++] = (struct place){ file, line };
}

static int by_file(const void *a, const void *b)
{
	const struct place *x = a, *y = b;
	int order = strcmp(x->file, y->file);
	return order ? order : (x->line > y->line) - (x->line < y->line);
}

/* Without what a link may lead to. */
static bool is_below(const char *file, const char *folder)
{
	char *real = realpath(file, NULL);
	size_t length = strlen(folder);
	bool below = real && !strncmp(real, folder, length) && (real[length] == '/' || !strcmp(folder, "/"));
	free(real);
	return below;
}

/* A trace is foreign: it names files, and what is read of them goes into the page. */
static char *read_source(const char *file)
{
	struct stat st;
	int fd = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	char *text = NULL;
	if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size <= PAGE_MOST_SOURCE &&
	    (text = calloc(1, (size_t)st.st_size + 1)) && read(fd, text, (size_t)st.st_size) < 0) {
		free(text);
		text = NULL;
	}
	if (fd >= 0)
		close(fd);
	return text;
}

static void add_line(json_t *lines, uint32_t number, const char *from, size_t length)
{
	char key[16];
	char *text = strndup(from, length < MOST_LINE ? length : MOST_LINE);
	snprintf(key, sizeof(key), "%u", number);
	if (text)
		json_object_set_new(lines, key, json_text(text));
	free(text);
}

/* The wanted places are sorted by line. */
static size_t add_lines(json_t *o, const struct place *wanted, size_t count, const char *text)
{
	json_t *lines = json_object();
	size_t next = 0, added = 0;
	uint32_t number = 1;
	for (const char *at = text; *at && next < count; number++) {
		size_t length = strcspn(at, "\n");
		while (next < count && wanted[next].line + AROUND < number)
			next++;
		if (next < count && wanted[next].line <= number + AROUND) {
			add_line(lines, number, at, length);
			added++;
		}
		at += length + (at[length] == '\n');
	}
	json_t *name = json_text(wanted->file);
	if (added && name)
		json_object_set(o, json_string_value(name), lines);
	json_decref(name);
	json_decref(lines);
	return added;
}

enum whose { BELOW_HERE, PROGRAMS, LIBRARIES };

static enum whose whose(const char *file, const char *here)
{
	return here && is_below(file, here) ? BELOW_HERE : python_is_library(file) ? LIBRARIES : PROGRAMS;
}

/* Of such files as far as there is room. Returns all lines so far. */
static size_t add_files(json_t *source, const struct places *p, const char *here, enum whose wanted, size_t added)
{
	for (size_t i = 0, same; i < p->count && added < PAGE_MOST_LINES; i += same) {
		for (same = 1; i + same < p->count && !strcmp(p->list[i + same].file, p->list[i].file);)
			same++;
		if (whose(p->list[i].file, here) != wanted)
			continue;
		char *text = read_source(p->list[i].file);
		if (text)
			added += add_lines(source, &p->list[i], same, text);
		free(text);
	}
	return added;
}

void page_source_json(json_t *o, const struct page_tree *t, enum page_source which)
{
	struct places p = { 0 };
	json_t *source = json_object();
	char *here = realpath(".", NULL);
	size_t added = 0;
	if (which != PAGE_SOURCE_NONE)
		page_tree_each_line(t, add_place, &p);
	if (p.count)
		qsort(p.list, p.count, sizeof(*p.list), by_file);
	for (enum whose w = BELOW_HERE; w <= (which == PAGE_SOURCE_ALL ? LIBRARIES : BELOW_HERE); w++)
		added = add_files(source, &p, here, w, added);
	json_object_set_new(o, "source", source);
	free(here);
	free(p.list);
}
