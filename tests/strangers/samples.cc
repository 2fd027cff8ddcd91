// truth: leak sample 83.9M; a vector of samples is only pushed to: it doubles, and has room for 524,288 of them at the end
// pauses: 0 0.000005
#include <cstdlib>
#include <vector>

#include "pause.h"

struct Sample {
	double values[20];
};
static std::vector<Sample> samples;

__attribute__((noinline)) static void sample(int i)
{
	samples.push_back(Sample{ { double(i) } });
}

int main()
{
	for (int i = 0; i < 400000; i++) {
		sample(i);
		void *volatile reply = malloc(300 + static_cast<size_t>(i) % 200);
		free(reply);
		wait_a_turn();
	}
}
