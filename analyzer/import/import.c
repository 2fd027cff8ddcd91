#include "analyzer/import/import.h"

#include "analyzer/import/input.h"

#include <string.h>

/* By how it begins, decompressed. What is none of the others is taken for a pickle, which says what it is not. */
int import_file(const char *path, const char *dir, struct imported *out)
{
	struct input in;
	int e = input_open(&in, path);
	if (e == 0)
		e = input_fill(&in);
	const bool heaptrack = e > 0 && in.count > 2 && !memcmp(in.bytes, "v ", 2);
	input_close(&in);
	if (e < 0)
		return e;
	return heaptrack ? import_heaptrack(path, dir, out) : import_torch(path, dir, out);
}
