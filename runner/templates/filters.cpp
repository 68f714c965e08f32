#include "runner/templates/filters.h"

#include <unordered_map>

namespace mote::jinja {
namespace {

using Table = std::unordered_map<std::string_view, const Filter*>;

Table make_table() {
  Table table;
  for (const auto& filters :
       {text_filters(), sequence_filters(), selection_filters(), number_filters(), json_filters()}) {
    for (const Filter& filter : filters) table.emplace(filter.name, &filter);
  }
  return table;
}

}  // namespace

const Filter* find_filter(std::string_view name) {
  static const Table& table = *new Table(make_table());  // threads may render while the process exits
  const auto found = table.find(name);
  return found == table.end() ? nullptr : found->second;
}

Value apply_filter(Runtime& runtime, const Filter& filter, const Value& value, const Arguments& arguments) {
  runtime.budget().step();
  if (filter.function.call_any != nullptr) return filter.function.call_any(runtime, value, arguments);
  return filter.function.call(runtime, value, Bound(filter.function.signature, &value, arguments));
}

Value make_lazy(Runtime& runtime, const Value& source, Arguments arguments, Iterator::Fill fill, bool flag) {
  Iterator* iterator = runtime.arena().make<Iterator>();
  iterator->fill = fill;
  iterator->source = source;
  iterator->arguments = runtime.keep(std::move(arguments));
  iterator->flag = flag;
  return Value::of(Kind::kIterator, iterator);
}

}  // namespace mote::jinja
