#ifndef MT_MAP_H
#define MT_MAP_H

/* A forked child names the files that it maps anew. */
void mt_map_reset(void);

#endif
