#ifndef MT_ENVIRON_H
#define MT_ENVIRON_H

/* As setenv(), but in memory of our own; called only in the constructor. The C library's setenv() would allocate on the
 * program's heap, and a later one would free there a block that the program never asked for. */
void mt_environ_set(const char *name, const char *value);

#endif
