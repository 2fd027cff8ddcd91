/*
 * Suppression files in LeakSanitizer's syntax: a line `leak:PATTERN` suppresses what was allocated through a function,
 * source file or library that contains PATTERN. `*` stands for any text, `^` at the beginning and `$` at the end of a
 * pattern for the beginning and the end of the name. Lines that begin with # and lines for other sanitizers are
 * skipped.
 */
#ifndef MT_DIAGNOSIS_GROWTH_SUPPRESSIONS_H
#define MT_DIAGNOSIS_GROWTH_SUPPRESSIONS_H

#include "analyzer/symbols/stacks.h"

struct suppress;

/* 0 or -MT_E* with file and line. */
int suppressions_read(struct suppress **out, const char *path);
void suppressions_free(struct suppress *s);

/* The pattern that matches a frame of the stack, or NULL. `s` may be NULL. */
const char *suppressions_find(const struct suppress *s, struct stacks *stacks, uint32_t stack);

#endif
