#include "passes/insert_copies.h"

#include <algorithm>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "plan/happens_before.h"

namespace aloft {
namespace {

constexpr int kCopyStream = 1;

bool is_away(const StateSlot& slot) {
  return slot.parts.size() > 1 || slot.parts[0].space != Space::Device;
}

bool is_used(const std::vector<BufferRef>& refs, int buffer) {
  return std::any_of(refs.begin(), refs.end(),
                     [&](const BufferRef& r) { return r.buffer == buffer; });
}

class Copies {
 public:
  Copies(Lowered& lowered, const PassContext& context)
      : program_(lowered.program), has_streams_(context.streams > 1) {
    std::unordered_map<std::string, const StateSlot*> slots;
    for (const StateSlot& s : lowered.state)
      if (is_away(s)) slots.emplace(s.id.str(), &s);
    if (slots.empty()) return;
    const std::size_t before = program_.buffers.size();
    for (std::size_t b = 0; b < before; ++b)
      if (const auto it = slots.find(program_.buffers[b].name); it != slots.end())
        put_parts(static_cast<int>(b), *it->second);
  }

  void run() {
    if (parts_.empty()) return;
    source_ = std::exchange(program_.instructions, {});
    if (!source_.empty()) plan_for(0);
    for (std::size_t i = 0; i < source_.size(); ++i) {
      // What the next one needs is fetched while this one runs, unless this one makes it.
      const bool is_last = i + 1 == source_.size();
      const bool waits = !is_last && makes_for_next(i);
      if (!is_last && !waits) plan_for(i + 1);
      emit(i);
      if (waits) plan_for(i + 1);
    }
    if (has_streams_) drop_implied_waits(program_);
  }

 private:
  // One variable for one instruction: its parts, and the memory that stands for it.
  struct Use {
    int variable = -1, buffer = -1;
    bool is_read = false, is_written = false;
  };
  struct Planned {
    std::vector<Use> uses;
    int fetched = -1;  // the event behind its fetches
    int stored = -1;   // and behind what carries back
  };

  int new_event() { return events_++; }

  bool makes_for_next(std::size_t i) const {
    return std::any_of(parts_.begin(), parts_.end(), [&](const auto& p) {
      return is_used(source_[i].out, p.first) && is_used(source_[i + 1].in, p.first);
    });
  }

  // The variable's buffer becomes its first part.
  void put_parts(int buffer, const StateSlot& slot) {
    std::vector<int>& parts = parts_[buffer];
    for (std::size_t k = 0; k < slot.parts.size(); ++k) {
      if (k > 0) program_.buffers.push_back(program_.buffers[static_cast<std::size_t>(buffer)]);
      parts.push_back(k == 0 ? buffer : static_cast<int>(program_.buffers.size()) - 1);
      PlannedBuffer& part = program_.buffers[static_cast<std::size_t>(parts.back())];
      part.placement = slot.parts[k];
      part.bytes = slot.range(k).bytes;
    }
    types_.emplace(buffer, slot.type);
  }

  void plan_for(std::size_t i) {
    Planned& p = planned_[i];
    const Instruction& ins = source_[i];
    for (const auto& [variable, parts] : parts_) {
      Use use{variable, -1, is_used(ins.in, variable), is_used(ins.out, variable)};
      if ((!use.is_read && !use.is_written) || types_.at(variable).max_bytes() == 0) continue;
      const PlannedBuffer& home = program_.buffers[static_cast<std::size_t>(variable)];
      PlannedBuffer here{.name = "copy of " + home.name,
                         .arena = Arena::Activations,
                         .bytes = types_.at(variable).max_bytes()};
      here.placement.layout = home.placement.layout;
      program_.buffers.push_back(std::move(here));
      use.buffer = static_cast<int>(program_.buffers.size()) - 1;
      p.uses.push_back(use);
    }
    const bool fetches =
        std::any_of(p.uses.begin(), p.uses.end(), [](const Use& u) { return u.is_read; });
    if (!fetches) return;
    if (has_streams_) p.fetched = new_event();
    bool is_first = true;
    for (std::size_t k = 0; k < p.uses.size(); ++k)
      if (p.uses[k].is_read) fetch(p.uses[k], i, std::exchange(is_first, false));
    if (has_streams_) program_.instructions.back().signals = p.fetched;
  }

  // Behind what ran before the present instruction: the memory is not needed any sooner.
  void fetch(const Use& use, std::size_t i, bool is_first) {
    each_part(use.variable, [&](int part, ByteRange range) {
      Instruction copy = new_copy(source_[i], "fetch", part, range.bytes);
      copy.in[0].buffer = part;
      copy.out[0].buffer = use.buffer;
      copy.copy = Copy{0, range.begin};
      if (has_streams_ && is_first && last_ >= 0) copy.waits.push_back(event_of_last());
      is_first = false;
      program_.instructions.push_back(std::move(copy));
    });
  }

  void store(const Use& use, int& done) {
    each_part(use.variable, [&](int part, ByteRange range) {
      const Instruction& user = program_.instructions[static_cast<std::size_t>(last_)];
      Instruction copy = new_copy(user, "store", part, range.bytes);
      copy.in[0].buffer = use.buffer;
      copy.out[0].buffer = part;
      copy.copy = Copy{range.begin, 0};
      if (done >= 0) copy.waits.push_back(std::exchange(done, -1));  // those behind it follow
      program_.instructions.push_back(std::move(copy));
    });
  }

  template <class F>
  void each_part(int variable, const F& f) {
    const std::size_t bytes = types_.at(variable).max_bytes();
    for (const int part : parts_.at(variable)) {
      const ByteRange range =
          range_of(program_.buffers[static_cast<std::size_t>(part)].placement.shard, bytes);
      if (range.bytes > 0) f(part, range);
    }
  }

  Instruction new_copy(const Instruction& user, const char* what, int part, std::size_t bytes) {
    const PlannedBuffer& home = program_.buffers[static_cast<std::size_t>(part)];
    const TensorType type{DType::U8, {static_cast<std::int64_t>(bytes)}};
    Instruction copy;
    copy.call = {Name(kCopyOp), {}, {type}, {type}, user.call.threads};
    copy.kernel = kCopyOp;
    copy.in = {{-1, type}};
    copy.out = {{-1, type}};
    copy.identity = std::string(what) + "/" + home.name;
    if (const ShardIndex s = home.placement.shard; s.count > 1)
      copy.identity += "#" + std::to_string(s.index);
    copy.identity += " for " + user.identity;
    copy.path = user.path;
    copy.file = user.file;
    copy.line = user.line;
    copy.phase = user.phase;
    if (has_streams_) copy.stream = kCopyStream;
    return copy;
  }

  // Of the last instruction but copies.
  int event_of_last() {
    int& event = program_.instructions[static_cast<std::size_t>(last_)].signals;
    if (event < 0) event = new_event();
    return event;
  }

  void emit(std::size_t i) {
    Instruction ins = std::move(source_[i]);
    Planned p;
    if (const auto it = planned_.find(i); it != planned_.end()) p = std::move(it->second);
    planned_.erase(i);
    for (const Use& use : p.uses)
      for (auto* refs : {&ins.in, &ins.out})
        for (BufferRef& r : *refs)
          if (r.buffer == use.variable) r.buffer = use.buffer;
    if (p.fetched >= 0) ins.waits.push_back(p.fetched);
    // What was carried back behind the one before the last has gone: its memory is free.
    if (stored_[0] >= 0) ins.waits.push_back(stored_[0]);
    const bool stores =
        std::any_of(p.uses.begin(), p.uses.end(), [](const Use& u) { return u.is_written; });
    if (stores && has_streams_) ins.signals = new_event();
    int done = ins.signals;
    program_.instructions.push_back(std::move(ins));
    last_ = static_cast<int>(program_.instructions.size()) - 1;
    for (const Use& use : p.uses)
      if (use.is_written) store(use, done);
    if (stores && has_streams_) {
      p.stored = new_event();
      program_.instructions.back().signals = p.stored;
    }
    stored_[0] = std::exchange(stored_[1], p.stored);
  }

  Program& program_;
  const bool has_streams_;
  std::map<int, std::vector<int>> parts_;  // buffers, by the variable's first
  std::map<int, TensorType> types_;        // of the whole variables
  std::vector<Instruction> source_;
  std::map<std::size_t, Planned> planned_;  // by instruction
  int last_ = -1, events_ = 0;
  int stored_[2] = {-1, -1};  // behind the last two instructions
};

}  // namespace

void insert_copies(Lowered& lowered, const PassContext& context) { Copies(lowered, context).run(); }

}  // namespace aloft
