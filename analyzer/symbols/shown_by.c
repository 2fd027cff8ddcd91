#include "analyzer/symbols/shown_by.h"

#include "analyzer/symbols/python_frames.h"

struct row {
	const char *pattern, *setting;
};

static const struct row workers[] = {
#define WORKER(pattern, setting) { pattern, setting },
#include "analyzer/symbols/shown_by.def"
#undef WORKER
	{ 0 }
};

static const struct row allocators[] = {
#define ALLOCATOR(pattern, setting) { pattern, setting },
#include "analyzer/symbols/shown_by.def"
#undef ALLOCATOR
	{ 0 }
};

static const struct tool tools[] = {
#define TOOL(name, native, python, advice) { name, native, python, advice },
#include "analyzer/symbols/shown_by.def"
#undef TOOL
	{ 0 }
};

/* `text` may be NULL. */
static const char *find(const struct row *row, const char *text)
{
	while (row->pattern && !(text && pattern_matches(row->pattern, text)))
		row++;
	return row->setting;
}

const char *worker_setting(struct stacks *s, uint32_t stack)
{
	const char *setting = NULL;
	for (struct stack_walk w = { .next = stack }; stack_step(s, &w);) {
		if (python_is_frame(w.frame))
			return NULL;
		setting = setting ? setting : find(workers, w.frame->name);
	}
	return setting;
}

const char *allocator_setting(const char *library)
{
	return find(allocators, library);
}

static bool is_like(const char *pattern, const char *text)
{
	return pattern && text && pattern_matches(pattern, text);
}

const struct tool *tool_of(struct stacks *s, uint32_t stack)
{
	bool python = false;
	for (struct stack_walk w = { .next = stack }; !python && stack_step(s, &w);) {
		python = python_is_frame(w.frame);
		for (const struct tool *t = tools; t->name; t++)
			if (python ? is_like(t->python, w.frame->file) : is_like(t->native, w.frame->name))
				return t;
	}
	return NULL;
}
