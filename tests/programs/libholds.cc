/* A C++ object that refers to objects of Python, which the collector is not told: see tests/programs/holders_random.py. */
#include <vector>

extern "C" {
void Py_IncRef(void *);
void Py_DecRef(void *);
void *PyCapsule_New(void *, const char *, void (*)(void *));
void *PyCapsule_GetPointer(void *, const char *);
void *hold_new(void);
void hold_add(void *capsule, void *object);
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
