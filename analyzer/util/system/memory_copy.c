#include "analyzer/util/system/memory_copy.h"

#include "analyzer/util/search.h"

#include <stdlib.h>
#include <sys/mman.h>

void memory_copy_unmap(struct memory_copy *c)
{
	if (c->memory)
		munmap(c->memory, c->memory_bytes);
	c->memory = NULL;
	c->memory_bytes = 0;
}

void memory_copy_free(struct memory_copy *c)
{
	memory_copy_unmap(c);
	free(c->ranges);
	free(c->threads);
	*c = (struct memory_copy){ 0 };
}

const uint64_t *memory_copy_at(const struct memory_copy *c, uint64_t at, size_t *words)
{
	const size_t next = SEARCH_FIRST(i, c->count, c->ranges[i].start > at);
	const struct copy_range *r = next ? &c->ranges[next - 1] : NULL;
	if (!r || r->kind == COPY_WORDS || at >= r->end)
		return NULL;
	*words = (r->end - at) / 8;
	return memory_copy_words(c, r) + (at - r->start) / 8;
}
