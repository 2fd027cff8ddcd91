/* Declares every function of the hook table a second time, after Level Zero's header: the compiler complains of each that differs, and
 * -Wredundant-decls names those that the header has. */
#define MT_ZE_VENDOR
#include "shim/device/ze_abi.h"

#define HAND(name, params, args) extern ze_result_t name params;
#include "shim/hooks/hooks_ze.def"
