/* Declares every function of the hook table a second time, after NVIDIA's headers: the compiler complains of each that differs, and
 * -Wredundant-decls names those that the headers have. */
#define MT_CUDA_VENDOR
#include "shim/device/cuda_abi.h"

typedef CUresult status_CUDA;
typedef cudaError_t status_CUDART;
#define HAND(library, name, params, args) extern status_##library name params;
#include "shim/hooks/hooks_cuda.def"
