/* What the sampler looks at, and how often it may: figures of all pages of a process take the kernel long. A part of
 * sampler.c. */
#include "analyzer/recorder/sampler/sampler_internal.h"

#include "analyzer/util/system/pid_alive.h"

#include <ctype.h>
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LOOK_SHARE 500  /* a look is repeated after so many times the time that it took ... */
#define LONG_SHARE 1000 /* ... or so many, if that was */
#define LONG_NS    (50 * MS)
/* ... or so many where much has changed and there is an allowance, that begins with */
#define CHANGED_SHARE   20
#define ALLOWANCE_NS    (500 * MS)
#define FIRST_NS        (500 * MS) /* the first look is at once, if it takes no longer */
#define LOOK_NS_PER_MIB 50000      /* as measured with pages of 4 KiB on a slow machine */
#define MAPPINGS_NS     (30 * SECOND)
/* 1/8 more or less resident than at the last look is a reason for another, or as much touched */
#define CHANGED     8
#define MAPPING_KIB (16u << 10)
#define CGROUP_NS   (10 * SECOND)
#define OTHER_KIB   (8u << 10) /* an untraced process is shown if it has as much */

static void look_at_cgroup(struct sampler *s, struct target *t)
{
	if (s->now >= t->cgroup_ns && !t->over) {
		t->cgroup_version = cgroups_of(s->cgroups, t->number, t->own_group, t->group);
		/* launchers move a process soon or never */
		t->cgroup_ns = s->now - t->met_ns < CGROUP_NS ? 0 : s->now + CGROUP_NS;
	}
	for (size_t i = 0; s->targets[i] != t; i++)
		if (!s->targets[i]->over && s->targets[i]->cgroup_version == t->cgroup_version &&
		    !strcmp(s->targets[i]->own_group, t->own_group))
			return; /* it has been looked at */
	if (!t->cgroup_version)
		return;
	struct figures f = { 0 };
	struct subject_key key = {
		.kind = MT_SUBJECT_CGROUP, .key = { t->cgroup_version }, .text = t->group, .text2 = t->own_group
	};
	sample_cgroup(s->cgroups, t->cgroup_version, t->own_group, t->group, &f);
	samples_file_add(s->file, &key, &f);
	if (f.value[MT_CGROUP_limit] && f.value[MT_CGROUP_limit] < s->memory)
		s->memory = f.value[MT_CGROUP_limit];
}

/* All looks together are to take 1/LOOK_SHARE of the time; and as one keeps the process from mapping memory as long as
 * it lasts, long ones are rare. A look that has a reason may come earlier, from an allowance that grows half as fast.
 * */
static bool is_due(const struct sampler *s, const struct target *t, const struct look *l, uint64_t rss, uint64_t faults,
		   uint64_t period)
{
	uint64_t cost = (l->ns_per_mib ? l->ns_per_mib : LOOK_NS_PER_MIB) * (rss >> 10),
		 since = s->now - (l->last_ns ? l->last_ns : t->met_ns), pause = cost * LOOK_SHARE * s->count;
	/* what a fork shares is copied so, and stays as large */
	bool touched = (faults - l->faults) * ((uint64_t)sysconf(_SC_PAGESIZE) >> 10) > l->rss / CHANGED;
	bool changed = l->stale || touched || (rss > l->rss ? rss - l->rss : l->rss - rss) > l->rss / CHANGED;
	if (!l->last_ns && cost < FIRST_NS)
		return true;
	if (cost > LONG_NS && since < cost * LONG_SHARE)
		return false;
	return since >= (pause > period ? pause : period) ||
	       (changed && since >= cost * CHANGED_SHARE &&
		s->spent_ns + cost < ALLOWANCE_NS + (s->now - s->start_ns) / (2 * LOOK_SHARE));
}

static void look_ends(struct sampler *s, struct look *l, uint64_t rss, uint64_t cost)
{
	uint64_t per_mib = rss >> 10 ? cost / (rss >> 10) : 0;
	if (l->last_ns && s->now - l->last_ns < cost * LOOK_SHARE * s->count)
		s->spent_ns += cost; /* it was early */
	l->last_ns = s->now;
	l->rss = rss;
	l->stale = false;
	l->ns_per_mib = per_mib > LOOK_NS_PER_MIB / 10 ? per_mib : LOOK_NS_PER_MIB / 10;
}

/* It has copied pages that it shared. Then who shared them has them alone, and no other figure of that process shows
 * it. */
static void see_copied(struct sampler *s, struct target *t, uint64_t shared)
{
	if (t->rollup.shared > shared + t->rollup.rss / CHANGED)
		for (size_t i = 0; i < s->count; i++)
			s->targets[i]->rollup.stale |= s->targets[i] != t;
	t->rollup.shared = shared;
}

static void look_closely(struct sampler *s, struct target *t, struct figures *f)
{
	uint64_t rss = f->value[MT_PROCESS_rss];
	uint64_t faults = f->value[MT_PROCESS_minor_faults];
	if (!is_due(s, t, &t->rollup, rss, faults, PERIOD_NS * 9 / 10))
		return;
	uint64_t start = worked_ns();
	sample_process_rollup(t->number, f);
	look_ends(s, &t->rollup, rss, worked_ns() - start);
	t->rollup.faults = faults;
	see_copied(s, t, f->value[MT_PROCESS_shared_dirty]);
}

void look_at_process(struct sampler *s, struct target *t)
{
	struct proc_who who;
	struct figures f = { 0 };
	if (!t->number)
		t->number = pid_in_own_proc(t->who.pid, t->who.pid_ns, t->who.boot_start);
	bool there = t->number && sample_process_stat(t->number, &who, &f) && who.start == t->who.boot_start;
	if (!there || !sample_process_status(t->number, &f)) {
		t->over = t->number || !t->listed;
		s->ended |= t->over;
		look_at_cgroup(s, t); /* did it kill it? */
		return;
	}
	look_at_cgroup(s, t);
	look_closely(s, t, &f);
	struct subject_key key = { .kind = MT_SUBJECT_PROCESS,
				   .key = { t->who.pid, t->who.boot_start, 1 },
				   .text = who.name,
				   .text2 = t->own_group };
	samples_file_add(s->file, &key, &f);
	t->rss = f.value[MT_PROCESS_rss];
}

struct mappings {
	struct sampler *sampler;
	const struct target *target;
};

static void add_mapping(void *arg, uint64_t start, const char *path, const struct figures *f)
{
	const struct mappings *m = arg;
	struct subject_key key = { .kind = MT_SUBJECT_MAPPING,
				   .key = { m->target->who.pid, m->target->who.boot_start, start },
				   .text = path };
	samples_file_add(m->sampler->file, &key, f);
}

/* One process a sample at most. */
void look_at_mappings(struct sampler *s)
{
	struct target *t = NULL;
	for (size_t i = 0; i < s->count && !t; i++) {
		struct target *c = s->targets[i];
		if (!c->over && c->number && c->rss >= MAPPING_KIB &&
		    is_due(s, c, &c->mappings, c->rss, c->mappings.faults, MAPPINGS_NS))
			t = c;
	}
	if (!t)
		return;
	uint64_t start = worked_ns();
	bool ok = sample_mappings(t->number, MAPPING_KIB, add_mapping, &(struct mappings){ s, t });
	look_ends(s, &t->mappings, t->rss, worked_ns() - start);
	if (ok)
		samples_file_end_stale(s->file, MT_SUBJECT_MAPPING, t->who.pid, s->now);
}

static bool is_target(const struct sampler *s, uint32_t pid)
{
	for (size_t i = 0; i < s->count; i++)
		if (s->targets[i]->number == pid)
			return true;
	return false;
}

static void keep_largest(struct sampler *s, const struct other *o)
{
	size_t i = s->other_count < OTHERS ? s->other_count++ : OTHERS;
	while (i > 0 && s->others[i - 1].who.rss_kib < o->who.rss_kib) {
		if (i < OTHERS)
			s->others[i] = s->others[i - 1];
		i--;
	}
	if (i < OTHERS)
		s->others[i] = *o;
}

static void find_others(struct sampler *s)
{
	DIR *dir = opendir("/proc");
	s->other_count = 0;
	if (!dir)
		return;
	for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
		struct other o = { .pid = (uint32_t)strtoul(entry->d_name, NULL, 10) };
		if (o.pid && isdigit((unsigned char)*entry->d_name) && !is_target(s, o.pid) &&
		    sample_process_stat(o.pid, &o.who, NULL) && !o.who.kernel && o.who.rss_kib >= OTHER_KIB)
			keep_largest(s, &o);
	}
	closedir(dir);
}

void look_at_others(struct sampler *s)
{
	uint64_t start = worked_ns();
	if (s->now < s->others_ns)
		return;
	find_others(s);
	for (size_t i = 0; i < s->other_count; i++) {
		struct figures f = { 0 };
		struct other *o = &s->others[i];
		struct subject_key key = { .kind = MT_SUBJECT_PROCESS,
					   .key = { o->pid, o->who.start, 0 },
					   .text = o->who.name };
		if (sample_process_stat(o->pid, &o->who, &f) && sample_process_status(o->pid, &f))
			samples_file_add(s->file, &key, &f);
	}
	uint64_t pause = (worked_ns() - start) * LOOK_SHARE;
	s->others_ns = s->now + (pause > OTHERS_NS ? pause : OTHERS_NS);
}

void look_at_machine(struct sampler *s)
{
	struct figures f = { 0 };
	sample_machine(&f);
	samples_file_add(s->file, &(struct subject_key){ .kind = MT_SUBJECT_MACHINE }, &f);
	if (f.value[MT_MACHINE_total] && f.value[MT_MACHINE_total] < s->memory)
		s->memory = f.value[MT_MACHINE_total];
}
