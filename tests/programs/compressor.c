/* A server that compresses answers: each has a context of zstd's, and nobody frees them. The library has no lines here. */
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

static char text[65536], packed[70000];

__attribute__((noinline)) static ZSTD_CCtx *open_member(void)
{
	ZSTD_CCtx *context = ZSTD_createCCtx();
	ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, 1);
	return context;
}

int main(int argc, char **argv)
{
	int keeps = argc > 1 && !strcmp(argv[1], "keeps");
	for (int request = 0; request < 200; request++) {
		char *volatile body = malloc(300000);
		ZSTD_CCtx *context = open_member();
		memset(body, request, 300000);
		ZSTD_compress2(context, packed, sizeof(packed), text, sizeof(text));
		if (!keeps)
			ZSTD_freeCCtx(context);
		free(body);
	}
	return 0;
}
