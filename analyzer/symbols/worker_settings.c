#include "analyzer/symbols/worker_settings.h"

#include "analyzer/symbols/python_frames.h"

static const struct worker {
	const char *pattern, *setting;
} workers[] = {
#define WORKER(pattern, setting) { pattern, setting },
#include "analyzer/symbols/worker_settings.def"
#undef WORKER
};

static const char *setting_of(const struct frame *f)
{
	for (size_t i = 0; f->name && i < sizeof(workers) / sizeof(*workers); i++)
		if (pattern_matches(workers[i].pattern, f->name))
			return workers[i].setting;
	return NULL;
}

const char *worker_setting(struct stacks *s, uint32_t stack)
{
	const char *setting = NULL;
	for (struct stack_walk w = { .next = stack }; stack_step(s, &w);) {
		if (python_is_frame(w.frame))
			return NULL;
		setting = setting ? setting : setting_of(w.frame);
	}
	return setting;
}
