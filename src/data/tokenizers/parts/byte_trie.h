// Texts with numbers, found as the beginnings of another text, byte by byte.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace aloft::parts {

class ByteTrie {
 public:
  static constexpr std::int32_t kRoot = 0, kNowhere = -1;

  ByteTrie() : nodes_(1) {}

  // A text that comes twice keeps the number of its last time. `value` is 0 or more. An empty text
  // is never found.
  void put(std::string_view text, std::int32_t value) {
    if (text.empty()) return;
    std::int32_t node = kRoot;
    for (char c : text) {
      const auto byte = static_cast<unsigned char>(c);
      std::int32_t after = next(node, byte);
      if (after == kNowhere) {
        after = static_cast<std::int32_t>(nodes_.size());
        nodes_.push_back({});
        nodes_[static_cast<std::size_t>(after)].byte = byte;
        if (node == kRoot) {
          first_.resize(256, kNowhere);
          first_[byte] = after;
        } else {
          Node& parent = nodes_[static_cast<std::size_t>(node)];
          nodes_[static_cast<std::size_t>(after)].sibling = parent.child;
          parent.child = after;
        }
      }
      node = after;
    }
    nodes_[static_cast<std::size_t>(node)].value = value;
  }

  // The node behind a byte; kNowhere where no text goes on so.
  std::int32_t next(std::int32_t node, unsigned char byte) const {
    if (node == kRoot) return first_.empty() ? kNowhere : first_[byte];
    std::int32_t child = nodes_[static_cast<std::size_t>(node)].child;
    while (child != kNowhere && nodes_[static_cast<std::size_t>(child)].byte != byte)
      child = nodes_[static_cast<std::size_t>(child)].sibling;
    return child;
  }

  // The number of the text that ends at a node; -1 where none does.
  std::int32_t value(std::int32_t node) const {
    return nodes_[static_cast<std::size_t>(node)].value;
  }

  // The node behind a whole text.
  std::int32_t walk(std::string_view text) const {
    std::int32_t node = kRoot;
    for (char c : text)
      if ((node = next(node, static_cast<unsigned char>(c))) == kNowhere) break;
    return node;
  }

 private:
  struct Node {
    std::int32_t value = -1, child = kNowhere, sibling = kNowhere;
    unsigned char byte = 0;
  };
  std::vector<Node> nodes_;
  std::vector<std::int32_t> first_;  // the root's children, by byte
};

}  // namespace aloft::parts
