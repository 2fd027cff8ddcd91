/* Words for a shell, of text that anybody chose: what is printed to be copied or for eval. */
#ifndef MT_UTIL_SHELL_H
#define MT_UTIL_SHELL_H

/* The text in quotes, which POSIX's shells read as it was, after `eval $(...)` without quotes too, where blanks are
 * joined and patterns replaced by names of files. ASCII without control characters, or characters that show. (Newlines
 * at its end are lost.) Allocated, NULL when there is no memory. */
char *shell_quoted(const char *text);

/* The same without quotes where it needs none. */
char *shell_word(const char *text);

#endif
