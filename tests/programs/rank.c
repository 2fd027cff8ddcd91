/* One rank of a small training of some milliseconds: weights, a loop of marked steps with activations, and what tests plant.
 * usage: rank WEIGHTS_KIB [extra=KIB] [leak=KIB] [die=SIGNAL|exit] [noise=SEED] [pause=1]
 * With pause it tells that it is there, and stays until it is killed. */
#include "memtrace.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { STEPS = 60, LAYERS = 8, MICROSECONDS = 300 };

static void *held[STEPS * 2 + LAYERS + 1];
static unsigned holds;
static unsigned long state = 1;

static unsigned long noise(void)
{
	state = state * 6364136223846793005ul + 1442695040888963407ul;
	return state >> 33;
}

static void hold(void *p)
{
	if (!p)
		exit(9);
	held[holds++] = p;
}

__attribute__((noinline)) static void load_weights(size_t kib)
{
	for (int i = 0; i < LAYERS; i++)
		hold(malloc(kib * 1024 / LAYERS));
}

__attribute__((noinline)) static void gather_checkpoint(size_t kib)
{
	hold(malloc(kib * 1024));
}

__attribute__((noinline)) static void keep_history(size_t kib)
{
	hold(malloc(kib * 1024));
}

__attribute__((noinline)) static void forward(void)
{
	void *layer[LAYERS];
	for (int i = 0; i < LAYERS; i++)
		if (!(layer[i] = malloc(20000 + noise() % 4000)))
			exit(9);
	for (int i = 0; i < LAYERS; i++)
		free(layer[i]);
}

int main(int argc, char **argv)
{
	size_t weights = argc > 1 ? strtoul(argv[1], NULL, 10) : 1024, extra = 0, leak = 0;
	int pauses = 0;
	const char *die = "";
	for (int i = 2; i < argc; i++) {
		const char *value = strchr(argv[i], '=') + 1;
		if (!strncmp(argv[i], "extra", 5))
			extra = strtoul(value, NULL, 10);
		else if (!strncmp(argv[i], "leak", 4))
			leak = strtoul(value, NULL, 10);
		else if (!strncmp(argv[i], "die", 3))
			die = value;
		else if (!strncmp(argv[i], "pause", 5))
			pauses = 1;
		else
			state = strtoul(value, NULL, 10) * 2 + 1;
	}
	load_weights(weights);
	if (extra)
		gather_checkpoint(extra);
	for (unsigned step = 0; step < STEPS; step++) {
		memtrace_step(step);
		forward();
		if (leak)
			keep_history(leak);
		usleep(MICROSECONDS);
	}
	if (pauses) {
		write(1, "\n", 1);
		pause();
	}
	if (!strcmp(die, "exit"))
		return 1;
	if (*die)
		raise(atoi(die));
	return 0;
}
