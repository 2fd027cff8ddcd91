/* Runs a Python program as embedding ones do. usage: embed PROGRAM.py ARGUMENT... */
#include <Python.h>

__attribute__((noinline)) static int run_python(const char *path)
{
	FILE *file = fopen(path, "r");
	int status = file ? PyRun_SimpleFileEx(file, path, 1) : 2;

	__asm__ volatile("" ::: "memory"); /* no tail call */
	return status;
}

int main(int argc, char **argv)
{
	wchar_t *words[64];
	int status;

	if (argc < 2 || argc > 64)
		return 2;
	for (int i = 1; i < argc; i++)
		words[i - 1] = Py_DecodeLocale(argv[i], NULL);
	Py_Initialize();
	PySys_SetArgvEx(argc - 1, words, 0);
	status = run_python(argv[1]);
	return Py_FinalizeEx() < 0 ? 3 : status;
}
