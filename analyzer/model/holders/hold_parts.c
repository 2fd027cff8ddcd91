#include "analyzer/model/holders/hold_parts.h"

#include <stdlib.h>

static int by_row(const void *a, const void *b)
{
	const struct hold_part *x = a, *y = b;
	if (x->row != y->row)
		return x->row < y->row ? -1 : 1;
	return x->site < y->site ? -1 : x->site > y->site;
}

size_t hold_parts_join(struct hold_part *parts, size_t count)
{
	size_t joined = 0;
	if (count)
		qsort(parts, count, sizeof(*parts), by_row);
	for (size_t i = 0; i < count; i++)
		if (joined && by_row(&parts[joined - 1], &parts[i]) == 0)
			parts[joined - 1].bytes += parts[i].bytes;
		else
			parts[joined++] = parts[i];
	return joined;
}
