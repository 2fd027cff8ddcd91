#include "analyzer/report/page/page_bundle.h"

/* MT_PAGE_BUNDLE is the folder with the files; the Makefile says when they are new. */
#define EMBED(symbol, file) \
	__asm__(".pushsection .rodata\n" \
		".global " #symbol "\n" #symbol ":\n" \
		".incbin \"" MT_PAGE_BUNDLE "/" file "\"\n" \
		".byte 0\n" \
		".popsection\n")

EMBED(page_script, "page.js");
EMBED(page_style, "page.css");
EMBED(page_script_hash, "page.js.hash");
EMBED(page_style_hash, "page.css.hash");
