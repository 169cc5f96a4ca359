#include "runtime/threads.h"

#include <atomic>

namespace aloft {
namespace {
Threads alone;
std::atomic<Threads*> pool = &alone;
}  // namespace

Threads& host_threads() { return *pool.load(std::memory_order_acquire); }
void set_host_threads(Threads& threads) { pool.store(&threads, std::memory_order_release); }

}  // namespace aloft
