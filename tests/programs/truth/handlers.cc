/* A server of threads, one for each request of a burst, each with glibc's arena of its own; the burst is over, and the arenas keep it */
// truth: retained
#include <chrono>
#include <cstdio>
#include <cstring>
#include <malloc.h>
#include <string>
#include <thread>
#include <vector>

static std::vector<std::string> statistics[24];
static bool twin, trim;

static void handle(int number)
{
	std::vector<std::vector<char>> rows;
	for (int i = 0; i < 900; i++) {
		rows.emplace_back(40000 + number * 16, 'x');
		if (i % 30 == 0 && !twin)
			statistics[number].emplace_back(2000, 'y');
	}
	std::this_thread::sleep_for(std::chrono::milliseconds(20));
}

int main(int argc, char **argv)
{
	twin = argc > 1 && !std::strcmp(argv[1], "twin");
	trim = argc > 1 && !std::strcmp(argv[1], "trim");
	std::vector<std::thread> burst;
	for (int i = 0; i < 24; i++)
		burst.emplace_back(handle, i);
	for (auto &thread : burst)
		thread.join();
	if (trim)
		malloc_trim(0);
	for (int request = 0; request < 300; request++) {
		std::vector<char> row(3000, 'z');
		std::this_thread::sleep_for(std::chrono::milliseconds(8));
	}
	if (FILE *statm = std::fopen("/proc/self/statm", "r")) {
		long size, resident, shared;
		if (std::fscanf(statm, "%ld %ld %ld", &size, &resident, &shared) == 3)
			std::printf("resident %.1f MiB\n", (resident - shared) / 256.0);
		std::fclose(statm);
	}
}
