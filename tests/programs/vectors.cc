// growing FORM in C++: what fills or grows is a map, a list of vectors, or one vector that doubles: with each unit of work (block), in a warm-up only (filled), or while nothing else is done (pushes).
#include <chrono>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

namespace {
constexpr int units_all = 600;
constexpr size_t each = 100000;

struct Server {
	std::vector<std::vector<char>> list;
	std::unordered_map<int, std::string> cache;
	std::vector<double> series;
	size_t kept = 0, units = 0;

	void keep()
	{
		list.emplace_back(each, 'x');
		kept += each;
	}

	void insert(int from, int count)
	{
		for (int k = 0; k < count; k++) {
			cache.emplace(from + k, std::string(100, 'y'));
			kept += 101;
		}
	}

	void answer()
	{
		std::vector<std::unique_ptr<char[]>> parts;
		for (size_t i = 0; i < 10; i++)
			parts.emplace_back(new char[30000 + 8000 * i]());
		std::this_thread::sleep_for(std::chrono::milliseconds(8));
		units++;
	}
};
}

int main(int argc, char **argv)
{
	std::string form = argc > 1 ? argv[1] : "fill";
	auto server = std::make_unique<Server>();
	auto begin = std::chrono::steady_clock::now();
	if (form == "fill" || form == "works")
		for (int i = 0; i < units_all; i++)
			server->keep();
	if (form == "map")
		server->insert(0, 400000);
	for (int i = 0; form == "pushes" && i < 10 * units_all; i++) {
		server->series.insert(server->series.end(), each / sizeof(double) / 10, 1.5);
		server->kept += each / 10;
		std::this_thread::sleep_for(std::chrono::microseconds(800));
	}
	for (int i = 0; form != "fill" && form != "map" && form != "pushes" && i < units_all; i++) {
		server->answer();
		if (form == "keeps" || (form == "warmup" && i < units_all / 4))
			server->keep();
		if (form == "cache")
			server->insert(1000 * i, 700);
		if (form == "block" || (form == "filled" && i < units_all / 4)) {
			server->series.insert(server->series.end(), each / sizeof(double), 1.5);
			server->kept += each;
		}
	}
	std::chrono::duration<double> lasted = std::chrono::steady_clock::now() - begin;
	printf("ACCOUNT {\"kept_bytes\": %zu, \"units\": %zu, \"seconds\": %.3f}\n", server->kept, server->units, lasted.count());
	return 0;
}
