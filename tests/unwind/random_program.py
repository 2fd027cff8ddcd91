#!/usr/bin/env python3
"""Writes a C program of random functions that call each other, directly and through pointers, and allocate.

usage: random_program.py SEED FUNCTIONS > program.c

Frames differ in every way that matters to an unwinder: size, saved registers, frame pointers, variable-length
arrays, realigned stacks, arguments on the stack, big arrays. Calls go to functions with higher numbers, so every run ends.
"""
import random
import sys

HEAD = """/* Made by tests/unwind/random_program.py. */
#include <alloca.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#define FRAME __attribute__((noinline)) static long
#define KEEP(p) __asm__ volatile("" : : "r"(p) : "memory")

static unsigned seed = 1;
static long budget;

static unsigned up_to(unsigned n)
{
	seed = seed * 1664525 + 1013904223;
	return (seed >> 8) % n;
}

__attribute__((noinline)) static void allocate(void)
{
	void *p = malloc(up_to(200));

	KEEP(p);
	free(up_to(4) ? p : realloc(p, up_to(400) + 1));
}
"""


def body(rng, i, count):
    """The statements of function i: what makes its frame, then calls."""
    lines = ["	if (--budget < 0)", "		return a;"]
    for _ in range(rng.choice((0, 0, 0, 1, 2))):
        kind = rng.randrange(5)
        if kind == 0:
            lines.append("	{ char *p = alloca(up_to(%d) + 1); KEEP(p); a += p[0] & 1; }" % rng.choice((16, 100, 3000)))
        elif kind == 1:
            lines.append("	volatile char room%d[%d]; room%d[0] = 1; KEEP(room%d);"
                         % (len(lines), rng.choice((8, 40, 200, 5000, 70000)), len(lines), len(lines)))
        elif kind == 2:
            n = len(lines)
            lines.append("	__attribute__((aligned(%d))) volatile char even%d[64]; even%d[1] = 2; KEEP(even%d);"
                         % (rng.choice((32, 64, 128)), n, n, n))
        elif kind == 3:
            lines.append("	char vla%d[up_to(%d) + 1]; KEEP(vla%d);" % (len(lines), rng.choice((10, 500)), len(lines)))
        else:
            lines.append("	long r1 = a * 3, r2 = b ^ a, r3 = a - b, r4 = a + 7 * b; KEEP(r1 ^ r2); allocate();")
            lines.append("	a += r1 ^ (r2 + r3) ^ r4;")
            break
    for _ in range(rng.randrange(1, 5)):
        if i + 1 >= count or rng.random() < 0.25:
            lines.append("	allocate();")
            continue
        callee = rng.randrange(i + 1, min(count, i + 12))
        kind = rng.randrange(4)
        if kind == 0:
            lines.append("	a += table[%d + up_to(%d)](a, b, 3);" % (i + 1, min(count - i - 1, 8)))
        elif kind == 1:
            lines.append("	if (up_to(3)) b += f%d(b, a, 1);" % callee)
        elif kind == 2:
            lines.append("	a ^= many(table[%d], a, 2, 3, 4, 5, 6, b, 8, 9L);" % callee)
        else:
            lines.append("	b = f%d(a, 2, b);" % callee)
    if rng.random() < 0.3:
        lines.append("	return table[%d](b, a, 1);" % rng.randrange(i + 1, count) if i + 1 < count else "	return a;")
    else:
        lines.append("	KEEP(&a);")
        lines.append("	return a + b;")
    return lines


def main():
    rng = random.Random(int(sys.argv[1]))
    count = int(sys.argv[2])
    print(HEAD)
    for i in range(count):
        print("static long f%d(long a, long b, long c);" % i)
    print("static long (*const table[])(long, long, long) = {", ", ".join("f%d" % i for i in range(count)), "};")
    print("""
FRAME many(long (*f)(long, long, long), long a, long b, long c, long d, long e, long g, long h, long i, long last)
{
	long n = f(a + b, c + d, last);

	KEEP(&n);
	return n + e + g + h + i;
}
""")
    for i in range(count):
        print("\n__attribute__((noinline)) static long f%d(long a, long b, long c)\n{" % i)
        print("\n".join(body(rng, i, count)))
        print("}")
    print("""
int main(void)
{
	long n = 0;

	for (int i = 0; i < 400; i++) {
		budget = 100;
		n += table[up_to(20)](i, n, 1);
	}
	KEEP(n);
	return 0;
}""")


main()
