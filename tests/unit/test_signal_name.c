#include "analyzer/util/system/signal_name.h"
#include "tests/unit/test.h"

#include <string.h>

TEST(names_are_the_c_librarys)
{
	for (int i = -1; i < 70; i++) {
		const char *ours = signal_name(i), *theirs = sigabbrev_np(i);
		CHECK(!ours == !theirs);
		CHECK(!ours || !strcmp(ours, theirs));
	}
}

TEST_MAIN
