/* Sampled stacks: the shim's choice (its own code) and the analyzer's estimates from it, over 1,000 seeds. */
#include <math.h>

#include "analyzer/util/sampling_estimate.h"
#include "shim/trace/sample.c"
#include "tests/unit/test.h"

#define SEEDS  1000
#define MEAN   16384u
#define GROUPS 6

/* A program of blocks that belong to six groups: from 12 to 150 expected samples each, sizes up to the mean itself. */
struct program {
	uint32_t count, *size;
	uint8_t *group;
	double bytes[GROUPS], blocks[GROUPS], all;
};

static uint64_t lcg = 1;

static uint32_t below(uint32_t n)
{
	lcg = lcg * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(lcg >> 33) % n;
}

static uint32_t size_in(unsigned group)
{
	static const uint32_t least[GROUPS] = { 8, 100, 0, 3000, 32, 9000 },
			      most[GROUPS] = { 64, 100, 4000, 16384, 16384, 16384 };
	return least[group] + below(most[group] - least[group] + 1);
}

static struct program make(void)
{
	static const double want[GROUPS] = { 30, 12, 60, 150, 100, 40 }; /* bytes in units of MEAN */
	struct program p = { .size = malloc(400000 * sizeof(uint32_t)), .group = malloc(400000) };
	while (p.all < 392.0 * MEAN) {
		unsigned g = below(GROUPS);
		if (p.bytes[g] >= want[g] * MEAN)
			continue;
		uint32_t size = size_in(g);
		p.size[p.count] = size;
		p.group[p.count++] = (uint8_t)g;
		p.bytes[g] += size;
		p.blocks[g]++;
		p.all += size;
	}
	return p;
}

struct result {
	double error, error2, width[SEEDS], truth;
	int covered;
};

static void note(struct result *r, const struct estimate *e, double truth, int seed)
{
	struct estimate_range range = estimate_range(e, 1e18);
	r->truth = truth;
	r->error += e->sum - truth;
	r->error2 += (e->sum - truth) * (e->sum - truth);
	r->covered += range.low <= truth && truth <= range.high;
	r->width[seed] = (range.high - range.low) / 2;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static void once(const struct program *p, int seed, struct estimate bytes[GROUPS], struct estimate blocks[GROUPS])
{
	struct mt_sample s;
	mt_sample_start(&s, (uint64_t)seed + 1, MEAN);
	for (uint32_t i = 0; i < p->count; i++) {
		if (p->size[i] >= MEAN) {
			bytes[p->group[i]].sum += p->size[i];
			blocks[p->group[i]].sum++;
		} else if (mt_sample_hits(&s, p->size[i], MEAN)) {
			estimate_add_bytes(&bytes[p->group[i]], p->size[i], 1, MEAN);
			estimate_add_blocks(&blocks[p->group[i]], p->size[i], 1, MEAN);
		}
	}
}

/* Half-width of the interval around n expected samples: 1.96 sqrt(n) of them, and a little more for its being one of a
 * skewed distribution. */
static double width_bound(double bytes)
{
	return 1.96 * sqrt(bytes * MEAN) * 1.1 + 0.5 * MEAN;
}

TEST(bytes_are_unbiased_and_intervals_hold_95_percent)
{
	static struct result r[GROUPS];
	struct program p = make();
	int covered = 0;
	for (int seed = 0; seed < SEEDS; seed++) {
		struct estimate bytes[GROUPS] = { 0 }, blocks[GROUPS] = { 0 };
		once(&p, seed, bytes, blocks);
		for (int g = 0; g < GROUPS; g++)
			note(&r[g], &bytes[g], p.bytes[g], seed);
	}
	for (int g = 0; g < GROUPS; g++) {
		double mean = r[g].error / SEEDS, sd = sqrt(r[g].error2 / SEEDS - mean * mean);
		qsort(r[g].width, SEEDS, sizeof(double), by_value);
		printf("# group %d: %.0f expected samples, mean error %+.2f standard errors, covered %.1f %%, median half-width %.1f %%\n",
		       g, r[g].truth / MEAN, mean / (sd / sqrt(SEEDS)), r[g].covered * 100.0 / SEEDS,
		       r[g].width[SEEDS / 2] * 100 / r[g].truth);
		CHECK(fabs(mean) <= 3 * sd / sqrt(SEEDS));
		CHECK(r[g].covered >= 0.93 * SEEDS && r[g].covered <= 0.97 * SEEDS);
		CHECK(r[g].width[SEEDS / 2] <= width_bound(r[g].truth));
		covered += r[g].covered;
	}
	CHECK(covered >= 0.94 * SEEDS * GROUPS && covered <= 0.96 * SEEDS * GROUPS);
	free(p.size);
	free(p.group);
}

TEST(blocks_are_unbiased)
{
	static struct result r[GROUPS];
	struct program p = make();
	for (int seed = 0; seed < SEEDS; seed++) {
		struct estimate bytes[GROUPS] = { 0 }, blocks[GROUPS] = { 0 };
		once(&p, seed, bytes, blocks);
		for (int g = 0; g < GROUPS; g++)
			note(&r[g], &blocks[g], p.blocks[g], seed);
	}
	for (int g = 0; g < GROUPS; g++) {
		double mean = r[g].error / SEEDS, sd = sqrt(r[g].error2 / SEEDS - mean * mean);
		printf("# group %d: blocks: mean error %+.2f standard errors, covered %.1f %%\n", g,
		       mean / (sd / sqrt(SEEDS)), r[g].covered * 100.0 / SEEDS);
		CHECK(fabs(mean) <= 3 * sd / sqrt(SEEDS));
		/* a block of 8 bytes stands for 2,000 of them: with a few of those the intervals are rough */
		CHECK(r[g].covered >= 0.9 * SEEDS);
	}
	free(p.size);
	free(p.group);
}

/* The first block of a thread and the one behind a hit have the same chance as any other. */
TEST(each_block_has_its_chance)
{
	enum { BLOCKS = 64, SIZE = 500, RUNS = 200000 };
	static int hits[BLOCKS];
	int all = 0;
	double chance = estimate_chance(SIZE, MEAN), sd = sqrt(RUNS * chance * (1 - chance));
	for (int run = 0; run < RUNS; run++) {
		struct mt_sample s;
		mt_sample_start(&s, (uint64_t)run, MEAN);
		for (int i = 0; i < BLOCKS; i++)
			hits[i] += mt_sample_hits(&s, SIZE, MEAN);
	}
	for (int i = 0; i < BLOCKS; i++) {
		CHECK(fabs(hits[i] - RUNS * chance) < 4 * sd);
		all += hits[i];
	}
	CHECK(fabs(all - RUNS * BLOCKS * chance) < 3 * sqrt(BLOCKS) * sd);
}

/* What one picked block stands for, as whole numbers: right on average, and the same whenever it is asked. */
TEST(a_picked_block_stands_for_whole_blocks)
{
	static const uint64_t sizes[] = { 1, 16, 1000, 5000, 16000, 16383 };
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		enum { RUNS = 100000 };
		const double chance = estimate_chance(sizes[i], MEAN), want = 1 / chance;
		double sum = 0;
		for (uint64_t k = 0; k < RUNS; k++) {
			const uint64_t random = 0x7f0000000000 + k * 48, n = estimate_blocks_of(sizes[i], MEAN, random);
			CHECK(n == estimate_blocks_of(sizes[i], MEAN, random));
			CHECK(n == (uint64_t)want || n == (uint64_t)want + 1);
			sum += (double)n;
		}
		CHECK(fabs(sum / RUNS - want) < 4 * 0.5 / sqrt(RUNS));
		CHECK(fabs((double)estimate_bytes_of(sizes[i], MEAN) - (double)sizes[i] / chance) <= 0.5);
	}
	CHECK(estimate_bytes_of(0, MEAN) == 0);
}

/* Live bytes go up and down by chance while the truth stays: the range of the highest of many estimates holds it. */
TEST(a_peak_has_a_range_of_its_own)
{
	enum { ALIVE = 4000, SIZE = 512, LOOKS = 2000, RUNS = 200 };
	const double truth = (double)ALIVE * SIZE;
	int held = 0, plain = 0;
	for (int run = 0; run < RUNS; run++) {
		static uint8_t hit[ALIVE];
		struct mt_sample s;
		uint64_t n = 0, most = 0;
		mt_sample_start(&s, (uint64_t)run + 77, MEAN);
		for (int i = 0; i < ALIVE; i++)
			n += hit[i] = (uint8_t)mt_sample_hits(&s, SIZE, MEAN);
		for (int look = 0; look < LOOKS * 40; look++) { /* one goes, another one comes */
			uint8_t *at = &hit[below(ALIVE)];
			n -= *at;
			n += *at = (uint8_t)mt_sample_hits(&s, SIZE, MEAN);
			most = n > most ? n : most;
		}
		struct estimate e = { 0 };
		estimate_add_bytes(&e, SIZE, most, MEAN);
		const struct estimate_range r = estimate_range_of_highest(&e, LOOKS * 40),
					    usual = estimate_range(&e, INFINITY);
		held += r.low <= truth && truth <= r.high;
		plain += usual.low <= truth && truth <= usual.high;
		CHECK(r.low <= usual.low && r.high == usual.high);
	}
	printf("# the range of a peak holds %d of %d, the usual one would hold %d\n", held, RUNS, plain);
	CHECK(held >= 0.95 * RUNS);
	CHECK(plain < 0.9 * RUNS);
}

TEST(tiny_means_and_empty_blocks)
{
	struct mt_sample s;
	int hits = 0;
	mt_sample_start(&s, 7, 100);
	for (int i = 0; i < 100000; i++)
		hits += mt_sample_hits(&s, 0, 100);
	CHECK(fabs(hits - 100000 * estimate_chance(0, 100)) < 4 * sqrt(1000));
	struct estimate e = { 0 };
	estimate_add_bytes(&e, 100, 1, 100);
	CHECK(fabs(e.sum - 100 / (1 - exp(-1))) < 1e-9);
	struct estimate_range r = estimate_range(&e, 300);
	CHECK(r.low >= 100 && r.low <= e.sum && r.high >= e.sum && r.high <= 300);
}

TEST_MAIN
