#include "format/column.h"
int codec_encode_nodes(struct codec *codec, const struct mt_node *nodes, uint32_t count, uint32_t node_base, struct codec_buf *out)
{ (void)codec; (void)nodes; (void)count; (void)node_base; (void)out; return -CODEC_EARG; }
int codec_decode_nodes(struct codec *codec, const void *block, size_t bytes, struct mt_node *nodes)
{ (void)codec; (void)block; (void)bytes; (void)nodes; return -CODEC_EARG; }
