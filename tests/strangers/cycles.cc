// truth(strong): leak Window 20.0M; each window and its document point to each other by shared_ptr
// truth(weak): passes open 0; the document's pointer is weak
// pauses: 0 0.001
// short
#include <cstring>
#include <memory>
#include <string>

#include "pause.h"

struct Document;
struct Window {
	std::shared_ptr<Document> shows;
	std::string pixels = std::string(8000, '.');
};
struct Document {
	std::shared_ptr<Window> shown;
	std::weak_ptr<Window> weakly;
	std::string text = std::string(2000, 't');
};

__attribute__((noinline)) static void open(bool strong)
{
	auto window = std::make_shared<Window>();
	window->shows = std::make_shared<Document>();
	window->shows->weakly = window;
	if (strong)
		window->shows->shown = window;
}

int main(int argc, char **argv)
{
	const bool strong = argc < 2 || !strcmp(argv[1], "strong");
	for (int turn = 0; turn < 2000; turn++) {
		open(strong);
		std::string event(15000, 'e');
		if (event[static_cast<size_t>(turn)] == 'x')
			return 1;
		wait_a_turn();
	}
}
