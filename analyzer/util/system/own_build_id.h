/* The build id of this program: the GNU note of its own file. */
#ifndef MT_UTIL_SYSTEM_OWN_BUILD_ID_H
#define MT_UTIL_SYSTEM_OWN_BUILD_ID_H

#include <stddef.h>

struct own_build_id {
	const unsigned char *bytes; /* borrowed from the mapped program; NULL = it has none */
	size_t count;
};

struct own_build_id own_build_id(void);

#endif
