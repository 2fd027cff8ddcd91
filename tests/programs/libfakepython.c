/* What looks like CPython 3.11 and isn't: fakepython.c sets the thread state it hands out. */
#include <stdlib.h>

void *fake_state;
char PyCode_Type[512], PyUnicode_Type[512];
const unsigned long Py_Version = 0x030b07f0;
void *PyGILState_GetThisThreadState(void);
void *PyGILState_GetThisThreadState(void) { return fake_state; }
void *fake_malloc(size_t n); /* an interpreter is met when a stack leads through it */
void *fake_malloc(size_t n) { void *p = malloc(n); return p ? p : NULL; }
int _Py_IsFinalizing(void);
int _Py_IsFinalizing(void) { return 0; }
