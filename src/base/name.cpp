#include "base/name.h"

#include <deque>
#include <mutex>
#include <unordered_map>

namespace aloft {
namespace {
struct Table {
  std::mutex mutex;
  std::deque<std::string> storage;  // a deque never moves its elements
  std::unordered_map<std::string_view, const std::string*> index;
};
Table& table() {
  static Table* t = new Table;  // never destroyed: names outlive every static object
  return *t;
}
}  // namespace

const std::string* Name::intern(std::string_view text) {
  Table& t = table();
  std::lock_guard lock(t.mutex);
  if (auto it = t.index.find(text); it != t.index.end()) return it->second;
  const std::string* stored = &t.storage.emplace_back(text);
  t.index.emplace(*stored, stored);
  return stored;
}

const std::string* Name::empty() {
  static const std::string* e = intern("");
  return e;
}

}  // namespace aloft
