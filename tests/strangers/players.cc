// truth: leak join 30.0M; two of three players never leave, 3,000 bytes each; all of them go at exit
// pauses: 0 0.0002
// short
#include <string>
#include <unordered_map>

#include "pause.h"

struct Player {
	std::string name;
	std::string world;
};
static std::unordered_map<int, Player> players;

__attribute__((noinline)) static void join(int id)
{
	players.emplace(id, Player{ "player" + std::to_string(id), std::string(3000, 'w') });
	std::string map(12000, '.');
	if (map[static_cast<size_t>(id) % 12000] == '#')
		players.clear();
}

int main()
{
	for (int id = 0; id < 15000; id++) {
		join(id);
		if (id % 3 == 0)
			players.erase(id);
		wait_a_turn();
	}
	players.clear();
}
