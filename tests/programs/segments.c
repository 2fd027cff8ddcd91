/* Segments of System V: eight are attached, one twice, and five are detached. Says how much is attached at the end and was at most. */
#include <sys/shm.h>

#include "test.h"

#define BYTES 300000ul

__attribute__((noinline)) static char *attach(int id, int how)
{
	char *p = shmat(id, NULL, how);

	CHECK(p != (void *)-1);
	return p;
}

int main(void)
{
	const unsigned long each = (BYTES + 4095) & ~4095ul;
	char *at[9];

	for (int i = 0; i < 8; i++) {
		int id = shmget(IPC_PRIVATE, BYTES, IPC_CREAT | 0600);

		CHECK(id >= 0);
		memset(at[i] = attach(id, 0), i, BYTES);
		if (i == 7)
			at[8] = attach(id, SHM_RDONLY);
		CHECK(shmctl(id, IPC_RMID, NULL) == 0); /* with its last detachment it goes */
	}
	CHECK(at[8][5] == 7);
	for (int i = 1; i < 6; i++)
		CHECK(shmdt(at[i]) == 0);
	CHECK(shmdt(at[0] + 4096) != 0);
	printf("%lu %lu\n", 4 * each, 9 * each);
	return 0;
}
