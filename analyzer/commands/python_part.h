/* Parts of memtrace that are modules of the Python package libmemtrace: beside the program in a source tree, in
 * share/memtrace where it was installed, in the interpreter's own packages where it came as a wheel. */
#ifndef MT_COMMANDS_PYTHON_PART_H
#define MT_COMMANDS_PYTHON_PART_H

/* The command that runs such a module, which is not recorded, with these arguments; its environment becomes ours. Ends
 * with NULL, to be freed; NULL: no memory. */
char **python_part_words(const char *module, int argc, char *const *argv);

/* Becomes it, with all words but argv[0], as they were typed. Returns only with an error. */
int python_part_become(const char *module, int argc, char *const *argv);

#endif
