/* The side of the child process, which makes the calls of a heap again; see heap_wire.h. */
#ifndef MT_REPLAY_HEAP_HEAP_PLAYER_H
#define MT_REPLAY_HEAP_HEAP_PLAYER_H

/* Makes the calls that come over `socket`, and answers there. The process must run nothing else, and must hardly have
 * used its heap before. Returns the exit status: 0, or 1 if the other side has gone. */
int heap_play(int socket);

#endif
