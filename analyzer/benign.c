#include "analyzer/benign.h"

static const struct benign {
	const char *pattern, *why;
} benign[] = {
#define BENIGN(pattern, why) { pattern, why },
#include "analyzer/benign.def"
#undef BENIGN
};

static const void *benign_frame(void *arg, const struct frame *f)
{
	(void)arg;
	for (size_t i = 0; f->name && i < sizeof(benign) / sizeof(*benign); i++)
		if (pattern_matches(benign[i].pattern, f->name))
			return benign[i].why;
	return NULL;
}

const char *benign_stack(struct stacks *s, uint32_t stack)
{
	return stacks_ask(s, stack, MEMO_BENIGN, PART_NATIVE, benign_frame, NULL);
}
