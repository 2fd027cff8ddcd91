/* A compiler that runs as a server: each unit has an arena that goes with it, but what its tokens said is interned for good */
// truth: leak compiler.cc intern
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

struct Node {
	std::vector<std::unique_ptr<Node>> children;
	const char *text;
	double value[12];
};

static std::unordered_map<std::string, char *> interned;

static const char *intern(const std::string &word)
{
	auto found = interned.find(word);
	if (found != interned.end())
		return found->second;
	char *text = new char[200 + word.size()];
	std::strcpy(text, word.c_str());
	return interned[word] = text;
}

static std::unique_ptr<Node> parse(int unit, int depth, int &next)
{
	auto node = std::make_unique<Node>();
	node->text = intern("unit" + std::to_string(unit) + "_symbol" + std::to_string(next++));
	for (int i = 0; depth && i < 6; i++)
		node->children.push_back(parse(unit, depth - 1, next));
	return node;
}

static double emit(const Node &node)
{
	double sum = std::strlen(node.text);
	for (auto &child : node.children)
		sum += emit(*child);
	return sum;
}

int main(int argc, char **argv)
{
	double sum = 0;
	for (int unit = 0; unit < 150; unit++) {
		int next = 0;
		auto tree = parse(unit, 3, next);
		sum += emit(*tree);
		if (argc > 1) {
			for (auto &word : interned)
				delete[] word.second;
			interned.clear();
		}
	}
	std::printf("%.0f\n", sum);
}
