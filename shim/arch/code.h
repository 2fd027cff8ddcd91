/* Machine code, for functions without unwind tables. See registers.h. */
#ifndef MT_ARCH_CODE_H
#define MT_ARCH_CODE_H

#include <stdbool.h>
#include <stdint.h>

#if defined(__x86_64__)
#include "shim/arch/x86_64/code.h"
#elif defined(__aarch64__)
#include "shim/arch/aarch64/code.h"
#endif

#endif
