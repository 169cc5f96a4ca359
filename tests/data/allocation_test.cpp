// Once the loaders run, neither they nor their threads allocate; going on from elsewhere takes no
// memory that could fail.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <limits>
#include <new>

#include "data/array_loader.h"
#include "data/loader.h"

namespace {
std::atomic<long> allocations{0};
std::atomic<std::size_t> most_bytes{std::numeric_limits<std::size_t>::max()};  // of one allocation
}  // namespace

#if !ALOFT_SANITIZED
void* operator new(std::size_t size) {
  ++allocations;
  if (size > most_bytes) throw std::bad_alloc();
  if (void* memory = std::malloc(size == 0 ? 1 : size)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
#endif

namespace aloft {
namespace {

template <class Loader>
long allocations_of(Loader& loader, int batches) {
  loader.next();  // the thread has begun
  const long before = allocations;
  for (int i = 0; i < batches; ++i) loader.next();
  return allocations - before;
}

TEST(Loaders, DoNotAllocateOnceTheyRun) {
  if (ALOFT_SANITIZED) GTEST_SKIP() << "the sanitizer owns the allocator of this build";
  const TokenSource source = TokenSource::from_ids(std::vector<std::int32_t>(10000, 1), 2);
  for (const Sampling sampling : {Sampling::Windows, Sampling::Random}) {
    TokenLoader loader(source, {.batch = 4, .context = 64, .order = {.sampling = sampling}});
    EXPECT_EQ(allocations_of(loader, 200), 0);
  }
  auto data = std::make_shared<ArrayData>();
  data->features = 3;
  data->values.assign(300, 1);
  data->labels.assign(100, 1);
  ArrayLoader arrays(data, {.batch = 8});
  EXPECT_EQ(allocations_of(arrays, 200), 0);
  const long before = allocations;
  arrays.seek(0);
  EXPECT_GT(allocations, before);  // a new start may allocate, and the counter sees it
}

template <class Loader>
void expect_to_seek_without_memory(Loader& loader) {
  loader.next();
  const auto position = loader.position();
  most_bytes = 256;  // a thread can be started, and no batch be made
  bool has_failed = false;
  try {
    loader.seek(0);
  } catch (const std::exception&) {
    has_failed = true;
  }
  most_bytes = std::numeric_limits<std::size_t>::max();
  ASSERT_FALSE(has_failed);
  EXPECT_EQ(loader.position(), 0u);
  ASSERT_NE(loader.next(), nullptr);
  EXPECT_EQ(loader.position(), position);
}

TEST(Loaders, SeekWhereNoMemoryIsLeft) {
  if (ALOFT_SANITIZED) GTEST_SKIP() << "the sanitizer owns the allocator of this build";
  TokenLoader tokens(TokenSource::from_ids(std::vector<std::int32_t>(10000, 1), 2),
                     {.batch = 4, .context = 64});
  expect_to_seek_without_memory(tokens);
  auto data = std::make_shared<ArrayData>();
  data->features = 3;
  data->values.assign(3000, 1);
  data->labels.assign(1000, 1);
  ArrayLoader arrays(data, {.batch = 100});
  expect_to_seek_without_memory(arrays);
}

}  // namespace
}  // namespace aloft
