/* libacl_rt.so of the layered stand-in: every function goes to its twin in libruntime.so. */
#include "standin.h"

#define FN(name, params, args)                      \
	int name##Impl params;                      \
	EXPORT int name params { return name##Impl args; }
#include "functions.def"

EXPORT const char *aclrtGetSocName(void)
{
	return "Ascend910B2";
}
