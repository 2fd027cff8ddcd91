/* Declares every function of the hook table a second time, after AMD's headers: the compiler complains of each that differs, and
 * -Wredundant-decls names those that the headers have. */
#define MT_HIP_VENDOR
#include "shim/device/hip_abi.h"

/* what older headers don't have yet */
#if HIP_VERSION < 50500000
typedef struct hipMemAllocNodeParams hipMemAllocNodeParams;
#endif
#if HIP_VERSION < 60100000
typedef int hipDriverProcAddressQueryResult;
#endif
#if HIP_VERSION < 70100000
typedef int hipDriverEntryPointQueryResult;
#endif

#define HAND(since, name, params, args) extern hipError_t name params;
#include "shim/hooks/hooks_hip.def"
