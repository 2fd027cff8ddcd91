#include "analyzer/symbols/builtin_suppressions.h"

#include "analyzer/symbols/python_frames.h"

enum builtin_suppressed_what { BENIGN_NATIVE, BENIGN_PYTHON, BENIGN_ALONE };

static const struct benign {
	enum builtin_suppressed_what what;
	const char *pattern, *why;
} benign[] = {
#define BENIGN(what, pattern, why) { BENIGN_##what, pattern, why },
#include "analyzer/symbols/builtin_suppressions.def"
#undef BENIGN
};

static const char *why_of(enum builtin_suppressed_what what, const char *text)
{
	for (size_t i = 0; text && i < sizeof(benign) / sizeof(*benign); i++)
		if (benign[i].what == what && pattern_matches(benign[i].pattern, text))
			return benign[i].why;
	return NULL;
}

static const void *ask_native(void *arg, const struct frame *f)
{
	(void)arg;
	return why_of(BENIGN_NATIVE, f->name);
}

static const void *ask_alone(void *arg, const struct frame *f)
{
	(void)arg;
	return why_of(BENIGN_ALONE, f->name);
}

static const char own[] = "the program's own";

static const void *ask_python(void *arg, const struct frame *f)
{
	(void)arg;
	if (!python_is_frame(f))
		return NULL;
	const char *why = why_of(BENIGN_PYTHON, f->file);
	return why || python_is_library(f->file) ? why : own;
}

static const char *ask_imports(struct stacks *s, uint32_t stack)
{
	return stacks_ask(s, stack, MEMO_BENIGN_PYTHON, PART_PYTHON, ask_python, NULL);
}

const char *builtin_suppressed_import(struct stacks *s, uint32_t stack)
{
	const char *why = ask_imports(s, stack);
	return why != own ? why : NULL;
}

/* From the inside: native frames up to the interpreter, Python's, and then the native ones around it; where no Python
 * ran, also what led there. */
const char *builtin_suppressed_stack(struct stacks *s, uint32_t stack)
{
	const char *why = stacks_ask(s, stack, MEMO_BENIGN_INNER, PART_INNER, ask_native, NULL);
	if (!why)
		why = ask_imports(s, stack);
	if (!why)
		why = stacks_ask(s, stack, MEMO_BENIGN, PART_NATIVE, ask_native, NULL);
	if (!why)
		why = stacks_ask(s, stack, MEMO_BENIGN_ALONE, PART_ALONE, ask_alone, NULL);
	return why && *why && why != own ? why : NULL;
}
