/* A database with a System V segment for each session, as older ones have: who hangs up without a word keeps his */
// truth: leak sessions.c open_session
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/shm.h>
#include <unistd.h>

struct session {
	int id;
	char *memory;
};

static struct session open_session(void)
{
	struct session s;

	s.id = shmget(IPC_PRIVATE, 1 << 20, IPC_CREAT | 0600);
	s.memory = shmat(s.id, NULL, 0);
	if (s.memory == (void *)-1)
		exit(3);
	memset(s.memory, 1, 1 << 20);
	return s;
}

static void close_session(struct session s)
{
	shmdt(s.memory);
	shmctl(s.id, IPC_RMID, NULL);
}

int main(int argc, char **argv)
{
	int twin = argc > 1, kept = 0;
	static struct session all[256];

	for (int i = 0; i < 240; i++) {
		struct session s = open_session();
		void *row = malloc(20000);

		memset(row, 2, 20000);
		usleep(3000);
		free(row);
		if (i % 2 == 0 || twin)
			close_session(s);
		else
			all[kept++] = s;
	}
	printf("%d sessions kept\n", kept);
	for (int i = 0; i < kept; i++)
		close_session(all[i]);
	return 0;
}
