#include "memory/allocation_counter.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <link.h>
#include <pthread.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>

namespace aloft::memory {
namespace {

std::atomic<long> ours{0}, library{0}, locks{0};

#if !ALOFT_SANITIZED

enum class Whose { Program, Library, Runtime };  // Runtime: whoever called it

struct Range {
  std::uintptr_t from, to;
  Whose whose;
};
std::array<Range, 64> ranges;
std::size_t range_count = 0;
std::atomic<bool> is_ready{false};
thread_local bool is_inside = false;

int note_object(dl_phdr_info* info, std::size_t, void*) {
  const char* name = info->dlpi_name;
  const auto has = [&](const char* part) { return std::strstr(name, part) != nullptr; };
  const Whose whose = has("libdnnl") || has("libgomp") || has("libomp") ? Whose::Library
                      : has("libstdc++") || has("libc.so") || has("libgcc") || has("libm.so")
                          ? Whose::Runtime
                          : Whose::Program;
  for (int i = 0; i < info->dlpi_phnum && range_count < ranges.size(); ++i)
    if (const auto& h = info->dlpi_phdr[i]; h.p_type == PT_LOAD && (h.p_flags & PF_X))
      ranges[range_count++] = {info->dlpi_addr + h.p_vaddr, info->dlpi_addr + h.p_vaddr + h.p_memsz,
                               whose};
  return 0;
}

// Code that oneDNN has generated at run time lies in no object: it is the library's.
Whose whose(const void* address) {
  const auto a = reinterpret_cast<std::uintptr_t>(address);
  for (std::size_t i = 0; i < range_count; ++i)
    if (a >= ranges[i].from && a < ranges[i].to) return ranges[i].whose;
  return Whose::Library;
}

// Outside this test's own hooks, which the frames of a backtrace begin with.
void count(const void* caller) {
  if (!is_ready.load(std::memory_order_acquire) || is_inside) return;
  is_inside = true;
  Whose w = whose(caller);
  if (w == Whose::Runtime) {  // std::string and its like: whoever called them
    std::array<void*, 24> frames;
    const int depth = backtrace(frames.data(), frames.size());
    int at = 0;
    while (at < depth && frames[at] != caller) ++at;
    for (w = Whose::Program; at < depth; ++at)
      if (const Whose x = whose(frames[at]); x != Whose::Runtime) {
        w = x;
        break;
      }
  }
  ++(w == Whose::Library ? library : ours);
  is_inside = false;
}

using Lock = int (*)(pthread_mutex_t*);
Lock real_lock() {
  static std::atomic<Lock> lock{nullptr};
  Lock l = lock.load(std::memory_order_acquire);
  if (!l) lock = l = reinterpret_cast<Lock>(dlsym(RTLD_NEXT, "pthread_mutex_lock"));
  return l;
}

const bool started = [] {
  dl_iterate_phdr(note_object, nullptr);
  std::array<void*, 2> frames;
  backtrace(frames.data(), frames.size());  // its first call loads a library
  is_ready.store(true, std::memory_order_release);
  return true;
}();

#endif

}  // namespace

bool is_counting() { return !ALOFT_SANITIZED; }
Counts counts_so_far() { return {ours, library, locks}; }

}  // namespace aloft::memory

#if !ALOFT_SANITIZED

#define CALLER __builtin_return_address(0)

extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);
void __libc_free(void*);

void* malloc(std::size_t size) {
  aloft::memory::count(CALLER);
  return __libc_malloc(size);
}
void* calloc(std::size_t count, std::size_t size) {
  aloft::memory::count(CALLER);
  return __libc_calloc(count, size);
}
void* realloc(void* memory, std::size_t size) {
  aloft::memory::count(CALLER);
  return __libc_realloc(memory, size);
}
void* memalign(std::size_t alignment, std::size_t size) {
  aloft::memory::count(CALLER);
  return __libc_memalign(alignment, size);
}
void* aligned_alloc(std::size_t alignment, std::size_t size) {
  aloft::memory::count(CALLER);
  return __libc_memalign(alignment, size);
}
int posix_memalign(void** memory, std::size_t alignment, std::size_t size) {
  aloft::memory::count(CALLER);
  *memory = __libc_memalign(alignment, size);
  return *memory ? 0 : ENOMEM;
}
void free(void* memory) { __libc_free(memory); }

int pthread_mutex_lock(pthread_mutex_t* mutex) {
  if (aloft::memory::is_ready.load(std::memory_order_acquire) &&
      aloft::memory::whose(CALLER) == aloft::memory::Whose::Program)
    ++aloft::memory::locks;
  return aloft::memory::real_lock()(mutex);
}
}

namespace {
void* allocate(std::size_t size, const void* caller) {
  aloft::memory::count(caller);
  if (void* memory = __libc_malloc(size ? size : 1)) return memory;
  throw std::bad_alloc();
}
void* allocate(std::size_t size, std::align_val_t alignment, const void* caller) {
  aloft::memory::count(caller);
  if (void* memory = __libc_memalign(static_cast<std::size_t>(alignment), size ? size : 1))
    return memory;
  throw std::bad_alloc();
}
}  // namespace

void* operator new(std::size_t size) { return allocate(size, CALLER); }
void* operator new[](std::size_t size) { return allocate(size, CALLER); }
void* operator new(std::size_t size, std::align_val_t a) { return allocate(size, a, CALLER); }
void* operator new[](std::size_t size, std::align_val_t a) { return allocate(size, a, CALLER); }
void operator delete(void* memory) noexcept { __libc_free(memory); }
void operator delete[](void* memory) noexcept { __libc_free(memory); }
void operator delete(void* memory, std::size_t) noexcept { __libc_free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { __libc_free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { __libc_free(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { __libc_free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { __libc_free(memory); }
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept {
  __libc_free(memory);
}

#endif
