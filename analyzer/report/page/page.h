/*
 * The page is a report as one HTML file that needs no others. It holds the verdict as text, which can be read without
 * scripts; its data, compressed by gzip and in base64: that of report --json, and more for any moment or range; and the
 * scripts and styles of page/, which the build bundles (page_bundle.h).
 *
 * Its size is at most PAGE_MOST bytes, whatever the trace, or as many times that as it is to have detail. Where that is
 * too little, small sites are left out, and the page says so.
 */
#ifndef MT_REPORT_PAGE_PAGE_H
#define MT_REPORT_PAGE_PAGE_H

#include "analyzer/report/diff/diff.h"
#include "analyzer/report/screen/report.h"

enum { PAGE_MOST = 5 << 20, PAGE_MOST_DETAIL = 64 };

/* Which source lines of the program it shows: of files below the working directory, of all files, or none. */
enum page_source { PAGE_SOURCE_HERE, PAGE_SOURCE_ALL, PAGE_SOURCE_NONE };

/* For the page of memtrace diff, which is that of AFTER. All borrowed. */
struct page_changes {
	json_t *changes;                /* what memtrace diff --json prints */
	const struct selection *before; /* BEFORE, whose memory over time is drawn beside */
};

/* What a page has beside the report. */
struct page_content {
	enum page_source source;
	uint64_t detail;                    /* so many times the usual stacks, blocks and bytes; 0 = 1 */
	const struct page_changes *changes; /* NULL for a single trace */
};

/* Writes the page to `path`, which is replaced once the page is whole. `r` was made with ANALYSIS_WINDOWS. *bytes gets
 * the size of the file. 0 or -MT_E*. */
int page_write(const struct report *r, const char *path, const struct page_content *c, uint64_t *bytes);

#endif
