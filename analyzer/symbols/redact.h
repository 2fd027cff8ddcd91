/*
 * Redacting makes names meaningless, for a trace that is shown to others: each word of a name becomes a hash, the same
 * word always the same hash. What stays:
 *
 *   numbers          except in arguments of a command line
 *   public words     of the tables of rules (frame_rules.def, categories.def, builtin_suppressions.def) and of
 *                    redact.def, so that a redacted trace reads as the original: std::vector<Mine> is still std's
 *   known libraries  functions and files of libc, Python, PyTorch, CUDA and others (redact.def), not where they lie
 *
 * Hashes are keyed by a salt, without which nobody can find names by trying them. A text that is returned lives as long
 * as the struct redact, or is the one that was given. NULL = NULL was given, or there is no memory.
 */
#ifndef MT_SYMBOLS_REDACT_H
#define MT_SYMBOLS_REDACT_H

#include <stdbool.h>
#include <stddef.h>

enum redact_kind {
	REDACT_TEXT,     /* words: marks, labels, tags, names of threads and programs */
	REDACT_PATH,     /* of a program, a library, a source file */
	REDACT_ARGUMENT, /* of a command line: its numbers too, except those of options that limit memory */
	REDACT_WHOLE     /* hosts, ids: the whole text becomes one hash */
};

struct redact;

/* `salt` NULL: a random one is made. Returns NULL if there is no memory or no random number. */
struct redact *redact_new(const char *salt);
void redact_free(struct redact *); /* NULL is fine */

const char *redact(struct redact *, enum redact_kind kind, const char *text);

/* A function's name. `from` is the path of its library or, in Python, of its source file; may be NULL. */
const char *redact_function(struct redact *, const char *function, const char *from);
/* The source file of a frame in that library. */
const char *redact_source(struct redact *, const char *file, const char *library);

/* NAME=VALUE of the environment. */
const char *redact_variable(struct redact *, const char *setting);

/* Replaces, in place, the `n` bytes of a build id by others, unless the library is a known one. */
void redact_build_id(const struct redact *, const char *library, void *build_id, size_t n);

/* Whether the path is that of a known library, interpreter or Python file (redact.def), which many have. */
bool redact_is_known(const char *path);

#endif
