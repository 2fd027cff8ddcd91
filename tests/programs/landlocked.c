/* Takes itself the right to open any file for writing, by landlock, and goes on.
 *   landlocked COUNT */
#include "test.h"

#include <linux/landlock.h>
#include <sys/prctl.h>

static void *kept[1000];

int main(int argc, char **argv)
{
	struct landlock_ruleset_attr rules = { .handled_access_fs =
						       LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_MAKE_REG |
						       LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_EXECUTE };
	long count = argc > 1 ? atol(argv[1]) : 1000, fd;

	kept[0] = malloc(1);
	fd = syscall(SYS_landlock_create_ruleset, &rules, sizeof(rules), 0);
	if (fd < 0) {
		say("no landlock\n");
		return 3;
	}
	CHECK(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	CHECK(!syscall(SYS_landlock_restrict_self, (int)fd, 0));
	CHECK(!close((int)fd));
	for (long i = 0; i < count; i++) {
		free(kept[i % 1000]);
		kept[i % 1000] = malloc(50 + i % 500);
	}
	say("done\n");
	return 6;
}
