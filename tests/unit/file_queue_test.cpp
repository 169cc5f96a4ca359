// Files that are written beside training: in their order, none dropped, what waits is bounded, and
// whoever adds hears of what went wrong.
#include "train/file_queue.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <stdexcept>
#include <vector>

namespace aloft {
namespace {

TEST(FileQueue, WritesInTheOrderInWhichItIsGiven) {
  std::vector<int> written;
  {
    FileQueue queue(10);
    for (int i = 0; i < 100; ++i) queue.add(3, [&written, i] { written.push_back(i); });
    queue.wait();
    EXPECT_EQ(written.size(), 100u);
    queue.add(1, [&written] { written.push_back(100); });
  }  // what waits is written at the end
  ASSERT_EQ(written.size(), 101u);
  for (int i = 0; i <= 100; ++i) EXPECT_EQ(written[static_cast<std::size_t>(i)], i);
}

TEST(FileQueue, WhoAddsWaitsForRoom) {
  FileQueue queue(10);
  std::promise<void> gate;
  std::atomic<int> added = 0;
  queue.add(6, [open = gate.get_future().share()] { open.wait(); });
  std::thread other([&] {
    queue.add(4, [] {});  // there is room for it
    ++added;
    queue.add(1, [] {});
    ++added;
  });
  while (added == 0) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_EQ(added, 1);
  gate.set_value();
  other.join();
  EXPECT_EQ(added, 2);
  EXPECT_GT(queue.waited_s(), 0.01);
  queue.add(1000, [] {});  // larger than all of the room: alone
  queue.wait();
}

TEST(FileQueue, BehindAnErrorNothingIsWritten) {
  FileQueue queue(10);
  bool is_written = false;
  queue.add(1, [] { throw std::runtime_error("no space left"); });
  EXPECT_THROW(queue.wait(), std::runtime_error);
  EXPECT_THROW(queue.add(1, [&] { is_written = true; }), std::runtime_error);
  EXPECT_THROW(queue.wait(), std::runtime_error);
  EXPECT_FALSE(is_written);
}

}  // namespace
}  // namespace aloft
