/* A store of the LSM kind: writes go into a table in memory, which is written out and freed; its index is read back, and merges drop the old
 * files, but not their indexes */
// truth: leak lsm.c load_index
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct entry {
	struct entry *next;
	char key[64], value[400];
};

static char *indexes[4096];

static void load_index(int file)
{
	indexes[file] = malloc(90000);
	memset(indexes[file], file, 90000);
}

static struct entry *put(struct entry *table, int number)
{
	struct entry *e = calloc(1, sizeof(*e));

	snprintf(e->key, sizeof(e->key), "key%d", number);
	snprintf(e->value, sizeof(e->value), "value%d", number);
	e->next = table;
	return e;
}

static void flush(struct entry *table)
{
	while (table) {
		struct entry *next = table->next;

		free(table);
		table = next;
	}
}

int main(int argc, char **argv)
{
	for (int file = 0; file < 400; file++) {
		struct entry *table = NULL;

		for (int i = 0; i < 500; i++)
			table = put(table, i);
		flush(table);
		load_index(file);
		if (argc > 1 && file >= 8)
			free(indexes[file - 8]);
	}
	printf("%s\n", argv[0]);
	return 0;
}
