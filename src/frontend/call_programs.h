// The programs of one compiled function, by shapes, modes and what else they depend on: which of
// them takes a call, how arguments get in, whose memory results lie in, which program goes for
// another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "frontend/compile.h"
#include "frontend/premises.h"
#include "frontend/programs.h"
#include "frontend/retraces.h"

namespace aloft {

class CallPrograms {
 public:
  CallPrograms(CompileOptions options, SourceLocation place);
  ~CallPrograms();
  CallPrograms(const CallPrograms&) = delete;
  CallPrograms& operator=(const CallPrograms&) = delete;

  // Each as CompiledCall's of its name.
  const std::vector<Tensor>& operator()(const CallArguments& arguments);
  const std::shared_ptr<const void>& like() const { return entries_[last_].like; }
  void hand_over();
  Programs* programs() { return programs_.get(); }
  Tensor tap(const std::string& name) const;
  std::vector<Tap> taps() const;
  std::vector<RefusedTap> refused_taps() const;

 private:
  void need_values() const;
  // One program, and where its arguments go and its results lie.
  struct Entry {
    std::string name;
    std::vector<InputSpec> inputs;
    std::string fixed;                 // CallArguments
    std::uintptr_t kind;               // the same
    std::shared_ptr<const void> like;  // what a result of a call is made from
    std::uint64_t used = 0;            // the number of the call that ran it last
    int program = -1;
    bool has_length = false;  // the program asks for the number of rows
    bool whole_only = false;  // fewer rows would have other values than eagerly
    std::vector<InputPort<std::byte>> homes;
    std::vector<Draw> draws;
    // None: this draw takes no state from the host.
    std::vector<std::optional<InputPort<std::int64_t>>> draw_states;
    struct Result {
      TensorType type;
      Buffer buffer;
      OutputNotes notes;
    };
    std::vector<Result> results;
    std::map<std::string, Result> taps;
    std::shared_ptr<const Premises> premises;   // what it was traced under
    std::uint64_t onlooker = 0;                 // whose taps it has; 0: nobody's
    static std::uint64_t number_of_onlooker();  // of this thread's
    // Whether it is for such arguments; `rows` becomes their batch where it has one.
    bool fits(const CallArguments& arguments, std::int64_t& rows) const;
    // And for a call as things are now.
    bool takes(const CallArguments& arguments, std::int64_t& rows) const {
      return kind == arguments.kind() && inputs.size() == arguments.tensors().size() &&
             onlooker == number_of_onlooker() && premises->hold() && fits(arguments, rows);
    }
  };

  const Entry& entry_for(const CallArguments& arguments, std::int64_t& rows);
  std::string name_for_another() const;
  void add(const CallArguments& arguments, const std::vector<InputSpec>& actual);
  void add_program(std::string name, std::vector<InputSpec> inputs, const CallArguments& arguments,
                   const std::shared_ptr<Premises>& premises);
  void connect(Entry& entry);
  void finish();
  void settle_results();
  void keep_results();
  void run(const Entry& entry, std::int64_t rows);
  static Tensor borrowed(const Entry::Result& r, std::int64_t rows, std::uint64_t youngest);

  CompileOptions options_;
  Retraces retraces_;
  std::uint64_t calls_ = 0;
  std::unique_ptr<Programs> programs_;
  std::vector<Entry> entries_;
  std::size_t last_ = 0;              // the entry that ran last
  std::int64_t rows_ = 0;             // its rows then
  std::uint64_t youngest_ = 0;        // and the youngest argument's number
  bool has_values_ = false;           // of that call, which returned
  std::vector<Tensor> results_;       // in the programs' memory
  std::uint64_t caller_ = 0;          // the thread of the last call, whose results they are
  bool has_several_callers_ = false;  // so far
};

}  // namespace aloft
