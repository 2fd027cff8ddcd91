#include "analyzer/live/live_screen.h"
#include "analyzer/util/output.h"
#include "analyzer/util/print.h"

#include <stdlib.h>

void live_print_screen(const struct live *l, const char *dir, const struct live_levels *levels)
{
	char *tail =
		output_tail(dir, output_width() - (int)sizeof("memtrace live     running   reading   1,234,567 steps"));
	print("\033[H\033[2J%smemtrace live%s  %s   %s%s", output_begin(STYLE_HEAD), output_end(STYLE_HEAD), tail,
	      l->running ? "running" : "ended", l->modelled ? "" : "   reading");
	free(tail);
	if (l->steps)
		print("   %s steps", COUNT(l->steps));
	print("\n");
	if (l->lost)
		print("%sevents were lost: of the heap %s to %s are live%s\n", output_begin(STYLE_BAD),
		      BYTES(l->heap_min), BYTES(l->heap), output_end(STYLE_BAD));
	print("\n");
	static const struct column columns[] = {
		{ "PROCESS", RIGHT, false },  { "", LEFT, true },         { "heap", RIGHT, false },
		{ "mapped", RIGHT, false },   { "pinned", RIGHT, false }, { "device", RIGHT, false },
		{ "resident", RIGHT, false }, { "swap", RIGHT, false },
	};
	struct table *t = table_new(columns, 8, 0);
	for (size_t i = 0; i < l->process_count; i++) {
		const struct shown_process *p = &l->processes[i];
		char *pid = output_format("%u", p->pid),
		     *heap = output_format("%s%s", p->picked ? "~" : "", BYTES(p->heap));
		table_row(t, (const char *[]){ pid, p->name, heap ? heap : "", BYTES(p->map), BYTES(p->pinned),
					       BYTES(p->device), p->running ? BYTES(p->rss) : "ended",
					       p->running ? BYTES(p->swap) : "" });
		free(pid);
		free(heap);
	}
	table_print(t);
	if (l->picked)
		print("  ~ of sampled blocks: +/- %s with 95 %% certainty at most\n", BYTES(live_heap_error(l)));
	if (l->process_all > l->process_count)
		print("  and %zu that ended or are not shown\n", l->process_all - l->process_count);
	print("\n");
	for (size_t i = 0; i < l->gauge_count; i++) {
		const struct gauge *g = &l->gauges[i];
		int full = (int)(live_percent(g) / 2.5 + 0.5);
		enum output_style style = live_percent(g) >= levels->first ? STYLE_BAD : STYLE_NONE;
		char *name = output_cut(g->name, 24);
		print("%s%-24s %10s of %10s %5.1f %%  ", output_begin(style), name, BYTES((uint64_t)g->used),
		      BYTES((uint64_t)g->total), live_percent(g));
		free(name);
		for (int k = 0; k < 40; k++)
			print("%s", k < full ? "#" : ".");
		print("%s\n", output_end(style));
	}
	if (*l->growth)
		print("\n%sGROWTH%s  %s\n", output_begin(STYLE_BAD), output_end(STYLE_BAD), l->growth);
}

void live_print_line(const struct live *l)
{
	print("%.1f s  heap ", (double)l->age_ns / 1e9);
	if (l->lost) /* events, frees among them */
		print("%s to ", BYTES(l->heap_min));
	print("%s%s  mapped %s", l->picked ? "~" : "", BYTES(l->heap), BYTES(l->map));
	if (l->pinned)
		print("  pinned %s", BYTES(l->pinned));
	if (l->device)
		print("  device %s", BYTES(l->device));
	if (l->running) /* what has ended has none */
		print("  resident %s  swap %s", BYTES(l->rss), BYTES(l->swap));
	for (size_t i = 0; i < l->gauge_count; i++)
		print("  %s %.1f %%", l->gauges[i].name, live_percent(&l->gauges[i]));
	if (l->steps)
		print("  %s steps", EXACT(l->steps));
	if (*l->growth)
		print("  %s", l->growth);
	print("%s\n", l->running ? "" : "  ended");
}

bool live_warn(struct live *l, const struct live_levels *levels, bool quiet)
{
	bool alerted = false;
	for (size_t i = 0; i < l->gauge_count; i++) {
		struct gauge *g = &l->gauges[i];
		int level = live_level(g, levels);
		if (level > g->warned && !quiet) {
			print("%s%s: %s is %.1f %% full: %s of %s%s\n", output_begin(STYLE_BAD),
			      level == 2 ? "ALERT" : "WARNING", g->name, live_percent(g), BYTES((uint64_t)g->used),
			      BYTES((uint64_t)g->total), output_end(STYLE_BAD));
			if (output_is_terminal())
				print("\a");
		}
		alerted = alerted || level == 2;
		g->warned = level;
	}
	return alerted;
}
