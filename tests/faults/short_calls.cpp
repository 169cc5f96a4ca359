// Preloaded before a program: reads and writes of files move fewer bytes than they were asked to,
// and now and then none, as if a signal had come. Every caller has to go on from there.
//
// Only calls that go through the C library's names are met: what C++ streams and our own files use,
// not what C's stdio does inside itself. SHORT_CALLS_SEED says which calls are cut, and where.
#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdlib>

namespace {

// A number from 0 to below `n`: splitmix64 of the seed and the number of the call.
std::uint64_t drawn(std::uint64_t n) {
  static const std::uint64_t seed = [] {
    const char* text = std::getenv("SHORT_CALLS_SEED");
    return text ? std::strtoull(text, nullptr, 10) : 0;
  }();
  static std::atomic<std::uint64_t> calls{0};
  std::uint64_t x = seed * 0x9E3779B97F4A7C15 + ++calls * 0xBF58476D1CE4E5B9;
  x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9;
  x = (x ^ x >> 27) * 0x94D049BB133111EB;
  return (x ^ x >> 31) % n;
}

// What is left of `bytes`, from 1 on; 0 where the call is to end as if interrupted.
std::size_t cut(std::size_t bytes) {
  if (bytes == 0) return 0;
  if (drawn(16) == 0) return 0;
  return 1 + drawn(bytes);
}

template <class Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" {

ssize_t read(int file, void* to, std::size_t bytes) {
  static const auto real = next<ssize_t(int, void*, std::size_t)>("read");
  const std::size_t left = cut(bytes);
  if (bytes > 0 && left == 0) return errno = EINTR, -1;
  return real(file, to, left);
}

ssize_t write(int file, const void* from, std::size_t bytes) {
  static const auto real = next<ssize_t(int, const void*, std::size_t)>("write");
  const std::size_t left = cut(bytes);
  if (bytes > 0 && left == 0) return errno = EINTR, -1;
  return real(file, from, left);
}

ssize_t pwrite64(int file, const void* from, std::size_t bytes, off64_t at) {
  static const auto real = next<ssize_t(int, const void*, std::size_t, off64_t)>("pwrite64");
  const std::size_t left = cut(bytes);
  if (bytes > 0 && left == 0) return errno = EINTR, -1;
  return real(file, from, left, at);
}

ssize_t pwrite(int file, const void* from, std::size_t bytes, off_t at) {
  return pwrite64(file, from, bytes, at);
}
}
