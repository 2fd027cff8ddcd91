/* Of libascendcl.so, what torch_npu needs to believe that there is a device: handles behind which there is nothing. What only has to
 * return 0 is made from the wheel's undefined symbols (mkstubs.py). */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

static int fresh(void **out)
{
	static uint64_t last = 0x4000;

	*out = (void *)__atomic_add_fetch(&last, 64, __ATOMIC_RELAXED);
	return 0;
}

#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wmissing-prototypes"
EXPORT int aclrtCreateStream(void **stream) { return fresh(stream); }
EXPORT int aclrtCreateStreamWithConfig(void **stream, uint32_t priority, uint32_t flag) { return fresh(stream); }
EXPORT int aclrtCreateEventExWithFlag(void **event, uint32_t flag) { return fresh(event); }
EXPORT int aclrtCreateEventWithFlag(void **event, uint32_t flag) { return fresh(event); }
EXPORT int aclrtQueryEventStatus(void *event, int *status) { return *status = 1, 0; }
EXPORT int aclrtQueryEventWaitStatus(void *event, int *status) { return *status = 1, 0; }
EXPORT int aclrtStreamQuery(void *stream, int *status) { return *status = 1, 0; }
EXPORT int aclrtEventElapsedTime(float *ms, void *from, void *to) { return *ms = 1, 0; }
EXPORT int aclrtDeviceCanAccessPeer(int32_t *can, int32_t device, int32_t peer) { return *can = 0; }
EXPORT int aclrtDeviceGetBareTgid(int32_t *pid) { return *pid = 1, 0; }
EXPORT int aclrtMemset(void *p, size_t room, int32_t value, size_t bytes) { return 0; }
EXPORT int aclrtMemcpyAsync(void *to, size_t room, const void *from, size_t bytes, int kind, void *stream) { return 0; }
EXPORT int aclrtGetSysParamOpt(int option, int64_t *value) { return *value = 0, 0; }
EXPORT void *aclCreateTensorDesc(int type, int dims, const int64_t *sizes, int format) { return calloc(1, 64); }
EXPORT void aclDestroyTensorDesc(void *descriptor) { free(descriptor); }
EXPORT void *aclCreateDataBuffer(void *data, size_t bytes) { return calloc(1, 16); }
EXPORT int aclDestroyDataBuffer(void *buffer) { return free(buffer), 0; }
EXPORT void *aclopCreateAttr(void) { return calloc(1, 16); }
EXPORT void aclopDestroyAttr(void *attributes) { free(attributes); }
EXPORT const char *aclGetRecentErrMsg(void) { return ""; }
