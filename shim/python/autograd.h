/*
 * PyTorch's backward pass runs in threads of autograd's engine, one for each device, which have no Python frames. What
 * they allocate is asked for by the line of Python that called backward() and now waits for them.
 *
 * Every backward pass goes through one function of libtorch_cpu, torch::autograd::Engine::execute, which the Python
 * bindings call across a library boundary. It is wrapped by name (host/engine.S): the wrapper notes the caller's Python
 * stack and jumps on to the function. A pass that is started within another one (by a custom function's backward)
 * leaves what the outermost one noted. If several threads run passes at once, the stack of the latest is used for all.
 */
#ifndef MT_PYTHON_AUTOGRAD_H
#define MT_PYTHON_AUTOGRAD_H

#include <stdint.h>

/* Node of the Python stack that started the latest pass; 0 = none. */
uint32_t mt_autograd_caller(void);

/* Whether the native stack at `node` is that of a thread that the engine has started. */
int mt_autograd_is_worker(uint32_t node);

/* The real function that runs a pass. */
void *mt_autograd_engine(void);

/* A pass begins, called from these stacks. */
void mt_autograd_begins(uint32_t native, uint32_t python);

#endif
