/* What a frame is to whoever reads a stack: frame_rules.def. */
#include "analyzer/symbols/python_frames.h"
#include "analyzer/symbols/stacks.h"

#include <stdlib.h>
#include <string.h>

enum rule_what { FUNCTION, PYTHON, LIBRARY };

static const struct rule {
	enum frame_class class;
	enum rule_what what;
	const char *pattern;
} rules[] = {
#define RULE(class, what, pattern) { FRAME_##class, what, pattern },
#include "analyzer/symbols/frame_rules.def"
#undef RULE
};

bool pattern_matches(const char *pattern, const char *text)
{
	if (*pattern == '*')
		return strstr(text, pattern + 1) != NULL;
	while (*pattern && *pattern == *text)
		pattern++, text++;
	return *pattern == '*' || *pattern == *text;
}

enum { RULES = sizeof(rules) / sizeof(*rules) };

/* The rules worth comparing with a text that begins so, in order; ends with NULL. */
static const struct rule *const *rules_for(unsigned char first)
{
	static const struct rule **lists[256];
	if (!lists[first]) {
		size_t n = 0;
		const struct rule **list = calloc(RULES + 1, sizeof(*list));
		for (size_t i = 0; list && i < RULES; i++)
			if ((unsigned char)*rules[i].pattern == first || *rules[i].pattern == '*')
				list[n++] = &rules[i];
		lists[first] = list;
	}
	return lists[first];
}

enum frame_class frame_classify(const struct frame *f)
{
	if (python_thread(f))
		return FRAME_PLAIN;
	if (python_is_frame(f))
		return python_is_plumbing(f) ? FRAME_GLUE : FRAME_PLAIN;
	const char *slash = f->library ? strrchr(f->library, '/') : NULL;
	const char *library = slash ? slash + 1 : f->library;
	const bool python = library && strstr(library, "python");
	const char *text = f->name ? f->name : library;
	const struct rule *const *r = text ? rules_for((unsigned char)*text) : NULL;
	for (; r && *r; r++)
		if (((*r)->what == LIBRARY) == !f->name && ((*r)->what != PYTHON || python) &&
		    pattern_matches((*r)->pattern, text))
			return (*r)->class;
	return FRAME_PLAIN;
}
