#ifndef MT_ENVIRON_H
#define MT_ENVIRON_H

/* As setenv, of the constructor alone: in memory of our own. The C library's takes the program's heap, and its next
 * setenv would give back a block there that the program has never asked for. */
void mt_environ_set(const char *name, const char *value);

#endif
