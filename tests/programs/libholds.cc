/* A C++ object that refers to objects of Python, which the collector is not told: see tests/programs/holders_random.py.
 * And one that has a pointer into memory: tests/cases/holders.py. */
#include <cstdlib>
#include <cstring>
#include <vector>

extern "C" {
void Py_IncRef(void *);
void Py_DecRef(void *);
void *PyCapsule_New(void *, const char *, void (*)(void *));
void *PyCapsule_GetPointer(void *, const char *);
void *hold_new(void);
void hold_add(void *capsule, void *object);
void *hold_pool(size_t bytes);
void *hold_part(char *memory);
void *hold_dims(void *elsewhere);
}

namespace {
struct holds {
	virtual ~holds()
	{
		for (void *o : objects)
			Py_DecRef(o);
	}
	std::vector<void *> objects;
};

struct part {
	virtual ~part() = default;
	char *at = nullptr;
};

/* Behind the last of its numbers is what looks like a small chunk of malloc's: they are a size and a flag. */
struct dims {
	virtual ~dims()
	{
		free(begin);
	}
	size_t *begin = static_cast<size_t *>(calloc(1, 100000)), *end = begin + 2;
};

template <class T> void end_one(void *capsule)
{
	delete static_cast<T *>(PyCapsule_GetPointer(capsule, nullptr));
}

holds *behind(void *capsule)
{
	return static_cast<holds *>(PyCapsule_GetPointer(capsule, nullptr));
}

void end(void *capsule)
{
	delete behind(capsule);
}
} // namespace

void *hold_new(void)
{
	return PyCapsule_New(new holds, nullptr, end);
}

void hold_add(void *capsule, void *object)
{
	Py_IncRef(object);
	behind(capsule)->objects.push_back(object);
}

void *hold_pool(size_t bytes)
{
	return malloc(bytes);
}

void *hold_part(char *memory)
{
	part *p = new part;
	p->at = memory;
	return PyCapsule_New(p, nullptr, end_one<part>);
}

void *hold_dims(void *elsewhere)
{
	dims *d = new dims;
	d->begin[0] = d->begin[1] = 1025;
	memcpy(d->end + 1, &elsewhere, sizeof(elsewhere));
	d->begin[1 + 1024 / 8] = 33;
	return PyCapsule_New(d, nullptr, end_one<dims>);
}
