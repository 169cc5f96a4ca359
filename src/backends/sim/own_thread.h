// Threads that work for software devices.
#pragma once

namespace aloft::sim {

// Whether this is one: what only such a thread can do, it must not wait for.
inline thread_local bool is_own_thread = false;

}  // namespace aloft::sim
