// Memory of one rendering: values are never freed one by one, so that cycles and deep nesting cost nothing at the end.
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>

#include "runner/templates/budget.h"

namespace mote::jinja {

class Arena {
 public:
  explicit Arena(Budget& budget) : budget_(budget) {}
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  Budget& budget() { return budget_; }

  // Aligned for any value. Errors: throws Error when the budget is spent.
  void* allocate(size_t bytes);
  // Gives `memory`, of old_bytes, room for new_bytes; its contents may move.
  void* grow(void* memory, size_t old_bytes, size_t new_bytes);

  char* characters(size_t count) { return static_cast<char*>(allocate(count)); }

  template <typename T, typename... Arguments>
  T* make(Arguments&&... arguments) {
    static_assert(std::is_trivially_destructible_v<T>);
    return new (allocate(sizeof(T))) T{std::forward<Arguments>(arguments)...};
  }
  template <typename T>
  T* make_array(size_t count) {
    static_assert(std::is_trivially_destructible_v<T>);
    if (count > budget_.limits().max_memory_bytes / sizeof(T))
      budget_.take_memory(budget_.limits().max_memory_bytes + 1);
    T* items = static_cast<T*>(allocate(count * sizeof(T)));
    for (size_t i = 0; i < count; ++i) new (items + i) T{};
    return items;
  }

 private:
  struct Block {
    char* data = nullptr;
    size_t bytes = 0;
  };

  void* allocate_block(size_t bytes);

  Budget& budget_;
  std::vector<Block> blocks_;
  char* cursor_ = nullptr;
  char* end_ = nullptr;
};

}  // namespace mote::jinja
