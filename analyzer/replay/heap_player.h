/* The child of memtrace in which the calls of a heap are made again; see heap_wire.h. */
#ifndef MT_REPLAY_HEAP_PLAYER_H
#define MT_REPLAY_HEAP_PLAYER_H

/* Makes the calls that come over `socket`, and answers there. Nothing else may run in the process, nor have asked its
 * heap for much before. Returns 0, or 1 where nobody is there any more. */
int heap_play(int socket);

#endif
