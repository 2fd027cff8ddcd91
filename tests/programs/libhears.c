/* A library that hears of a program's end and answers for its environment, as other preloaded tools do. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static char known[] = "known here";

char *getenv(const char *name)
{
	char *(*real)(const char *) = (char *(*)(const char *))dlsym(RTLD_NEXT, "getenv");

	return strcmp(name, "LIBHEARS") ? real(name) : known;
}

static void end(const char *how, int status)
{
	if (write(1, how, strlen(how)) >= 0)
		syscall(SYS_exit_group, status);
	__builtin_trap();
}

void _exit(int status)
{
	end("_exit\n", status);
	__builtin_unreachable();
}

void _Exit(int status)
{
	end("_Exit\n", status);
	__builtin_unreachable();
}
