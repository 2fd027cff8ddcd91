#include "analyzer/diagnosis/growth/suppressions.h"

#include "analyzer/util/vec.h"

#include <stdio.h>

struct suppress {
	char **patterns;
	size_t count, room;
};

/* `text` has the pattern's length or more at this place; `*` is any text. */
static bool matches_here(const char *pattern, const char *text)
{
	for (; *pattern && *pattern != '*'; pattern++, text++) {
		if (*pattern == '$' && !pattern[1])
			return !*text;
		if (*pattern != *text)
			return false;
	}
	if (!*pattern)
		return true;
	while (*pattern == '*')
		pattern++;
	if (!*pattern)
		return true;
	for (;; text++) {
		if (matches_here(pattern, text))
			return true;
		if (!*text)
			return false;
	}
}

static bool matches(const char *pattern, const char *name)
{
	if (*pattern == '^')
		return matches_here(pattern + 1, name);
	for (;; name++) {
		if (matches_here(pattern, name))
			return true;
		if (!*name)
			return false;
	}
}

static int take_line(struct suppress *s, const char *path, char *line, int number)
{
	while (*line == ' ' || *line == '\t')
		line++;
	line[strcspn(line, "\r\n")] = '\0';
	char *colon = strchr(line, ':');
	if (!*line || *line == '#')
		return 0;
	if (!colon || !colon[1])
		return error_set(MT_EUSAGE, path, ERROR_NO_OFFSET, "line %d: not like leak:PATTERN", number);
	if (strncmp(line, "leak:", 5) != 0)
		return 0;
	int e = vec_reserve(s->patterns, s->room, s->count + 1);
	if (e == 0 && !(s->patterns[s->count] = strdup(colon + 1)))
		e = error_memory();
	s->count += e == 0;
	return e;
}

int suppressions_read(struct suppress **out, const char *path)
{
	char *line = NULL;
	size_t room = 0;
	int number = 0, e = 0;
	FILE *f = fopen(path, "re");
	struct suppress *s = *out = calloc(1, sizeof(*s));
	if (!f)
		e = error_errno(MT_EIO, path, ERROR_NO_OFFSET);
	else if (!s)
		e = error_memory();
	while (e == 0 && getline(&line, &room, f) > 0)
		e = take_line(s, path, line, ++number);
	free(line);
	if (f)
		fclose(f);
	if (e < 0) {
		suppressions_free(s);
		*out = NULL;
	}
	return e;
}

void suppressions_free(struct suppress *s)
{
	for (size_t i = 0; s && i < s->count; i++)
		free(s->patterns[i]);
	if (s)
		free(s->patterns);
	free(s);
}

static bool frame_matches(const char *pattern, const struct frame *f)
{
	return (f->function && matches(pattern, f->function)) || (f->name && matches(pattern, f->name)) ||
	       (f->file && matches(pattern, f->file)) || (f->library && matches(pattern, f->library));
}

const char *suppressions_find(const struct suppress *s, struct stacks *stacks, uint32_t stack)
{
	if (!s || !s->count)
		return NULL;
	for (struct stack_walk w = { .next = stack }; stack_step(stacks, &w);)
		for (size_t i = 0; i < s->count; i++)
			if (frame_matches(s->patterns[i], w.frame))
				return s->patterns[i];
	return NULL;
}
