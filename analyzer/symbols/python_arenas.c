#include "analyzer/symbols/python_arenas.h"

#include "analyzer/symbols/builtin_suppressions.h"
#include "analyzer/symbols/python_frames.h"

#include <stdlib.h>
#include <string.h>

#define NEW_ARENA (1u << 20)
#define OLD_ARENA (256u << 10)

enum { FRAMES = 3 };

static const char of_program[] = PYTHON_ARENAS_LABEL, of_imports[] = PYTHON_ARENAS_LABEL ", mapped by imports";

static bool begins(const char *text, const char *with)
{
	return text && !strncmp(text, with, strlen(with));
}

static bool is_interpreter(const char *library)
{
	const char *slash = library ? strrchr(library, '/') : NULL, *name = slash ? slash + 1 : library;
	return begins(name, "python") || begins(name, "libpython");
}

/* mmap.mmap() is a function of the interpreter, too, but Python code calls it. */
static bool is_call(const char *name)
{
	static const char *const calls[] = { "_PyObject_MakeTpCall", "_PyObject_Call", "PyObject_Call",
					     "_PyObject_Vectorcall", "PyObject_Vectorcall" };
	for (size_t i = 0; name && i < sizeof(calls) / sizeof(*calls); i++)
		if (begins(name, calls[i]))
			return true;
	return false;
}

static bool is_arena_size(uint64_t bytes, uint64_t blocks)
{
	return blocks && (bytes == blocks * NEW_ARENA || bytes == blocks * OLD_ARENA);
}

bool python_arenas_is(struct stacks *s, uint32_t stack, uint64_t bytes, uint64_t blocks)
{
	const struct frame *inner[FRAMES] = { NULL };
	unsigned n = 0;
	for (struct stack_walk w = { .next = stack }; n < FRAMES && stack_step(s, &w);)
		if (!python_is_frame(w.frame))
			inner[n++] = w.frame;
	for (unsigned i = 0; i < n; i++)
		if (inner[i]->name && !strcmp(inner[i]->name, "_PyObject_ArenaMmap"))
			return true;
	return n == FRAMES && !inner[0]->name && !inner[1]->name && is_interpreter(inner[0]->library) &&
	       inner[1]->library == inner[0]->library && !is_call(inner[2]->name) && is_arena_size(bytes, blocks);
}

static bool imports(struct stacks *s, uint32_t stack)
{
	for (struct stack_walk w = { .next = stack }; stack_step(s, &w);)
		if (python_is_frame(w.frame) && begins(w.frame->file, "<frozen importlib"))
			return true;
	return builtin_suppressed_stack(s, stack) != NULL;
}

const char *python_arenas_label(struct stacks *s, uint32_t stack, uint64_t bytes, uint64_t blocks)
{
	return !python_arenas_is(s, stack, bytes, blocks) ? NULL : imports(s, stack) ? of_imports : of_program;
}

bool python_arenas_is_label(const char *label)
{
	return begins(label, of_program);
}
