/* The few functions of the maths libraries whose results PyTorch looks at; the rest are generated and return 0. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define API __attribute__((visibility("default")))
#define HANDLE(name) API int name(void **handle) { *handle = calloc(1, 256); return 0; }
#define END(name) API int name(void *handle) { free(handle); return 0; }

HANDLE(cublasCreate_v2)
HANDLE(cublasLtCreate)
HANDLE(cudnnCreate)
HANDLE(cusparseCreate)
HANDLE(cusolverDnCreate)
HANDLE(cublasLtMatmulPreferenceCreate)
END(cublasLtMatmulPreferenceDestroy)
END(cublasLtMatmulDescDestroy)
END(cublasLtMatrixLayoutDestroy)

API int cublasGetMathMode(void *handle, int *mode) { (void)handle; *mode = 0; return 0; }
API int cublasGetPointerMode_v2(void *handle, int *mode) { (void)handle; *mode = 0; return 0; }

API int cublasLtMatmulDescCreate(void **descriptor, int compute, int scale)
{
	(void)compute, (void)scale;
	*descriptor = calloc(1, 256);
	return 0;
}

API int cublasLtMatrixLayoutCreate(void **layout, int type, uint64_t rows, uint64_t columns, int64_t stride)
{
	(void)type, (void)rows, (void)columns, (void)stride;
	*layout = calloc(1, 256);
	return 0;
}

/* One algorithm, all zero. */
API int cublasLtMatmulAlgoGetHeuristic(void *handle, void *operation, void *a, void *b, void *c, void *d, void *preference, int wanted,
				       void *results, int *found)
{
	(void)handle, (void)operation, (void)a, (void)b, (void)c, (void)d, (void)preference, (void)wanted;
	memset(results, 0, 96);
	*found = 1;
	return 0;
}

API size_t cudnnGetVersion(void) { return 92000; }
API int ncclGetVersion(int *version) { *version = 22907; return 0; }
API const char *cudnnGetErrorString(int error) { (void)error; return "stand-in cuDNN"; }
API const char *ncclGetErrorString(int error) { (void)error; return "stand-in NCCL"; }
API const char *cublasGetStatusString(int error) { (void)error; return "stand-in cuBLAS"; }
API const char *cusparseGetErrorString(int error) { (void)error; return "stand-in cuSPARSE"; }
