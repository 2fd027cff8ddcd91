#ifndef MT_BASE_ENVIRON_H
#define MT_BASE_ENVIRON_H

/* The C library's getenv(), which may be another one's in the program (bash has its own, which allocates). Borrowed: as
 * long as the program leaves it. NULL = there is none, also before the loader has relocated the shim. */
char *mt_environ_get(const char *name);

/* As setenv(), but in memory of our own; called only in the constructor. The C library's setenv() would allocate on the
 * program's heap, and a later one would free there a block that the program never asked for. */
void mt_environ_set(const char *name, const char *value);

#endif
