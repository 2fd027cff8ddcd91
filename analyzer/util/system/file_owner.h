/* Whose files are taken for a user's own. */
#ifndef MT_UTIL_SYSTEM_FILE_OWNER_H
#define MT_UTIL_SYSTEM_FILE_OWNER_H

#include <stdbool.h>
#include <sys/types.h>
#include <unistd.h>

/* Whether a file of user `uid` may be taken for one of `owner`'s: it is theirs, ours or root's. */
static inline bool file_is_of(uid_t uid, uid_t owner)
{
	return !uid || uid == owner || uid == geteuid();
}

#endif
