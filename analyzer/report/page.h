/*
 * The page is a report as one HTML file that needs no others. It holds the verdict as text, which can be read without
 * scripts; its data, compressed by gzip and in base64: that of report --json, and more for any moment or range; and the
 * scripts and styles of page/, which the build bundles (page_bundle.h).
 *
 * Its size is at most PAGE_MOST bytes, whatever the trace. Where that is too little, small sites are left out, and the
 * page says so.
 */
#ifndef MT_REPORT_PAGE_H
#define MT_REPORT_PAGE_H

#include "analyzer/report/diff.h"
#include "analyzer/report/report.h"

enum { PAGE_MOST = 5 << 20 };

/* Which source lines of the program it shows: of files below the working directory, of all files, or none. */
enum page_source { PAGE_SOURCE_HERE, PAGE_SOURCE_ALL, PAGE_SOURCE_NONE };

/* For the page of memtrace diff, which is that of AFTER. All borrowed. */
struct page_changes {
	json_t *changes;                /* what memtrace diff --json prints */
	const struct selection *before; /* BEFORE, whose memory over time is drawn beside */
};

/* Writes the page to `path`, which is replaced once the page is whole. `r` was made with ANALYSIS_WINDOWS; `changes` is
 * NULL for a single trace. *bytes gets the size of the file. 0 or -MT_E*. */
int page_write(const struct report *r, const char *path, enum page_source source, const struct page_changes *changes,
	       uint64_t *bytes);

#endif
