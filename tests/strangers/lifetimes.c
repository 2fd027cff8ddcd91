// truth: passes live 750k; of what comes nine tenths go soon, the others at any time within a tenth of the run
// pauses: 0 0.0001
#include <string.h>

#include "pause.h"

enum { TURNS = 50000, LONG = 5000 };
static void *leaving[TURNS + LONG][4];

static __attribute__((noinline)) void *live(void)
{
	return memset(malloc(1500), 1, 1500);
}

int main(void)
{
	srand(3);
	for (int turn = 0; turn < TURNS; turn++) {
		void *made = live();
		const int until = turn + 1 + (rand() % 10 ? rand() % 50 : rand() % LONG);
		for (int i = 0; i < 4 && made; i++)
			if (!leaving[until][i]) {
				leaving[until][i] = made;
				made = NULL;
			}
		free(made);
		for (int i = 0; i < 4; i++)
			free(leaving[turn][i]);
		wait_a_turn();
	}
	return 0;
}
