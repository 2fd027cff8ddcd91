/*
 * A generated program for sampled stacks: SITES functions get blocks through one common function, so that the immediate
 * caller tells nothing, of sizes from a few bytes to more than the sampling size, and free some again. What each has alive
 * at the end depends on the first argument alone, and is printed: "site K BYTES BLOCKS".
 *
 * usage: sampled SEED BLOCKS
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define SITES 8
#define NOINLINE __attribute__((noinline))
#define KEEP_FRAME() __asm__ volatile("" ::: "memory")

static uint64_t state;

static uint32_t draw(uint32_t below)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(state >> 33) % below;
}

static NOINLINE void *common(size_t bytes)
{
	void *p = malloc(bytes);

	KEEP_FRAME();
	return p;
}

#define SITE(n) NOINLINE void *site_##n(size_t bytes); NOINLINE void *site_##n(size_t bytes) { void *p = common(bytes); KEEP_FRAME(); return p; }
SITE(0) SITE(1) SITE(2) SITE(3) SITE(4) SITE(5) SITE(6) SITE(7)
static void *(*const sites[SITES])(size_t) = { site_0, site_1, site_2, site_3, site_4, site_5, site_6, site_7 };

/* Small ones, medium ones, and now and then one above 16 KiB. Each site has its own mixture. */
static size_t size_of(unsigned site)
{
	switch (draw(40) + site) {
	case 0 ... 3: return 1 + draw(64);
	case 4 ... 20: return 16 + draw(700);
	case 21 ... 44: return 200 + draw(3000);
	default: return draw(16) ? 1000 + draw(9000) : 16384 + draw(50000);
	}
}

int main(int argc, char **argv)
{
	static uint64_t bytes[SITES], blocks[SITES];
	long n = argc == 3 ? atol(argv[2]) : 1000;

	state = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
	for (long i = 0; i < n; i++) {
		unsigned site = draw(SITES) & draw(SITES); /* some much, some little */
		size_t size = size_of(site);
		void *p = sites[site](size);
		if (draw(4) == 0) {
			free(p);
			continue;
		}
		bytes[site] += size;
		blocks[site]++;
	}
	for (int k = 0; k < SITES; k++)
		printf("site %d %llu %llu\n", k, (unsigned long long)bytes[k], (unsigned long long)blocks[k]);
	return 0;
}
