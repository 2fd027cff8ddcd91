/* week STEPS LEAK CHUNKS: a training as torch_npu's pool would tell it, that waits for its recorder as endless.c does. Each step makes activations that
 * die in its backward part, temporaries, a buffer that takes the last step's place, and LEAK bytes that stay. It prints its account
 * as JSON: blocks, bytes, what is alive, and the highest moment. */
#include <inttypes.h>

#include "../../programs/pacing.h"
#include "acl.h"

#define MIB (1l << 20)

enum { LAYERS = 24, PLACES = 1 << 16 };

static const char pool[] = "ptaCaching";
static uint64_t blocks, bytes, live, peak, frees;
static char *segment;
static int64_t size_of[PLACES];
static unsigned next_place;

__attribute__((noinline)) static unsigned take(int64_t size)
{
	mstx_domain domain = mstxDomainCreateA(pool);
	unsigned place = next_place;
	while (size_of[place])
		place = (place + 1) % PLACES;
	next_place = (place + 1) % PLACES;
	struct mstx_range range = { 0, segment + place * 512l, 40l << 30 };
	struct mstx_heap heap = { 0, 0, &range };
	struct mstx_regions regions = { NULL, 0, 1, &range, NULL };
	mstxMemHeapRegister(domain, &heap);
	range.bytes = size;
	mstxMemRegionsRegister(domain, &regions);
	size_of[place] = size;
	blocks++;
	bytes += (uint64_t)size;
	live += (uint64_t)size;
	peak = live > peak ? live : peak;
	return place;
}

static void give(unsigned place)
{
	struct mstx_reference reference = { 0, segment + place * 512l };
	struct mstx_references references = { 1, &reference };
	mstxMemRegionsUnregister(mstxDomainCreateA(pool), &references);
	live -= (uint64_t)size_of[place];
	size_of[place] = 0;
	frees++;
}

static unsigned kept[LAYERS], buffer;

__attribute__((noinline)) static void forward(void)
{
	for (int i = 0; i < LAYERS; i++) {
		unsigned temporary = take(512 * (1 + i % 7));
		kept[i] = take(MIB * (1 + i % 5));
		give(temporary);
	}
}

__attribute__((noinline)) static void backward(void)
{
	for (int i = LAYERS; i-- > 0;) {
		unsigned gradient = take(MIB * (1 + i % 3));
		give(kept[i]);
		give(gradient);
	}
}

__attribute__((noinline)) static void optimize(int64_t leak)
{
	unsigned temporary = take(3 * MIB), old = buffer;
	buffer = take(2 * MIB);
	give(old);
	give(temporary);
	if (leak)
		take(leak);
}

int main(int argc, char **argv)
{
	if (argc < 4)
		return 2;
	aclInit(NULL);
	aclrtSetDevice(0);
	aclrtMallocAlign32((void **)&segment, 40l << 30, 1);
	pace(atoi(argv[3]), 1);
	buffer = take(2 * MIB);
	for (long step = 0; step < atol(argv[1]); step++) {
		forward();
		backward();
		optimize(atol(argv[2]) * (step % 64 == 0)); /* so that its blocks fit */
		if (step % 16 == 0)
			wait_for_recorder();
	}
	printf("{\"blocks\": %" PRIu64 ", \"bytes\": %" PRIu64 ", \"frees\": %" PRIu64 ", \"live\": %" PRIu64 ", \"peak\": %" PRIu64 "}\n",
	       blocks, bytes, frees, live, peak);
	return 0;
}
