// observe::Session: what the steps of a program of yours hold, written as `aloft probe run` writes
// it (docs/probe.md), whether they are compiled or eager. No bit of a step changes.
//
//   observe::Session session({.config = "probe.toml"});
//   session.start();
//   for (...) {
//     step(x, label);   // of compile(), or eager calls, by this thread
//     session.step();   // the step is over: what it held is written
//   }
//   session.stop();
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace aloft::observe {

// What is looked at, and where it is written. What is left out says the config, or the usual value
// of [probe] in a recipe.
struct SessionOptions {
  // A file with a table [probe], a recipe for one, or msprobe's config.json; empty: there is none.
  std::string config = {};
  std::string out =
      {};  // folder of the steps' folders; empty: config.json's dump_path, or "probed"
  // "statistics", the usual one, "tensor", "overflow", whose out/overflow.json names of each step
  // the first op that is not finite, or "structure", of the first step that is looked at; "none"
  // beside `profile`.
  std::string task = {};
  std::string level = {};                  // "module", "op" or "mix"
  std::vector<std::int64_t> at = {};       // steps that are looked at, counted from 0
  std::optional<std::int64_t> every = {};  // or every how many-th, from step 0 on
  std::optional<bool> histograms = {};     // how many elements have each exponent is counted
  std::vector<std::string> list = {};      // names of entries, or parts of them
  // So many steps are timed, op by op, behind the first three or as [profile] of the config says:
  // out/profile.json (docs/profile.md).
  std::optional<std::int64_t> profile = {};
};

class Session {
 public:
  // Reads the config. UserError E0710 for a key or value that [probe] does not have, E0729 for one
  // of config.json, E0721 where there is no such file, E0872 for a task that is not of a session,
  // or a monitor.
  explicit Session(const SessionOptions& options);
  // What is asked for is looked at no more; of a step without step() nothing is written. Warns
  // where nothing is, or a step of `at` was never made.
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // From here on what this thread computes is looked at: module calls, ops, parameters, gradients,
  // updates. Compiled functions are compiled once more where they meet the session for the first
  // time, and go on without it where a step is not looked at. UserError E0870 where the session has
  // begun already, E0871 where another one looks at this thread, E0811 where steps of another dump
  // lie in the folder, E0821 where another session works in it; EnvironmentError E0603 where it
  // cannot be made.
  void start();
  // The step is over: what it held is written to out/stepN/rank, by a thread of its own; all of it
  // is there when the next one is over, and behind stop(). UserError E0870 before start(),
  // E0871 on another thread than start()'s, E0873 where the step is to be looked at and this thread
  // has computed nothing in it, E0327 where list means nothing; EnvironmentError E0603 where the
  // files cannot be written.
  void step();
  // What this thread has computed since the last step() is no step, as where it ended in an
  // exception that the loop goes on behind: nothing of it is written, a warning says so, and the
  // step that follows has its number. UserErrors of step() but E0873.
  void drop();
  // Nothing is looked at any more, and all files are there. What a step without its step() held is
  // not written, and a warning says so; start() goes on with its number. UserErrors of step() but
  // E0873 and E0327.
  void stop();

  std::int64_t steps() const;      // that are over
  const std::string& out() const;  // where they are written
  // Where the time goes, as a table: of the steps that were timed, once the last of them is over,
  // or behind stop(); empty before, and where none was.
  const std::string& profile() const;

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace aloft::observe
