// truth: passes node 655k; a tree for each of 25 documents, freed before the next
// pauses: 0 0.00002
#include "pause.h"

struct node {
	struct node *left, *right;
	char text[64];
};

static __attribute__((noinline)) struct node *node(int depth)
{
	struct node *made = calloc(1, sizeof(*made));
	if (depth > 0) {
		made->left = node(depth - 1);
		made->right = node(depth - 1);
	}
	return made;
}

static void drop(struct node *tree)
{
	if (!tree)
		return;
	drop(tree->left);
	drop(tree->right);
	wait_a_turn();
	free(tree);
}

int main(void)
{
	for (int document = 0; document < 25; document++)
		drop(node(12));
	return 0;
}
