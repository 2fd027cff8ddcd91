/*
 * A pool with the names of TensorFlow's: functions of the same mangled names, virtual, in a library whose vtable the
 * loader fills in. It asks malloc for regions that double, splits chunks and joins them again, and keeps a table for
 * each region, as BFC does. With a device it has its regions from the driver. Built from what TensorFlow documents of
 * its behaviour, no code is shared.
 */
#include <dlfcn.h>

#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "libbfc.h"

namespace tsl
{

struct AllocationAttributes {
	bool retry_on_failure;
};

class BFCAllocator {
public:
	BFCAllocator(size_t limit, bool device) : limit_(limit), device_(device) {}
	virtual ~BFCAllocator();
	virtual void *AllocateRaw(size_t align, size_t bytes, const AllocationAttributes &how);
	virtual void DeallocateRaw(void *p);
	virtual size_t AllocatedSize(const void *p) const;
	size_t reserved() const { return reserved_; }
	bool Extend(size_t bytes);

private:
	struct Chunk {
		size_t bytes;
		bool used;
	};
	struct Region {
		uintptr_t start;
		std::vector<uint64_t> handles; /* a large table by malloc, inside the call that extends */
	};
	uintptr_t region_of(uintptr_t at) const;

	mutable std::mutex lock_;
	std::map<uintptr_t, Chunk> chunks_;
	std::map<uintptr_t, Region> regions_;
	size_t limit_, reserved_ = 0, next_ = 2u << 20;
	bool device_;
};

static int driver(const char *name, uintptr_t *p, size_t n)
{
	static void *library = dlopen("libcudart.so.13", RTLD_NOW);
	void *f = library ? dlsym(library, name) : nullptr;
	return !f  ? 1
	       : n ? reinterpret_cast<int (*)(uintptr_t *, size_t)>(f)(p, n)
		   : reinterpret_cast<int (*)(uintptr_t)>(f)(*p);
}

BFCAllocator::~BFCAllocator()
{
	for (auto &region : regions_) {
		uintptr_t p = region.first;
		if (device_)
			driver("cudaFree", &p, 0);
		else
			std::free(reinterpret_cast<void *>(p));
	}
}

bool BFCAllocator::Extend(size_t bytes)
{
	size_t most = limit_ - reserved_, size = next_;
	void *p = nullptr;
	uintptr_t at = 0;
	while (size < bytes)
		size *= 2;
	size = size < most ? size : most & ~size_t(255);
	if (size < bytes)
		return false;
	while (device_ ? driver("cudaMalloc", &at, size) : posix_memalign(&p, 64, size)) {
		size = size / 10 * 9 & ~size_t(255); /* a tenth less each time */
		if (size < bytes)
			return false;
	}
	at = device_ ? at : reinterpret_cast<uintptr_t>(p);
	next_ = size * 2;
	reserved_ += size;
	regions_[at] = Region{ at, std::vector<uint64_t>(size >> 8) };
	chunks_[at] = Chunk{ size, false };
	return true;
}

uintptr_t BFCAllocator::region_of(uintptr_t at) const
{
	return std::prev(regions_.upper_bound(at))->first;
}

void *BFCAllocator::AllocateRaw(size_t, size_t bytes, const AllocationAttributes &)
{
	const size_t rounded = (bytes + 255) & ~size_t(255);
	std::lock_guard<std::mutex> guard(lock_);
	if (!bytes)
		return nullptr;
	for (int attempt = 0; attempt < 2; attempt++) {
		auto best = chunks_.end();
		for (auto c = chunks_.begin(); c != chunks_.end(); ++c)
			if (!c->second.used && c->second.bytes >= rounded &&
			    (best == chunks_.end() || c->second.bytes < best->second.bytes))
				best = c;
		if (best == chunks_.end()) {
			if (!Extend(rounded))
				return nullptr;
			continue;
		}
		Chunk &chunk = best->second;
		if (chunk.bytes >= 2 * rounded) {
			chunks_[best->first + rounded] = Chunk{ chunk.bytes - rounded, false };
			chunk.bytes = rounded;
		}
		chunk.used = true;
		return reinterpret_cast<void *>(best->first);
	}
	return nullptr;
}

void BFCAllocator::DeallocateRaw(void *p)
{
	if (!p)
		return;
	std::lock_guard<std::mutex> guard(lock_);
	auto c = chunks_.find(reinterpret_cast<uintptr_t>(p)), next = std::next(c);
	c->second.used = false;
	if (next != chunks_.end() && !next->second.used && region_of(next->first) == region_of(c->first)) {
		c->second.bytes += next->second.bytes;
		chunks_.erase(next);
	}
	if (c == chunks_.begin())
		return;
	auto before = std::prev(c);
	if (!before->second.used && region_of(before->first) == region_of(c->first)) {
		before->second.bytes += c->second.bytes;
		chunks_.erase(c);
	}
}

size_t BFCAllocator::AllocatedSize(const void *p) const
{
	std::lock_guard<std::mutex> guard(lock_);
	auto c = chunks_.find(reinterpret_cast<uintptr_t>(p));
	if (c == chunks_.end() || !c->second.used)
		std::abort(); /* as TensorFlow does */
	return c->second.bytes;
}

}

extern "C" {

void *bfc_new(size_t limit, int device)
{
	return new tsl::BFCAllocator(limit, device != 0);
}
void bfc_delete(void *pool)
{
	delete static_cast<tsl::BFCAllocator *>(pool);
}
void *bfc_take(void *pool, size_t bytes, int retry)
{
	const tsl::AllocationAttributes how = { retry != 0 };
	return static_cast<tsl::BFCAllocator *>(pool)->AllocateRaw(64, bytes, how);
}
void bfc_give(void *pool, void *p)
{
	static_cast<tsl::BFCAllocator *>(pool)->DeallocateRaw(p);
}
size_t bfc_size(void *pool, const void *p)
{
	return static_cast<tsl::BFCAllocator *>(pool)->AllocatedSize(p);
}
size_t bfc_reserved(void *pool)
{
	return static_cast<tsl::BFCAllocator *>(pool)->reserved();
}
}
