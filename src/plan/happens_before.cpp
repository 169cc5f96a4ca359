#include "plan/happens_before.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "base/error.h"

namespace aloft {
namespace {

[[noreturn]] void refuse(const Program& p, std::size_t i, const std::string& what) {
  throw InternalError("the plan is broken: " + what)
      .line("prog", p.name)
      .line("instr", p.instructions[i].identity);
}

}  // namespace

HappensBefore::HappensBefore(const Program& program) {
  std::vector<int> signaller;
  for (std::size_t i = 0; i < program.instructions.size(); ++i) {
    const Instruction& ins = program.instructions[i];
    if (ins.stream < 0) refuse(program, i, "its stream is none");
    const auto stream = static_cast<std::size_t>(ins.stream);
    if (stream >= on_stream_.size()) on_stream_.resize(stream + 1);
    on_stream_[stream].push_back(static_cast<int>(i));
    stream_of_.push_back(ins.stream);
    if (ins.signals < 0) continue;
    const auto event = static_cast<std::size_t>(ins.signals);
    if (event >= signaller.size()) signaller.resize(event + 1, -1);
    if (signaller[event] >= 0) refuse(program, i, "it signals an event that has happened");
    signaller[event] = static_cast<int>(i);
  }
  const auto of_event = [&](std::size_t i, int event) {
    const bool is_known = event >= 0 && event < static_cast<int>(signaller.size());
    const int by = is_known ? signaller[static_cast<std::size_t>(event)] : -1;
    if (by < 0 || by >= static_cast<int>(i))
      refuse(program, i, "it waits for an event that nothing before it signals");
    return static_cast<std::size_t>(by);
  };
  const std::size_t streams = on_stream_.size();
  if (streams > 1) known_.assign(streams, std::vector<int>(stream_of_.size(), -1));
  std::vector<int> last(streams, -1);  // of each stream so far
  for (std::size_t i = 0; i < stream_of_.size(); ++i) {
    const auto own = static_cast<std::size_t>(stream_of_[i]);
    for (const int event : program.instructions[i].waits) {
      const std::size_t by = of_event(i, event);
      for (std::size_t s = 0; s < known_.size(); ++s)
        known_[s][i] = std::max(known_[s][i], known_[s][by]);
    }
    for (std::size_t s = 0; s < known_.size(); ++s)
      if (last[own] >= 0)
        known_[s][i] = std::max(known_[s][i], known_[s][static_cast<std::size_t>(last[own])]);
    if (!known_.empty()) known_[own][i] = static_cast<int>(i);
    last[own] = static_cast<int>(i);
  }
}

bool HappensBefore::is_before(int a, int b) const {
  if (a == b) return false;
  if (known_.empty()) return a < b;
  return known_[static_cast<std::size_t>(stream_of_[static_cast<std::size_t>(a)])]
               [static_cast<std::size_t>(b)] >= a;
}

int HappensBefore::first(int i) const {
  int first = i;
  for (std::size_t s = 0; s < known_.size(); ++s) {
    const auto next = std::upper_bound(on_stream_[s].begin(), on_stream_[s].end(),
                                       known_[s][static_cast<std::size_t>(i)]);
    if (next != on_stream_[s].end()) first = std::min(first, *next);
  }
  return first;
}

int HappensBefore::last(int i) const {
  int last = i;
  const auto own = static_cast<std::size_t>(stream_of_[static_cast<std::size_t>(i)]);
  for (std::size_t s = 0; s < known_.size(); ++s) {
    if (s == own) continue;
    // Of each stream those behind some instruction know of it.
    const auto knows = std::partition_point(on_stream_[s].begin(), on_stream_[s].end(), [&](int j) {
      return known_[own][static_cast<std::size_t>(j)] < i;
    });
    if (knows != on_stream_[s].begin()) last = std::max(last, *std::prev(knows));
  }
  return last;
}

void drop_implied_waits(Program& program) {
  const HappensBefore order(program);
  std::unordered_map<int, int> signaller, last;  // by event, by stream
  std::unordered_set<int> awaited;
  const auto is_known = [&](int by, int to) { return by == to || order.is_before(by, to); };
  for (std::size_t i = 0; i < program.instructions.size(); ++i) {
    Instruction& ins = program.instructions[i];
    std::vector<int> needed;
    const auto is_implied = [&](std::size_t w) {
      const int by = signaller.at(ins.waits[w]);
      if (const auto it = last.find(ins.stream); it != last.end() && is_known(by, it->second))
        return true;
      for (std::size_t o = 0; o < ins.waits.size(); ++o) {
        const int other = signaller.at(ins.waits[o]);
        if (order.is_before(by, other) || (other == by && o < w)) return true;
      }
      return false;
    };
    for (std::size_t w = 0; w < ins.waits.size(); ++w)
      if (!is_implied(w)) needed.push_back(ins.waits[w]);
    awaited.insert(needed.begin(), needed.end());
    ins.waits = std::move(needed);
    last[ins.stream] = static_cast<int>(i);
    if (ins.signals >= 0) signaller[ins.signals] = static_cast<int>(i);
  }
  for (Instruction& ins : program.instructions)
    if (!awaited.contains(ins.signals)) ins.signals = -1;
}

namespace {

// Who used a buffer so far: its last writer, and of each stream the last reader since.
struct Users {
  int writer = -1;
  std::vector<int> readers;
};

class Races {
 public:
  Races(const Program& program, const HappensBefore& order)
      : order_(order), users_(program.buffers.size()) {}

  std::optional<Race> read(int at, int stream, int buffer) {
    Users& u = users_[static_cast<std::size_t>(buffer)];
    if (u.writer >= 0 && u.writer != at && !order_.is_before(u.writer, at))
      return Race{u.writer, at, buffer};
    if (stream >= static_cast<int>(u.readers.size()))
      u.readers.resize(static_cast<std::size_t>(stream) + 1, -1);
    u.readers[static_cast<std::size_t>(stream)] = at;
    return std::nullopt;
  }

  std::optional<Race> write(int at, int buffer) {
    Users& u = users_[static_cast<std::size_t>(buffer)];
    u.readers.push_back(u.writer);
    for (const int before : u.readers)
      if (before >= 0 && before != at && !order_.is_before(before, at))
        return Race{before, at, buffer};
    u.readers.clear();
    u.writer = at;
    return std::nullopt;
  }

 private:
  const HappensBefore& order_;
  std::vector<Users> users_;
};

}  // namespace

// Of one buffer's users here; buffers that share memory have lives apart, which verify() holds
// against each user's first() and last().
std::optional<Race> find_race(const Program& program, const HappensBefore& order) {
  Races races(program, order);
  for (std::size_t i = 0; i < program.instructions.size(); ++i) {
    const Instruction& ins = program.instructions[i];
    const int at = static_cast<int>(i);
    for (const BufferRef& r : ins.in)
      if (const auto race = races.read(at, ins.stream, r.buffer)) return race;
    for (const BufferRef& r : ins.out)
      if (const auto race = races.write(at, r.buffer)) return race;
    if (ins.scratch >= 0)
      if (const auto race = races.write(at, ins.scratch)) return race;
  }
  return std::nullopt;
}

}  // namespace aloft
