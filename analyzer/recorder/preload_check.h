/* Whether the dynamic loader will honour LD_PRELOAD for a command. */
#ifndef MT_RECORDER_PRELOAD_CHECK_H
#define MT_RECORDER_PRELOAD_CHECK_H

/* Finds `command` as execvp would and reads the file, following #! lines to the interpreter. Returns 0, or an error
 * that says why nothing would be recorded: not found, linked statically, setuid, for another machine. */
int preloadable(const char *command);

#endif
