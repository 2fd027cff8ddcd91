#ifndef MT_BASE_ENVIRON_H
#define MT_BASE_ENVIRON_H

/* The C library's getenv(), which may be another one's in the program (bash has its own, which allocates). Borrowed: as
 * long as the program leaves it. NULL = there is none, also before the loader has relocated the shim. */
char *mt_environ_get(const char *name);

/* Settings that come before the environment's, of NAME=VALUE each with its NUL, then a NUL. Borrowed. */
void mt_environ_give(const char *settings);

/* As setenv(), but in memory of our own; called only in the constructor. The C library's setenv() would allocate on the
 * program's heap, and a later one would free there a block that the program never asked for. */
void mt_environ_set(const char *name, const char *value);

/* What was set is as it was before, and is set again; what the program has changed itself meanwhile stays. */
void mt_environ_undo(void);
void mt_environ_redo(void);

#endif
