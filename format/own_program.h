/* How the shim knows the memtrace program, under whatever name and wherever it is: by a note in its own file. */
#ifndef MT_OWN_PROGRAM_H
#define MT_OWN_PROGRAM_H

#define MT_OWN_NOTE_NAME "memtrace" /* 9 bytes with its end */
#define MT_OWN_NOTE_TYPE 1

/* Written at file scope in the program's main file. */
#define MT_OWN_PROGRAM \
	__asm__(".pushsection .note.memtrace, \"a\", %note\n\t.balign 4\n\t.long 9, 0, 1\n" \
		"\t.asciz \"" MT_OWN_NOTE_NAME "\"\n\t.balign 4\n\t.popsection");

#endif
