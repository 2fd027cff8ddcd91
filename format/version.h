/* The version of this source: here and nowhere else. scripts/version prints it for who is no C. */
#ifndef MT_FORMAT_VERSION_H
#define MT_FORMAT_VERSION_H

#define MEMTRACE_VERSION "0.2.0"
#define MEMTRACE_DATE    "2026-11-23" /* of that version: in man pages, on files of wheels */

#endif
