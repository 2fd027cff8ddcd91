/*
 * The page: a report as one HTML file that needs nothing else. It holds the verdict as text, which reads without
 * scripts; the data of report --json and what a moment or range needs beside, gzip in base64; and the scripts and
 * styles of page/, which the build bundles (page_bundle.h).
 *
 * Its size is bounded whatever the trace: PAGE_MOST bytes. Where there is more, less of the small sites is in it, and
 * it says so.
 */
#ifndef MT_REPORT_PAGE_H
#define MT_REPORT_PAGE_H

#include "analyzer/report/diff.h"
#include "analyzer/report/report.h"

enum { PAGE_MOST = 5 << 20 };

/* What it shows of the source of a program: lines of files below the working directory, of all files, of none. */
enum page_source { PAGE_SOURCE_HERE, PAGE_SOURCE_ALL, PAGE_SOURCE_NONE };

/* Of two traces: the page is AFTER's. All borrowed. */
struct page_changes {
	json_t *changes;                /* what memtrace diff --json prints */
	const struct selection *before; /* its memory over time stands beside */
};

/* Writes it to `path`, which is replaced when it is whole. report_make() was asked for ANALYSIS_WINDOWS; `changes` is
 * NULL for one trace. *bytes is the file's size. 0 or -MT_E*. */
int page_write(const struct report *r, const char *path, enum page_source source, const struct page_changes *changes,
	       uint64_t *bytes);

#endif
