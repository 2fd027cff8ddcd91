/* Ranges and marks of NVTX in every form, with NVIDIA's header. Prints whether the environment was changed. */
#include <nvtx3/nvToolsExt.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern char **environ;

static nvtxRangeId_t other;

static void *end_other(void *unused)
{
	nvtxRangeEnd(other);
	return unused;
}

int main(void)
{
	nvtxEventAttributes_t e = { 0 };
	nvtxDomainHandle_t domain;
	nvtxRangeId_t id;
	pthread_t thread;
	int added = 0, level[4];

	level[0] = nvtxRangePushA("outer");
	level[1] = nvtxRangePushW(L"inn\u00e9r \U0001f600");
	nvtxMarkA("point");
	level[2] = nvtxRangePop();
	level[3] = nvtxRangePop();
	id = nvtxRangeStartA("free");
	nvtxRangeEnd(id);
	other = nvtxRangeStartW(L"other thread's");
	pthread_create(&thread, NULL, end_other, NULL);
	pthread_join(thread, NULL);
	domain = nvtxDomainCreateA("domain");
	e.version = NVTX_VERSION;
	e.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
	e.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
	e.message.registered = nvtxDomainRegisterStringA(domain, "registered");
	nvtxDomainRangePushEx(domain, &e);
	nvtxDomainRangePop(domain);
	e.messageType = NVTX_MESSAGE_TYPE_ASCII;
	e.message.ascii = "attributes";
	nvtxRangePushEx(&e);
	nvtxRangePop();
	id = nvtxDomainRangeStartEx(domain, &e);
	nvtxDomainRangeEnd(domain, id);
	nvtxDomainMarkEx(domain, &e);
	nvtxDomainDestroy(domain);
	domain = nvtxDomainCreateW(L"CCCL"); /* a library's: none of this is the program's */
	nvtxDomainRangePushEx(domain, &e);
	nvtxDomainRangeEnd(domain, nvtxDomainRangeStartEx(domain, &e));
	nvtxDomainMarkEx(domain, &e);
	nvtxDomainRangePop(domain);
	nvtxRangePop(); /* one too many */
	for (char **v = environ; *v; v++)
		added |= !strncmp(*v, "NVTX_", 5);
	printf("levels %d %d %d %d, %s\n", level[0], level[1], level[2], level[3], added ? "variable" : "no variable");
	return 0;
}
