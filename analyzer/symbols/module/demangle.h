/* Names of native functions: demangled in full, and short enough for a table. */
#ifndef MT_SYMBOLS_MODULE_DEMANGLE_H
#define MT_SYMBOLS_MODULE_DEMANGLE_H

/* The language that mangled `symbol` ("c++", "rust"), or NULL when it isn't mangled. */
const char *name_language(const char *symbol);

/* Caller frees; NULL when `symbol` isn't mangled (or there is no memory): then it is its own name. */
char *name_demangle(const char *symbol);

/* `name` without parameter lists, return type, template arguments (`<..>`) and clone suffixes.
 * Caller frees; NULL when there is no memory. */
char *name_shorten(const char *name);

#endif
