// Where a compiled program's inputs are written and its results read: the host's doors to it.
#pragma once

#include <cstddef>
#include <span>
#include <utility>

#include "runtime/buffer.h"

namespace aloft {

// An input of a program, elements row by row at the bounds of its lengths.
template <class T>
class InputPort {
 public:
  InputPort() = default;
  explicit InputPort(Buffer buffer) : buffer_(std::move(buffer)) {}

  std::size_t size() const { return buffer_.bytes() / sizeof(T); }  // elements at most
  // The first elements of the next run: as many as `values`, at most size() (InternalError).
  void set(std::span<const T> values) const { buffer_.write_from(std::as_bytes(values)); }
  // All elements of the next run, or the first `count`: each is to be written.
  HostWrite<T> write() const { return buffer_.write<T>(); }
  HostWrite<T> write(std::size_t count) const { return buffer_.write<T>(0, count); }
  const Buffer& buffer() const { return buffer_; }

 private:
  Buffer buffer_;
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
