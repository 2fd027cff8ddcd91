/* Asks for a variable and ends, all in ways that libhears.so has of its own. */
#include "test.h"

int main(int argc, char **argv)
{
	const char *known = getenv("LIBHEARS");

	say("%s\n", known ? known : "unknown");
	if (argc > 1 && *argv[1] == '_')
		_exit(5);
	_Exit(6);
}
