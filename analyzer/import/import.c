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
	const bool memray = e > 0 && in.count > 7 && !memcmp(in.bytes, "memray", 7);
	const bool pprof = e > 0 && (*in.bytes == 0x0a || *in.bytes == 0x32); /* a sample's type, or a text */
	input_close(&in);
	if (e < 0)
		return e;
	return heaptrack ? import_heaptrack(path, dir, out)
	       : memray  ? import_memray(path, dir, out)
	       : pprof   ? import_pprof(path, dir, out)
			 : import_torch(path, dir, out);
}
