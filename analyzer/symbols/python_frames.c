#include "analyzer/symbols/python_frames.h"

#include "analyzer/symbols/python_lines.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

static const char python_language[] = "python", thread_language[] = "thread", thread_word[] = "thread ";

/* Behind the function of such a thread's frame (see intern()). */
static const char unnamed_mark[] = "unnamed";
static const char beside_words[] = ", main was at ";

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

/* What a file of code is called: by the process's pointer to its name. */
struct called {
	UT_hash_handle hh;
	const char *raw, *name;
};

struct python {
	struct string *strings;
	struct known *frames;
	struct called *files;
};

struct python *python_new(void)
{
	return calloc(1, sizeof(struct python));
}

void python_free(struct python *py)
{
	struct string *string, *next_string;
	struct known *known, *next;
	struct called *called, *next_called;
	if (!py)
		return;
	HASH_ITER(hh, py->files, called, next_called)
	{
		HASH_DEL(py->files, called);
		free(called);
	}
	HASH_ITER(hh, py->frames, known, next)
	{
		HASH_DEL(py->frames, known);
		free(known);
	}
	HASH_ITER(hh, py->strings, string, next_string)
	{
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
	for (char *at; (at = strstr(copy, mark)) != NULL;)
		memmove(at, at + sizeof(mark) - 1, strlen(at + sizeof(mark) - 1) + 1);
	result = intern(py, copy, "");
	free(copy);
	return result;
}

/* `name`: NULL = the function's. */
static const struct frame *frame_at(struct python *py, struct place place, const char *name, const char *language)
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
		.name = name ? name : short_name(py, place.function),
		.file = place.file,
		.line = (uint32_t)place.line,
		.language = language,
	};
	HASH_ADD(hh, py->frames, place, sizeof(place), known);
	return &known->frame;
}

/* "In [7]" of a cell's file, as its author sees it; else the file. */
static const char *file_name(struct python *py, const struct process *p, const char *file)
{
	struct called *called;
	char cell[PROCESS_CELL_NAME];
	HASH_FIND_PTR(py->files, &file, called);
	if (called)
		return called->name;
	const char *name = process_cell(p, file, cell) ? intern(py, cell, file) /* not that of another kernel */
						       : intern(py, file, "");
	called = calloc(1, sizeof(*called));
	if (called) {
		*called = (struct called){ .raw = file, .name = name };
		HASH_ADD_PTR(py->files, raw, called);
	}
	return name;
}

static uint32_t line_of(const struct process_code *code, uint64_t pc)
{
	uint32_t line = python_lines_find(code, MT_PY_OFFSET(pc));
	return line ? line : code->first_line;
}

/* Of a stack of Python: its innermost line of the program itself, else of a library; NULL: it has none. */
static const struct process_code *telling_code(const struct process *p, uint32_t node, uint64_t *pc)
{
	const struct process_code *innermost = NULL;
	for (const struct mt_node *n; node && (n = process_node(p, node)) != NULL; node = n->parent) {
		const struct process_code *code = n->flags & MT_NODE_PYTHON ? process_code(p, MT_PY_CODE(n->pc)) : NULL;
		bool own = code && !python_is_library(code->file);
		if (!code || (innermost && !own))
			continue;
		innermost = code;
		*pc = n->pc;
		if (own)
			break;
	}
	return innermost;
}

/* Threads that nobody gave a name have the first one's. */
static bool is_unnamed(const struct process *p, const struct process_thread *t)
{
	const struct process_thread *first = process_thread(p, 0);
	return !t || !*t->name || (first && !strcmp(first->name, t->name));
}

/* As python_thread_role() would have it. */
static const struct frame *thread_at(struct python *py, struct place place, const char *role, const char *beside)
{
	char text[512];
	snprintf(text, sizeof(text), "%s%s%s", role, beside ? beside_words : "", beside ? beside : "");
	return frame_at(py, place, intern(py, text, ""), thread_language);
}

static const struct frame *thread_frame(struct python *py, const struct process *p, uint64_t pc)
{
	const struct process_thread *t = process_thread(p, MT_PY_OFFSET(pc));
	uint64_t main_pc = 0;
	const struct process_code *code = telling_code(p, MT_PY_MAIN(pc), &main_pc);
	const char *beside = code ? short_name(py, code->name) : NULL;
	struct place place;
	char text[64];
	memset(&place, 0, sizeof(place));
	snprintf(text, sizeof(text), "%s%s", thread_word, t && *t->name ? t->name : p->name);
	place.function = intern(py, text, is_unnamed(p, t) ? unnamed_mark : "");
	place.file = code ? file_name(py, p, code->file) : NULL;
	place.line = code ? line_of(code, main_pc) : 0;
	return place.function ? thread_at(py, place, place.function, beside) : NULL;
}

/* "PThread::ThreadFn" of "tsl::(anon)::PThread::ThreadFn". */
static const char *last_two_words(const char *name)
{
	const char *words[2] = { name, name };
	for (const char *at = name; (at = strstr(at, "::")) != NULL; at += 2) {
		words[0] = words[1];
		words[1] = at + 2;
	}
	return words[0];
}

const struct frame *python_thread_role(struct python *py, const struct frame *thread, const struct frame *start)
{
	const char *end = thread->function + strlen(thread->function) + 1, *beside = strstr(thread->name, beside_words);
	char text[256];
	if (strcmp(end, unnamed_mark) || !start || !start->name)
		return thread;
	struct place place;
	memset(&place, 0, sizeof(place));
	snprintf(text, sizeof(text), "%sof %s", thread_word, last_two_words(start->name));
	place.function = intern(py, text, "");
	place.file = thread->file;
	place.line = thread->line;
	return place.function ? thread_at(py, place, place.function, beside ? beside + sizeof(beside_words) - 1 : NULL)
			      : thread;
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
	place.file = file_name(py, p, code->file);
	place.line = line_of(code, pc);
	return place.function && place.file ? frame_at(py, place, NULL, python_language) : NULL;
}

const struct frame *python_frame(struct python *py, const struct process *p, uint64_t pc)
{
	if (MT_PY_CODE(pc))
		return code_frame(py, p, pc);
	return pc & MT_PY_ENTRY ? NULL : thread_frame(py, p, pc);
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
	static const char *const folders[] = { "/site-packages/", "/dist-packages/", "/lib/python3", "/lib64/python3",
					       "/libmemtrace/",   "/bin/ipython",    "/bin/jupyter" };
	if (!strcmp(file, "<stdin>") || !strncmp(file, "<ipython-input-", 15)) /* typed in, at a prompt or in a cell */
		return false;
	if (*file == '<' || *file == '?')
		return true;
	for (size_t i = 0; i < sizeof(folders) / sizeof(*folders); i++)
		if (strstr(file, folders[i]))
			return true;
	return false;
}

bool python_is_plumbing(const struct frame *f)
{
	static const struct {
		const char *file, *function; /* the file's name has it, the function's begins so, without its class */
	} plumbing[] = {
		{ "<frozen importlib._bootstrap", "" },
		{ "<frozen runpy>", "" },
		{ "/runpy.py", "_run_" },
		{ "/threading.py", "_bootstrap" },
		{ "/threading.py", "run" },
		{ "/asyncio/events.py", "_run" },
		{ "/asyncio/base_events.py", "run_" },
		{ "/asyncio/base_events.py", "_run_once" },
		{ "/asyncio/runners.py", "run" },
		{ "/tornado/platform/asyncio.py", "start" },
		{ "/traitlets/config/application.py", "launch_instance" },
		/* from the start of IPython or a kernel to a cell */
		{ "/IPython/__init__.py", "start_ipython" },
		{ "/IPython/core/async_helpers.py", "_pseudo_sync_runner" },
		{ "/IPython/core/interactiveshell.py", "run_" },
		{ "/IPython/core/interactiveshell.py", "_run_" },
		{ "/IPython/terminal/interactiveshell.py", "interact" },
		{ "/IPython/terminal/interactiveshell.py", "mainloop" },
		{ "/IPython/terminal/ipapp.py", "start" },
		{ "/ipykernel/ipkernel.py", "do_execute" },
		{ "/ipykernel/ipkernel.py", "execute_request" },
		{ "/ipykernel/ipkernel.py", "run_cell" },
		{ "/ipykernel/kernelapp.py", "start" },
		{ "/ipykernel/kernelbase.py", "dispatch_" },
		{ "/ipykernel/kernelbase.py", "execute_request" },
		{ "/ipykernel/kernelbase.py", "process_one" },
		{ "/ipykernel/kernelbase.py", "shell_main" },
		{ "/ipykernel/zmqshell.py", "run_cell" },
		{ "/ipykernel_launcher.py", "<module>" },
		{ "/libmemtrace/notebook.py", "memtrace" },
		{ "/libmemtrace/notebook.py", "_run" },
	};
	const char *point = strrchr(f->function, '.'), *function = point && point[1] ? point + 1 : f->function;
	for (size_t i = 0; i < sizeof(plumbing) / sizeof(*plumbing); i++)
		if (strstr(f->file, plumbing[i].file) &&
		    !strncmp(function, plumbing[i].function, strlen(plumbing[i].function)))
			return true;
	return false;
}
