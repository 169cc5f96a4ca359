// Where a compiled program's inputs are written and its results read: the host's doors to it.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "base/error.h"
#include "exec/input_turns.h"
#include "runtime/buffer.h"

namespace aloft {

// An input of a program, elements row by row at the bounds of its lengths.
template <class T>
class InputPort {
 public:
  InputPort() = default;
  explicit InputPort(Buffer buffer) : buffer_(std::move(buffer)), bytes_(buffer_.bytes()) {}
  // An input of so many bytes, whose homes `all` holds.
  InputPort(Buffer all, std::size_t bytes, std::shared_ptr<InputTurns> turns)
      : buffer_(std::move(all)), bytes_(bytes), turns_(std::move(turns)) {}

  std::size_t size() const { return bytes_ / sizeof(T); }  // elements at most
  // The first elements of the next run: as many as `values`, at most size() (UserError E0313). With
  // several homes they travel while the last run goes on.
  void set(std::span<const T> values) const {
    if (values.size() > size())
      throw UserError("E0313", "an input of a program is given more values than it has room for")
          .saw(std::to_string(values.size()))
          .need("at most " + std::to_string(size()));
    if (!turns_) return buffer_.write_from(std::as_bytes(values));
    turns_->load(buffer_, std::as_bytes(values));
  }
  // All elements of the next run, or the first `count`: each is to be written.
  HostWrite<T> write() const { return buffer().template write<T>(); }
  HostWrite<T> write(std::size_t count) const { return buffer().template write<T>(0, count); }
  // The memory that the next run reads.
  Buffer buffer() const { return turns_ ? turns_->open(buffer_, bytes_) : buffer_; }

 private:
  Buffer buffer_;
  std::size_t bytes_ = 0;
  std::shared_ptr<InputTurns> turns_;
};

// A result of a program: what its last run left, until the next run of any program beside it.
template <class T>
class OutputPort {
 public:
  OutputPort() = default;
  explicit OutputPort(Buffer buffer) : buffer_(std::move(buffer)) {}

  std::size_t size() const { return buffer_.bytes() / sizeof(T); }  // elements at most
  // The elements, when the run has ended.
  HostRead<T> read() const { return buffer_.read<T>(); }
  HostRead<T> read(std::size_t first, std::size_t count) const {
    return buffer_.read<T>(first, count);
  }
  // The first of them.
  T item() const { return buffer_.read_one<T>(); }

 private:
  Buffer buffer_;
};

}  // namespace aloft
