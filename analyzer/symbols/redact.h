/*
 * Names that say nothing, for a trace that is shown to others: each word of a name becomes a hash, the same word the
 * same hash. What stays:
 *
 *   numbers          but those of arguments
 *   public words     of the tables of rules (frame_rules.def, categories.def, builtin_suppressions.def) and of
 *                    redact.def, so that a redacted trace reads as the original: std::vector<Mine> is still std's
 *   known libraries  functions and files of libc, Python, PyTorch, CUDA and others (redact.def), not where they lie
 *
 * Hashes are keyed: without the salt nobody can try names. Texts that are returned live as long as the struct redact,
 * or are the one that was given. NULL is given back for NULL, and where there is no memory.
 */
#ifndef MT_SYMBOLS_REDACT_H
#define MT_SYMBOLS_REDACT_H

#include <stdbool.h>
#include <stddef.h>

enum redact_kind {
	REDACT_TEXT,     /* words: marks, labels, tags, names of threads and programs */
	REDACT_PATH,     /* of a program, a library, a source file */
	REDACT_ARGUMENT, /* of a command line: numbers, too, but of options that limit memory */
	REDACT_WHOLE     /* all of it: hosts, ids */
};

struct redact;

/* `salt` NULL: a random one. NULL when there is no memory or nothing random. */
struct redact *redact_new(const char *salt);
void redact_free(struct redact *); /* NULL is fine */

const char *redact(struct redact *, enum redact_kind kind, const char *text);

/* `from`: path of its library or, in Python, of its file; may be NULL. */
const char *redact_function(struct redact *, const char *function, const char *from);
/* Source file of a frame in that library. */
const char *redact_source(struct redact *, const char *file, const char *library);

/* NAME=VALUE of the environment. */
const char *redact_variable(struct redact *, const char *setting);

/* In place: of a library that is not known another one, as long. */
void redact_build_id(const struct redact *, const char *library, void *build_id, size_t n);

/* Is it a library, an interpreter or a Python file that many have? */
bool redact_is_known(const char *path);

#endif
