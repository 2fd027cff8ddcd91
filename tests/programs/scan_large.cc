/* Many blocks in lists that a table leads to, but for one list: scan_large COUNT BYTES. */
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <unistd.h>
#include <vector>
struct node { node *next; };
std::vector<node *> table;
int main(int, char **argv) {
	const size_t count = strtoul(argv[1], nullptr, 10), bytes = strtoul(argv[2], nullptr, 10);
	table.resize(count / 10);
	for (size_t i = 0; i < count; i++) {
		node *n = (node *)malloc(bytes);
		memset((void *)n, 0x11, bytes);
		n->next = table[i % table.size()];
		table[i % table.size()] = n;
	}
	table[0] = nullptr;
	puts("ready"); fflush(stdout);
	char line[8];
	return read(0, line, 1) < 0;
}
