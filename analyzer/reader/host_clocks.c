/* Which processes share a machine and its clock, and when time began. */
#include "analyzer/reader/reader_internal.h"
#include "analyzer/util/error.h"

#include <stdlib.h>
#include <string.h>

#define WELL_KNOWN_NS (10ull * 1000000000) /* pairs are some 100 ns apart: after an hour that makes 36 us */

static int find_host(struct reader *r, const struct session *s, unsigned *index)
{
	for (size_t i = 0; i < r->host_count; i++)
		if (!strcmp(r->hosts[i].boot_id, s->head.boot_id) && !strcmp(r->hosts[i].name, s->head.host)) {
			*index = (unsigned)i;
			return 0;
		}
	r->hosts[r->host_count] = (struct reader_host){ .index = (unsigned)r->host_count,
							.name = s->head.host,
							.boot_id = s->head.boot_id,
							.memory_bytes = s->head.memory_bytes };
	*index = (unsigned)r->host_count++;
	return 0;
}

static struct clock *find_clock(struct reader *r, unsigned host, uint32_t kind)
{
	for (size_t i = 0; i < r->clock_count; i++)
		if (r->clocks[i].host == host && r->clocks[i].kind == kind)
			return &r->clocks[i];
	struct clock *c = &r->clocks[r->clock_count++];
	*c = (struct clock){ .host = host, .kind = kind };
	return c;
}

static void take_samples(struct image *im)
{
	const struct mt_session *s = &im->session->head;
	const struct mt_info *info = &im->info;
	struct clock *c = im->clock;
	if (im->session->known && s->clock == c->kind) {
		clock_sample(c, s->start_ticks, s->start_mono_ns, s->start_real_ns);
		clock_sample(c, s->ended_ticks, s->ended_mono_ns, 0);
	}
	clock_sample(c, info->start_ticks, info->start_mono_ns, info->start_real_ns);
	clock_sample(c, info->pair_ticks, info->pair_mono_ns, 0);
}

/* What runs, or was killed soon, may know too little of its clock, where no recorder has ended since. Else now is left
 * alone: a trace reads the same at any time. */
static void sample_now(const struct image *im)
{
	const struct clock *c = im->clock;
	if (im->session->here && !im->info.end_ticks && im->session->head.ended_ticks < image_start_ticks(im) &&
	    c->last_mono - c->first_mono < WELL_KNOWN_NS)
		clock_sample_now(im->clock);
}

/* A file to name when a clock makes no sense: any of its sessions or infos may be the one that is wrong. */
static const char *clock_file(const struct reader *r, const struct clock *c)
{
	size_t i = 0;
	while (r->images[i]->clock != c)
		i++;
	return r->images[i]->session->file.path;
}

static int settle_clocks(struct reader *r)
{
	r->hosts = calloc(r->image_count + 1, sizeof(*r->hosts));
	r->clocks = calloc(r->image_count + 1, sizeof(*r->clocks));
	if (!r->hosts || !r->clocks)
		return error_memory();
	for (size_t i = 0; i < r->image_count; i++) {
		struct image *im = r->images[i];
		unsigned host;
		find_host(r, im->session, &host);
		im->process.host = &r->hosts[host];
		r->hosts[host].processes++;
		im->clock = find_clock(r, host, im->info.clock);
		take_samples(im);
	}
	for (size_t i = 0; i < r->image_count; i++)
		sample_now(r->images[i]);
	for (size_t i = 0; i < r->clock_count; i++)
		if (clock_settle(&r->clocks[i])) {
			error_set(MT_EFORMAT, clock_file(r, &r->clocks[i]), ERROR_NO_OFFSET,
				  "clocks of host %s contradict each other", r->hosts[r->clocks[i].host].name);
			int e = reader_damage(r);
			if (e)
				return e;
		}
	return 0;
}

uint64_t image_start_ticks(const struct image *im)
{
	return im->process.fork_ticks ? im->process.fork_ticks : im->info.start_ticks;
}

/* Time 0 is the start of the earliest process. */
static void settle_origin(struct reader *r)
{
	uint64_t origin = UINT64_MAX;
	for (size_t i = 0; i < r->image_count; i++) {
		struct image *im = r->images[i];
		struct reader_host *host = &r->hosts[im->process.host->index];
		uint64_t real = clock_real_ns(im->clock, image_start_ticks(im));
		im->process.start_real_ns = real;
		if (!host->start_real_ns || real < host->start_real_ns)
			host->start_real_ns = real;
		origin = real < origin ? real : origin;
	}
	r->origin_real_ns = r->image_count ? origin : 0;
	for (size_t i = 0; i < r->clock_count; i++) {
		uint64_t first = clock_real_ns(&r->clocks[i], r->clocks[i].first_ticks);
		/* a clock's first sample may lie before the first process: keep the sum right where it can't be
		 * negative */
		if (first >= origin) {
			r->clocks[i].zero_ns = first - origin;
			continue;
		}
		uint64_t ahead = clock_ticks_at(&r->clocks[i], r->clocks[i].first_mono + (origin - first));
		r->clocks[i].first_mono += origin - first;
		r->clocks[i].first_ticks = ahead;
		r->clocks[i].real_ns = origin;
	}
}

int host_clocks_add(struct reader *r, struct image *im)
{
	unsigned host;
	find_host(r, im->session, &host);
	for (size_t i = 0; i < r->clock_count; i++)
		if (r->clocks[i].host == host && r->clocks[i].kind == im->info.clock)
			im->clock = &r->clocks[i];
	if (!im->clock)
		return error_set(MT_ECHANGED, im->session->dir, ERROR_NO_OFFSET, NULL);
	im->process.host = &r->hosts[host];
	r->hosts[host].processes++;
	im->process.start_real_ns = clock_real_ns(im->clock, image_start_ticks(im));
	return 0;
}

int host_clocks_settle(struct reader *r)
{
	int e = settle_clocks(r);
	if (!e)
		settle_origin(r);
	return e;
}
