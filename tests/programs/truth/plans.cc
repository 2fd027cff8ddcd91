// A database's planner: a node of a plan knows its parent by shared_ptr, so that no plan is ever freed
// truth: leak plans.cc plan
#include <memory>
#include <string>
#include <vector>

struct node {
	std::string text;
	std::vector<std::shared_ptr<node>> children;
	std::shared_ptr<node> parent;
	std::weak_ptr<node> back;
};

static bool weak;

static std::shared_ptr<node> plan(int query, int depth)
{
	auto n = std::make_shared<node>();
	n->text = std::string(600, static_cast<char>('a' + query % 26));
	for (int i = 0; depth && i < 3; i++) {
		auto child = plan(query, depth - 1);
		weak ? static_cast<void>(child->back = n) : static_cast<void>(child->parent = n);
		n->children.push_back(child);
	}
	return n;
}

static size_t cost(const std::shared_ptr<node> &n)
{
	size_t sum = n->text.size();
	for (auto &child : n->children)
		sum += cost(child);
	return sum;
}

int main(int argc, char **)
{
	size_t sum = 0;
	weak = argc > 1;
	for (int query = 0; query < 1500; query++) {
		std::vector<std::string> rows(200, std::string(500, 'x'));
		sum += cost(plan(query, 3)) + rows.size();
	}
	return sum == 0;
}
