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

/* The rules worth comparing with a text that begins so, in order; ends with RULES. */
static const uint16_t *rules_for(unsigned char first)
{
	static uint16_t lists[256][RULES + 1];
	static bool made[256];
	uint16_t *list = lists[first];
	if (!made[first]) {
		size_t n = 0;
		for (size_t i = 0; i < RULES; i++)
			if ((unsigned char)*rules[i].pattern == first || *rules[i].pattern == '*')
				list[n++] = (uint16_t)i;
		list[n] = RULES;
		made[first] = true;
	}
	return list;
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
	for (const uint16_t *n = text ? rules_for((unsigned char)*text) : NULL; n && *n < RULES; n++) {
		const struct rule *r = &rules[*n];
		if ((r->what == LIBRARY) == !f->name && (r->what != PYTHON || python) &&
		    pattern_matches(r->pattern, text))
			return r->class;
	}
	return FRAME_PLAIN;
}
