/* Questions to HIP; hip.h says when one may be asked. */
#include <string.h>

#include "format/output_name.h"
#include "shim/base/sys.h"
#include "shim/device/device.h"
#include "shim/device/hip.h"

const struct mt_library mt_lib_HIP = {
	.prefix = "libamdhip64.so",
	.linked = 1,
	.link = { { "libamdhip64.so.7", NULL } },
};

/* name, parameters; each returns hipError_t */
/* clang-format off */
#define QUESTIONS(Q)                                                                     \
	Q(hipGetDevice, (int *))                                                         \
	Q(hipDeviceGetName, (char *, int, hipDevice_t))                                  \
	Q(hipDeviceGetPCIBusId, (char *, int, int))                                      \
	Q(hipDeviceGetUuid, (hipUUID *, hipDevice_t))                                    \
	Q(hipDeviceTotalMem, (size_t *, hipDevice_t))                                    \
	Q(hipMemGetAddressRange, (hipDeviceptr_t *, size_t *, hipDeviceptr_t))           \
	Q(hipMemGetAllocationPropertiesFromHandle, (hipMemAllocationProp *, hipMemGenericAllocationHandle_t)) \
	Q(hipMemGetInfo, (size_t *, size_t *))                                           \
	Q(hipPointerGetAttribute, (void *, int, hipDeviceptr_t))                         \
	Q(hipRuntimeGetVersion, (int *))                                                 \
	Q(hipStreamGetCaptureInfo, (hipStream_t, int *, unsigned long long *))           \
	Q(hipStreamIsCapturing, (hipStream_t, int *))
/* clang-format on */

static struct {
#define Q(name, params) hipError_t(*name) params;
	QUESTIONS(Q)
#undef Q
} ask;

static int version; /* 70151802 = 7.1.51802 */

static void look_up(void)
{
#define Q(name, params) ask.name = (hipError_t(*) params)(uintptr_t)mt_library_symbol(&mt_lib_HIP, #name);
	QUESTIONS(Q)
#undef Q
	if (!ask.hipRuntimeGetVersion || ask.hipRuntimeGetVersion(&version) != 0)
		version = 0;
}

static struct mt_asked asked = { .library = &mt_lib_HIP, .name = "hipGetDevice", .look_up = look_up };

int mt_hip_is_there(void)
{
	return mt_asked_there(&asked);
}

#define CAN(name) (mt_asked_there(&asked) && ask.name)

int mt_hip_asks_freely(void)
{
	return mt_hip_is_there() && version >= 70000000;
}

int mt_hip_current(void)
{
	int device;

	return CAN(hipGetDevice) && ask.hipGetDevice(&device) == 0 ? device : -1;
}

int mt_hip_device_of(uint64_t p)
{
	int device = -1;

	if (CAN(hipPointerGetAttribute) &&
	    ask.hipPointerGetAttribute(&device, 9 /* DEVICE_ORDINAL */, (hipDeviceptr_t)(uintptr_t)p) == 0 &&
	    device >= 0)
		return device;
	return -1;
}

int mt_hip_place(const hipMemAllocationProp *prop)
{
	return mt_hip_is_there() && version >= 60000000 && prop && prop->location.type == 1 ? prop->location.id : -1;
}

int mt_hip_device_of_handle(uint64_t handle)
{
	hipMemAllocationProp prop;

	return CAN(hipMemGetAllocationPropertiesFromHandle) &&
			       ask.hipMemGetAllocationPropertiesFromHandle(
				       &prop, (hipMemGenericAllocationHandle_t)(uintptr_t)handle) == 0
		       ? mt_hip_place(&prop)
		       : -1;
}

uint64_t mt_hip_range(uint64_t p)
{
	hipDeviceptr_t base;
	size_t bytes;

	return CAN(hipMemGetAddressRange) && ask.hipMemGetAddressRange(&base, &bytes, (hipDeviceptr_t)(uintptr_t)p) == 0
		       ? bytes
		       : 0;
}

int mt_hip_memory(uint64_t *free, uint64_t *total)
{
	size_t f, t;

	if (!CAN(hipMemGetInfo) || ask.hipMemGetInfo(&f, &t) != 0)
		return 0;
	*free = f;
	*total = t;
	return 1;
}

/* Not asked of the default streams, which can't be captured: NULL, hipStreamLegacy (1), hipStreamPerThread (2). */
int mt_hip_capturing(uint64_t stream)
{
	int status = 0;

	return stream > 2 && CAN(hipStreamIsCapturing) &&
	       ask.hipStreamIsCapturing((hipStream_t)(uintptr_t)stream, &status) == 0 && status == 1;
}

uint32_t mt_hip_capture(uint64_t stream)
{
	unsigned long long id = 0;
	int status;

	if (!mt_hip_capturing(stream))
		return 0;
	if (CAN(hipStreamGetCaptureInfo))
		ask.hipStreamGetCaptureInfo((hipStream_t)(uintptr_t)stream, &status, &id);
	return (uint32_t)id ? (uint32_t)id : 1;
}

/* ---- what a device is ---- */

/* AMD's 16 bytes are text, hexadecimal digits. Devices without a number of their own have "XX" there; their PCI address
 * tells them apart on a machine. The recorder names them so too (sampler_kfd.c). */
static void write_uuid(char *to, char *end, const hipUUID *uuid)
{
	int is_number = 1;

	for (int i = 0; i < 16; i++)
		is_number &= (uuid->bytes[i] >= '0' && uuid->bytes[i] <= '9') ||
			     (uuid->bytes[i] >= 'a' && uuid->bytes[i] <= 'f');
	if (!is_number)
		return;
	to = mt_put(to, end, "GPU-");
	memcpy(to, uuid->bytes, 16);
	to[16] = 0;
}

static void write_place(char *to, char *end, unsigned ordinal)
{
	char place[32] = "";

	if (CAN(hipDeviceGetPCIBusId) && ask.hipDeviceGetPCIBusId(place, sizeof(place) - 1, (int)ordinal) == 0 &&
	    *place)
		mt_put(mt_put(to, end, "PCI-"), end, place);
}

static void describe(unsigned ordinal, struct mt_device_facts *facts)
{
	char *end = facts->uuid + sizeof(facts->uuid);
	hipUUID uuid;
	size_t total;

	if (CAN(hipDeviceGetUuid) && ask.hipDeviceGetUuid(&uuid, (hipDevice_t)ordinal) == 0)
		write_uuid(facts->uuid, end, &uuid);
	if (!*facts->uuid)
		write_place(facts->uuid, end, ordinal);
	if (CAN(hipDeviceGetName) &&
	    ask.hipDeviceGetName(facts->model, sizeof(facts->model) - 1, (hipDevice_t)ordinal) != 0)
		facts->model[0] = 0;
	if (CAN(hipDeviceTotalMem) && ask.hipDeviceTotalMem(&total, (hipDevice_t)ordinal) == 0)
		facts->total = total;
}

uint32_t mt_hip_id(int ordinal)
{
	return ordinal < 0 ? 0 : mt_device_id(MT_BACKEND_HIP, (unsigned)ordinal, describe);
}
