// Who owns what is known here, so that the commands' answers can be compared: owners [SECONDS [kill]]
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <memory>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#define APART __attribute__((noinline))

static std::vector<char *> kept;
static volatile char sink;

APART static void load_weights(std::vector<double> &weights, size_t n)
{
	weights.reserve(n);
	for (size_t i = 0; i < n; i++)
		weights.push_back(double(i));
}

APART static char *keep_line(size_t bytes)
{
	char *line = static_cast<char *>(malloc(bytes));
	memset(line, 1, bytes);
	return line;
}

APART static void touch_temporary(size_t bytes)
{
	std::unique_ptr<char[]> t(new char[bytes]);
	sink = *static_cast<volatile char *>(t.get());
}

APART static void *map_pages(size_t bytes)
{
	return mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

APART static void ask_too_much()
{
	void *volatile p = malloc(size_t(1) << 50);
	free(p);
}

static void nap(double seconds)
{
	timespec t = { time_t(seconds), long((seconds - double(time_t(seconds))) * 1e9) };
	nanosleep(&t, nullptr);
}

int main(int argc, char **argv)
{
	double seconds = argc > 1 ? atof(argv[1]) : 0;
	kept.reserve(1000);
	{
		std::vector<double> weights;
		load_weights(weights, 1 << 20); // 8 MiB: the peak
	}
	for (int i = 0; i < 1000; i++) {
		kept.push_back(keep_line(1024)); // 1000 KiB, for ever
		touch_temporary(4096); // it works: most of what it makes passes
		if (seconds > 0)
			nap(seconds / 1000);
	}
	map_pages(4 << 20);
	ask_too_much();
	pid_t child = fork();
	if (child == 0) {
		std::vector<double> weights;
		load_weights(weights, 1 << 17); // 1 MiB
		_exit(3);
	}
	waitpid(child, nullptr, 0);
	if (argc > 2)
		raise(SIGKILL);
	return 0;
}
