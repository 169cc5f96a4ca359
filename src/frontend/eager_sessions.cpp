// The eager sessions: one for each thread and device.
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "frontend/eager.h"
#include "frontend/eager_emitter.h"
#include "frontend/taken_calls.h"

namespace aloft {

void use_device(Device& device) {
  set_default_device(device);
  set_default_emitter([]() -> Emitter& { return eager_session(); });
}

void use_device(Device& (*open)()) {
  set_default_device(open);
  set_default_emitter([]() -> Emitter& { return eager_session(); });
}

namespace {

// What a thread does op by op on one device.
struct Session {
  explicit Session(Device& device)
      : emitter(device), casting(emitter, device.features().capability, taker(device)) {
    emitter.set_outer(&casting);
  }
  EagerEmitter emitter;
  CastingEmitter casting;
};

// Sessions of ended threads. They stay, because tensors of theirs may be held still, and serve the
// next thread; each is empty, and knows that it is nobody's.
class EndedSessions {
 public:
  using Ptr = std::unique_ptr<Session>;

  Ptr take(Device& device) {
    const std::scoped_lock lock(mutex_);
    for (Ptr& s : all_)
      if (&s->emitter.device() == &device) {
        Ptr found = std::exchange(s, std::move(all_.back()));
        all_.pop_back();
        return found;
      }
    return nullptr;
  }
  void put(Ptr&& session) {
    session->emitter.end();
    const std::scoped_lock lock(mutex_);
    all_.push_back(std::move(session));
  }

 private:
  std::mutex mutex_;
  std::vector<Ptr> all_;
};

EndedSessions& ended_sessions() {
  static auto& all = *new EndedSessions;  // threads end behind the destructors of main(), too
  return all;
}

struct Sessions {
  Sessions() = default;
  Sessions(const Sessions&) = delete;
  Sessions& operator=(const Sessions&) = delete;
  ~Sessions() {
    for (auto& [device, session] : by_device) try {
        ended_sessions().put(std::move(session));
      } catch (...) {
        session.release();  // no memory for a copy: tensors of it may be held
      }
  }
  Session& of(Device& device) {
    auto& session = by_device[&device];
    if (!session) session = ended_sessions().take(device);
    if (!session) session = std::make_unique<Session>(device);
    session->emitter.begin();
    return *session;
  }
  std::map<Device*, std::unique_ptr<Session>> by_device;
};

Session& session() {
  thread_local Sessions sessions;
  thread_local Session* last = nullptr;
  Device& device = current_device();
  if (!last || &last->emitter.device() != &device) last = &sessions.of(device);
  return *last;
}

}  // namespace

EagerEmitter& eager() { return session().emitter; }
CastingEmitter& eager_session() { return session().casting; }

}  // namespace aloft
