// truth(behind): backlog arrive 16.0M; six come for each five that go
// truth(keeps_up): passes arrive 800k; the queue rises to 200 in busy hours, and is empty in quiet ones
// pauses: 0 0.0005
// short
#include <cstring>
#include <deque>
#include <memory>

#include "pause.h"

using Job = std::unique_ptr<char[]>;
static std::deque<Job> queue;

__attribute__((noinline)) static void arrive(int count)
{
	for (int i = 0; i < count; i++)
		queue.push_back(std::make_unique<char[]>(4000));
}

static void serve(int count)
{
	while (count-- && !queue.empty())
		queue.pop_front();
}

int main(int argc, char **argv)
{
	const bool behind = argc < 2 || !strcmp(argv[1], "behind");
	for (int turn = 0; turn < 4000; turn++) {
		arrive(behind || turn % 400 < 200 ? 6 : 3);
		serve(5);
		wait_a_turn();
	}
}
