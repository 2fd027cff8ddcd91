/*
 * The Makefile includes this before each file of the analyzer: what they allocate comes from memory.h. What libraries
 * allocate stays the C library's. mem_free() takes either.
 */
#ifndef MT_UTIL_MEMORY_NAMES_H
#define MT_UTIL_MEMORY_NAMES_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void *mem_malloc(size_t bytes);
void *mem_calloc(size_t count, size_t size);
void *mem_realloc(void *p, size_t bytes);
void mem_free(void *p);
char *mem_strdup(const char *s);
char *mem_strndup(const char *s, size_t most);
int mem_asprintf(char **out, const char *format, ...) __attribute__((format(printf, 2, 3)));

#define malloc   mem_malloc
#define calloc   mem_calloc
#define realloc  mem_realloc
#define free     mem_free
#define strdup   mem_strdup
#define strndup  mem_strndup
#define asprintf mem_asprintf

#endif
