#ifndef MT_HOST_MAP_H
#define MT_HOST_MAP_H

/* In a forked child: forgets which mapped files were recorded, so that they are recorded in its own log. */
void mt_map_reset(void);

struct mt_tables;
void mt_map_tables(struct mt_tables *t);

#endif
