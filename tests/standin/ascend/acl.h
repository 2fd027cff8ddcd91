/* The part of the Ascend API that the stand-in has, in its own words: see functions.def. */
#ifndef STANDIN_ACL_H
#define STANDIN_ACL_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
	ACL_OUT_OF_MEMORY = 207001, ACL_FREE_FAILED = 207002, ACL_UNSUPPORTED = 207000, ACL_INVALID = 100000,
	ACL_PARAM_INVALID = 107000, ACL_NO_CONTEXT = 107002, ACL_BAD_HANDLE = 107017, ACL_REPEATED = 100002, ACL_REPEATED_END = 100037,
	ACL_HOST_REGISTERED = 507910, ACL_HOST_UNREGISTERED = 507911,
};

/* One attribute of an allocation: which = 1 module, 2 device, 3 kind of address. */
struct acl_attribute { int which; union { uint16_t module; uint32_t device; uint32_t va; uint8_t bytes[8]; } value; };
struct acl_config { struct acl_attribute *attributes; size_t count; };

/* Physical memory: place = 0 host, 1 device, 4 host node. */
struct acl_physical { int handle_type, allocation_type, memory; uint32_t place_id; int place; uint64_t reserved; };

#define FN(name, params, args) int name params;
#include "functions.def"
#undef FN
const char *aclrtGetSocName(void);

/* The layers below, of the layered stand-in. */
int rtMalloc(void **out, uint64_t bytes, uint32_t type, uint16_t module);
int rtFree(void *p);
int rtFreeWithDevSync(void *p);
int rtMallocHost(void **out, uint64_t bytes, uint16_t module);
int rtFreeHost(void *p);
int rtFreeHostWithDevSync(void *p);
int rtDvppMalloc(void **out, uint64_t bytes, uint16_t module);
int rtDvppFree(void *p);
struct rt_physical { uint32_t side, device, module, page, memory; uint64_t reserved; };
int rtMallocPhysical(void **handle, size_t bytes, struct rt_physical *prop, uint64_t flags);
int rtFreePhysical(void *handle);

int halMemAlloc(void **out, unsigned long long bytes, unsigned long long flag);
int halMemFree(void *p);
enum { HAL_OUT_OF_MEMORY = 6 };
enum { HAL_SVM = 0, HAL_HOST = 2, HAL_HUGE = 1 << 17, HAL_SPACE_SHIFT = 10 };

/* mstx: what the frameworks say of their pools, and what users mark. */
typedef struct mstx_domain *mstx_domain;
struct mstx_range { uint32_t device; const void *start; int64_t bytes; };
struct mstx_heap { int usage, type; const void *range; };
struct mstx_regions { void *heap; int type; size_t count; const void *ranges; void **handles; };
struct mstx_reference { int type; const void *pointer; };
struct mstx_references { size_t count; const struct mstx_reference *array; };
mstx_domain mstxDomainCreateA(const char *name);
void mstxDomainDestroy(mstx_domain domain);
void mstxMarkA(const char *text, void *stream);
uint64_t mstxRangeStartA(const char *text, void *stream);
void mstxRangeEnd(uint64_t id);
void mstxDomainMarkA(mstx_domain domain, const char *text, void *stream);
uint64_t mstxDomainRangeStartA(mstx_domain domain, const char *text, void *stream);
void mstxDomainRangeEnd(mstx_domain domain, uint64_t id);
void *mstxMemHeapRegister(mstx_domain domain, const struct mstx_heap *heap);
void mstxMemHeapUnregister(mstx_domain domain, void *heap);
void mstxMemRegionsRegister(mstx_domain domain, const struct mstx_regions *regions);
void mstxMemRegionsUnregister(mstx_domain domain, const struct mstx_references *references);

#ifdef __cplusplus
}
#endif

#endif
