/* Python code objects by address: each is recorded once in the log, and known by an id from then on. */
#ifndef MT_PYCODE_H
#define MT_PYCODE_H

#include <stdint.h>

#include "shim/pyfind.h"

/* Id of the code object at `code`, whose `stamp` tells it from others that lived or will live there. 0 if it is no
 * code object or no more can be recorded. Async-signal-safe. */
uint32_t mt_pycode_id(const struct mt_pyruntime *rt, uintptr_t code, uint32_t stamp);

#endif
