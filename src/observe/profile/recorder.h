// When each instruction and each eager call of a step began and ended, by the clock of the device:
// what docs/profile.md shows. The recorder reads; it changes no bit of a step.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "runtime/observer.h"
#include "types/dtype.h"
#include "types/phase.h"

namespace aloft::profile {

// What there is to do in a call, by its op's own record.
struct Work {
  double flops = 0, bytes = 0;  // bytes: each operand read once, each result written once
  bool has_products = false;    // matrix products, or convolutions
  DType type = DType::F32;      // that they multiply
};

// The line of the user's program that an instruction comes from; line 0: not known.
struct Source {
  std::string file;
  int line = 0;
};

struct Call {
  std::string program;   // empty: an eager call
  int instruction = -1;  // in the program's list; -1: an eager call
  std::string op, kernel;
  std::string name;  // "h.3.attn.qkv/linear#0"
  std::string path;  // of the module
  Source source;
  Phase phase = Phase::Forward;
  int stream = 0;
  std::vector<std::string> in, out;  // types, with the lengths that they had: "bf16[8,256]"
  Work work;
};

struct Timed {
  std::size_t call = 0;  // in Recorder::calls()
  std::int64_t step = 0, micro_batch = 0;
  double begin = 0, end = 0;  // seconds on the device's clock
};

class Recorder : public Observer {
 public:
  using WorkOf = std::function<Work(const OpEvent&)>;
  using SourceOf = std::function<Source(std::string_view program, int instruction)>;
  // `source`: empty where nobody knows lines.
  explicit Recorder(WorkOf work, SourceOf source = {});

  // What this thread computes from here on belongs to the step; what others do is not looked at.
  void begin_step(std::int64_t step);
  // Waits for what was told of it.
  void end_step();
  // The same of a step that is not to count.
  void drop_step();

  void program_begins(const ProgramEvent& e) override;
  void after(const OpEvent& e) override;

  const std::vector<Call>& calls() const { return calls_; }
  const std::vector<Timed>& times() const { return times_; }  // in the order of the calls

 private:
  // A program's calls as they were last run: with other lengths they are other calls.
  struct Known {
    std::vector<std::int64_t> lengths;
    std::vector<std::size_t> calls;  // by instruction; kNone: not met yet
  };
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);
  std::size_t call_of(const OpEvent& e);
  std::size_t add(const OpEvent& e);

  WorkOf work_;
  SourceOf source_;
  std::thread::id thread_;
  std::int64_t step_ = 0;
  std::map<std::string, Known, std::less<>> programs_;
  Known* running_ = nullptr;
  std::vector<Call> calls_;
  std::vector<Timed> times_;
  struct Waiting {  // of the step under way: moments that may be still to come
    Event begin, end;
  };
  std::vector<Waiting> waiting_;
};

// What the clock alone shows: the median time between two moments that nothing was done between.
double timer_seconds(Device& device);

}  // namespace aloft::profile
