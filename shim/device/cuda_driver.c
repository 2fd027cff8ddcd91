/* Questions to CUDA's driver, by its own functions: the runtime's would change what cudaGetLastError says. */
#include <string.h>

#include "format/output_name.h"
#include "shim/base/sys.h"
#include "shim/device/cuda.h"
#include "shim/device/device.h"

const struct mt_library mt_lib_CUDA = { .prefix = "libcuda.so", .linked = 1, .link = { { "libcuda.so.1", NULL } } };

/* name, parameters; each returns CUresult */
/* clang-format off */
#define QUESTIONS(Q)                                                                     \
	Q(cuCtxGetDevice, (CUdevice *))                                                  \
	Q(cuCtxPushCurrent_v2, (CUcontext))                                              \
	Q(cuCtxPopCurrent_v2, (CUcontext *))                                             \
	Q(cuDeviceGetName, (char *, int, CUdevice))                                      \
	Q(cuDeviceGetUuid, (CUuuid *, CUdevice))                                         \
	Q(cuDeviceGetUuid_v2, (CUuuid *, CUdevice))                                      \
	Q(cuDevicePrimaryCtxGetState, (CUdevice, unsigned *, int *))                     \
	Q(cuDeviceTotalMem_v2, (size_t *, CUdevice))                                     \
	Q(cuMemGetAddressRange_v2, (CUdeviceptr *, size_t *, CUdeviceptr))               \
	Q(cuMemGetAllocationPropertiesFromHandle, (CUmemAllocationProp *, CUmemGenericAllocationHandle)) \
	Q(cuMemGetInfo_v2, (size_t *, size_t *))                                         \
	Q(cuPointerGetAttribute, (void *, int, CUdeviceptr))                             \
	Q(cuStreamGetCaptureInfo_v2, (CUstream, int *, cuuint64_t *, CUgraph *, const CUgraphNode **, size_t *)) \
	Q(cuStreamIsCapturing, (CUstream, int *))
/* clang-format on */

static struct {
#define Q(name, params) CUresult(*name) params;
	QUESTIONS(Q)
#undef Q
} ask;

static void look_up(void)
{
#define Q(name, params) ask.name = (CUresult(*) params)(uintptr_t)mt_library_symbol(&mt_lib_CUDA, #name);
	QUESTIONS(Q)
#undef Q
}

static struct mt_asked asked = { .library = &mt_lib_CUDA, .name = "cuCtxGetDevice", .look_up = look_up };

#define CAN(name) (mt_asked_there(&asked) && ask.name)

int mt_cuda_current(void)
{
	CUdevice device;

	return CAN(cuCtxGetDevice) && ask.cuCtxGetDevice(&device) == 0 ? device : -1;
}

int mt_cuda_device_of(uint64_t p)
{
	int device = -1;

	if (CAN(cuPointerGetAttribute) && ask.cuPointerGetAttribute(&device, 9 /* DEVICE_ORDINAL */, p) == 0 &&
	    device >= 0)
		return device;
	return -1;
}

int mt_cuda_device_of_handle(uint64_t handle)
{
	CUmemAllocationProp prop;

	if (CAN(cuMemGetAllocationPropertiesFromHandle) &&
	    ask.cuMemGetAllocationPropertiesFromHandle(&prop, handle) == 0 && prop.location.type == 1)
		return prop.location.id;
	return -1;
}

uint64_t mt_cuda_range(uint64_t p)
{
	CUdeviceptr base;
	size_t bytes;

	return CAN(cuMemGetAddressRange_v2) && ask.cuMemGetAddressRange_v2(&base, &bytes, p) == 0 ? bytes : 0;
}

int mt_cuda_memory(int ordinal, uint64_t *free, uint64_t *total)
{
	size_t f, t;

	if (ordinal < 0 || mt_cuda_current() != ordinal || !CAN(cuMemGetInfo_v2) || ask.cuMemGetInfo_v2(&f, &t) != 0)
		return 0;
	*free = f;
	*total = t;
	return 1;
}

/* Not asked of the legacy default stream (0, 1): it can't be captured, and asking may be an error of its own. */
int mt_cuda_capturing(uint64_t stream)
{
	int status = 0;

	return stream > 1 && CAN(cuStreamIsCapturing) &&
	       ask.cuStreamIsCapturing((CUstream)(uintptr_t)stream, &status) == 0 && status == 1;
}

uint32_t mt_cuda_capture(uint64_t stream)
{
	cuuint64_t id = 0;
	int status;

	if (!mt_cuda_capturing(stream))
		return 0;
	if (CAN(cuStreamGetCaptureInfo_v2))
		ask.cuStreamGetCaptureInfo_v2((CUstream)(uintptr_t)stream, &status, &id, NULL, NULL, NULL);
	return (uint32_t)id ? (uint32_t)id : 1;
}

int mt_cuda_context_device(CUcontext context)
{
	int device;

	if (!CAN(cuCtxPushCurrent_v2) || !ask.cuCtxPopCurrent_v2 || ask.cuCtxPushCurrent_v2(context) != 0)
		return -1;
	device = mt_cuda_current();
	ask.cuCtxPopCurrent_v2(&context);
	return device;
}

int mt_cuda_primary_alive(int ordinal)
{
	unsigned flags;
	int active = 0;

	return CAN(cuDevicePrimaryCtxGetState) && ask.cuDevicePrimaryCtxGetState(ordinal, &flags, &active) == 0 &&
	       active;
}

/* ---- what a device is ---- */

static void write_uuid(char *to, char *end, const CUuuid *uuid, int is_instance)
{
	static const char digits[] = "0123456789abcdef";

	to = mt_put(to, end, is_instance ? "MIG-" : "GPU-");
	for (int i = 0; i < 16; i++) {
		unsigned byte = (unsigned char)uuid->bytes[i];
		if (i == 4 || i == 6 || i == 8 || i == 10)
			*to++ = '-';
		*to++ = digits[byte >> 4];
		*to++ = digits[byte & 15];
	}
	*to = 0;
}

/* The second version tells the instances of one device (MIG) apart; the first has the device's. */
static void describe(unsigned ordinal, struct mt_device_facts *facts)
{
	CUuuid whole = { { 0 } }, own;
	size_t total;
	int has_whole = CAN(cuDeviceGetUuid) && ask.cuDeviceGetUuid(&whole, (CUdevice)ordinal) == 0;

	if (CAN(cuDeviceGetUuid_v2) && ask.cuDeviceGetUuid_v2(&own, (CUdevice)ordinal) == 0)
		write_uuid(facts->uuid, facts->uuid + sizeof(facts->uuid), &own,
			   has_whole && memcmp(&own, &whole, sizeof(own)) != 0);
	else if (has_whole)
		write_uuid(facts->uuid, facts->uuid + sizeof(facts->uuid), &whole, 0);
	if (CAN(cuDeviceGetName) && ask.cuDeviceGetName(facts->model, sizeof(facts->model) - 1, (CUdevice)ordinal) != 0)
		facts->model[0] = 0;
	if (CAN(cuDeviceTotalMem_v2) && ask.cuDeviceTotalMem_v2(&total, (CUdevice)ordinal) == 0)
		facts->total = total;
}

uint32_t mt_cuda_id(int ordinal)
{
	return ordinal < 0 ? 0 : mt_device_id(MT_BACKEND_CUDA, (unsigned)ordinal, describe);
}
