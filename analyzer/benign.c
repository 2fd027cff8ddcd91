#include "analyzer/benign.h"

static const struct benign {
	const char *pattern, *why;
} benign[] = {
#define BENIGN(pattern, why) { pattern, why },
#include "analyzer/benign.def"
#undef BENIGN
};

static const char *benign_frame(const struct frame *f)
{
	for (size_t i = 0; f->name && i < sizeof(benign) / sizeof(*benign); i++)
		if (pattern_matches(benign[i].pattern, f->name))
			return benign[i].why;
	return NULL;
}

const char *benign_stack(struct stacks *s, uint32_t stack)
{
	const char *why = NULL;
	for (struct stack_walk w = { .next = stack }; !why && stack_step(s, &w); )
		why = benign_frame(w.frame);
	return why;
}
