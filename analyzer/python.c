#include "analyzer/python.h"

#include "analyzer/pylines.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

static const char python_language[] = "python", thread_language[] = "thread", thread_word[] = "thread ";

struct string {
	UT_hash_handle hh;
	char text[];
};

/* Strings are interned, so their addresses do. */
struct place {
	const char *function, *file;
	uint64_t line;
};

struct known {
	UT_hash_handle hh;
	struct place place;
	struct frame frame;
};

struct python {
	struct string *strings;
	struct known *frames;
};

struct python *python_new(void)
{
	return calloc(1, sizeof(struct python));
}

void python_free(struct python *py)
{
	struct string *string, *next_string;
	struct known *known, *next;
	if (!py)
		return;
	HASH_ITER(hh, py->frames, known, next) {
		HASH_DEL(py->frames, known);
		free(known);
	}
	HASH_ITER(hh, py->strings, string, next_string) {
		HASH_DEL(py->strings, string);
		free(string);
	}
	free(py);
}

/* One address for each pair of texts, where the first is to be read. Names of functions are told apart by their files:
 * many are called "forward" or "<module>". */
static const char *intern(struct python *py, const char *text, const char *apart)
{
	size_t n = strlen(text), more = strlen(apart);
	struct string *found, *new = malloc(sizeof(*new) + n + more + 2);
	if (!new)
		return NULL;
	memcpy(new->text, text, n + 1);
	memcpy(new->text + n + 1, apart, more + 1);
	HASH_FIND(hh, py->strings, new->text, n + more + 2, found);
	if (found) {
		free(new);
		return found->text;
	}
	HASH_ADD_KEYPTR(hh, py->strings, new->text, n + more + 2, new);
	return new->text;
}

/* "outer.<locals>.inner" becomes "outer.inner". */
static const char *short_name(struct python *py, const char *name)
{
	static const char mark[] = ".<locals>";
	char *copy = strdup(name);
	const char *result = NULL;
	if (!copy)
		return NULL;
	for (char *at; (at = strstr(copy, mark)) != NULL; )
		memmove(at, at + sizeof(mark) - 1, strlen(at + sizeof(mark) - 1) + 1);
	result = intern(py, copy, "");
	free(copy);
	return result;
}

static const struct frame *frame_at(struct python *py, struct place place, const char *language)
{
	struct known *known;
	HASH_FIND(hh, py->frames, &place, sizeof(place), known);
	if (known)
		return &known->frame;
	known = calloc(1, sizeof(*known));
	if (!known)
		return NULL;
	known->place = place;
	known->frame = (struct frame){
		.function = place.function,
		.name = short_name(py, place.function),
		.file = place.file,
		.line = (uint32_t)place.line,
		.language = language,
	};
	HASH_ADD(hh, py->frames, place, sizeof(place), known);
	return &known->frame;
}

static const struct frame *thread_frame(struct python *py, const struct process *p, uint32_t index)
{
	const struct process_thread *t = process_thread(p, index);
	struct place place;
	char text[64];
	memset(&place, 0, sizeof(place));
	snprintf(text, sizeof(text), "%s%s", thread_word, t && *t->name ? t->name : p->name);
	place.function = intern(py, text, "");
	return place.function ? frame_at(py, place, thread_language) : NULL;
}

static const struct frame *code_frame(struct python *py, const struct process *p, uint64_t pc)
{
	static const struct process_code lost = { .file = "?", .name = "?" };
	const struct process_code *code = process_code(p, MT_PY_CODE(pc));
	struct place place;
	if (!code)
		code = &lost;
	memset(&place, 0, sizeof(place));
	place.function = intern(py, code->name, code->file);
	place.file = intern(py, code->file, "");
	place.line = pylines_find(code, MT_PY_OFFSET(pc));
	if (!place.line)
		place.line = code->first_line;
	return place.function && place.file ? frame_at(py, place, python_language) : NULL;
}

const struct frame *python_frame(struct python *py, const struct process *p, uint64_t pc)
{
	if (MT_PY_CODE(pc))
		return code_frame(py, p, pc);
	return pc & MT_PY_ENTRY ? NULL : thread_frame(py, p, MT_PY_OFFSET(pc));
}

bool python_is_frame(const struct frame *f)
{
	return f->language == python_language;
}

const char *python_thread(const struct frame *f)
{
	return f->language == thread_language ? f->function + sizeof(thread_word) - 1 : NULL;
}

bool python_is_evaluator(const struct frame *frames, size_t count)
{
	static const char evaluator[] = "_PyEval_EvalFrameDefault";
	for (size_t i = 0; i < count; i++)
		if (frames[i].name && strncmp(frames[i].name, evaluator, sizeof(evaluator) - 1) == 0)
			return true;
	return false;
}

bool python_is_library(const char *file)
{
	static const char *const folders[] = { "/site-packages/", "/dist-packages/", "/lib/python3", "/lib64/python3" };
	if (*file == '<' || *file == '?')
		return true;
	for (size_t i = 0; i < sizeof(folders) / sizeof(*folders); i++)
		if (strstr(file, folders[i]))
			return true;
	return false;
}

bool python_is_plumbing(const struct frame *f)
{
	static const struct { const char *file, *function; } plumbing[] = {
		{ "<frozen importlib._bootstrap", "" }, { "<frozen runpy>", "" }, { "/runpy.py", "_run_" },
		{ "/threading.py", "Thread._bootstrap" }, { "/threading.py", "_bootstrap" }, { "/threading.py", "Thread.run" },
		{ "/threading.py", "run" },
	};
	for (size_t i = 0; i < sizeof(plumbing) / sizeof(*plumbing); i++)
		if (strstr(f->file, plumbing[i].file) &&
		    !strncmp(f->function, plumbing[i].function, strlen(plumbing[i].function)))
			return true;
	return false;
}
