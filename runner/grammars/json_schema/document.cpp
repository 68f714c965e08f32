#include "runner/grammars/json_schema/document.h"

#include <algorithm>
#include <functional>

namespace mote::constraints {
namespace {

constexpr size_t kMaxPlainMembers = 16;  // of an object in which keys are looked for one by one
constexpr size_t kBytesOfValue = 2 * sizeof(Json);
constexpr size_t kBytesOfEntry = 64;  // of a table

size_t combined(size_t hash, size_t value) { return (hash ^ value) * 0x9E3779B97F4A7C15ULL; }

// What nlohmann's own reader makes, but within a budget, and without looking at all keys of an object for each new one.
class Reader : public nlohmann::json_sax<Json> {
 public:
  Reader(Json& root, WorkBudget& budget) : root_(root), budget_(budget) {}

  bool is_too_deep() const { return is_too_deep_; }
  size_t num_values() const { return num_values_; }

  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(value); }
  bool number_unsigned(number_unsigned_t value) override { return add(value); }
  bool number_float(number_float_t value, const string_t&) override { return add(value); }
  bool string(string_t& value) override {
    budget_.count(value.size() / 16);
    budget_.hold(sizeof(string_t) + value.size());
    return add(std::move(value));
  }
  bool binary(binary_t&) override { return false; }
  bool start_object(size_t) override { return open(Json::object()); }
  bool start_array(size_t) override { return open(Json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool parse_error(size_t, const std::string&, const nlohmann::detail::exception&) override { return false; }

  bool key(string_t& text) override {
    Open& object = open_.back();
    Members& members = object.value->get_ref<Json::object_t&>();
    budget_.count(1 + text.size() / 16);
    budget_.hold(2 * sizeof(Json::object_t::value_type) + text.size());
    if (const auto known = find(object, members, text); known < members.size()) {
      place_ = &members[known].second;
      return !budget_.is_spent();
    }
    if (members.size() >= kMaxPlainMembers) object.keys.emplace(std::hash<string_t>()(text), members.size());
    members.emplace_back(std::move(text), nullptr);
    place_ = &members.back().second;
    return !budget_.is_spent();
  }

 private:
  using Members = Json::object_t::Container;
  struct Open {
    Json* value;
    std::unordered_multimap<size_t, size_t> keys{};  // of a large object: hashes and places
  };

  // The place of a member; the end: there is none.
  static size_t find(Open& object, const Members& members, const string_t& text) {
    if (members.size() < kMaxPlainMembers) {
      const auto has_key = [&](const auto& member) { return member.first == text; };
      return static_cast<size_t>(std::find_if(members.begin(), members.end(), has_key) - members.begin());
    }
    if (object.keys.empty()) {
      for (size_t i = 0; i < members.size(); ++i) object.keys.emplace(std::hash<string_t>()(members[i].first), i);
    }
    const auto [first, last] = object.keys.equal_range(std::hash<string_t>()(text));
    for (auto entry = first; entry != last; ++entry) {
      if (members[entry->second].first == text) return entry->second;
    }
    return members.size();
  }

  template <typename Value>
  bool add(Value&& value) {
    put(Json(std::forward<Value>(value)));
    return !budget_.is_spent();
  }

  Json* put(Json value) {
    ++num_values_;
    budget_.count(1);
    budget_.hold(kBytesOfValue);
    if (open_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    if (open_.back().value->is_object()) {
      *place_ = std::move(value);
      return place_;
    }
    auto& items = open_.back().value->get_ref<Json::array_t&>();
    items.push_back(std::move(value));
    return &items.back();
  }

  bool open(Json value) {
    is_too_deep_ = open_.size() >= kMaxNesting;
    if (is_too_deep_) return false;
    Json* placed = put(std::move(value));
    open_.push_back({placed, {}});
    return !budget_.is_spent();
  }

  bool close() {
    open_.pop_back();
    return true;
  }

  Json& root_;
  WorkBudget& budget_;
  std::vector<Open> open_;
  Json* place_ = nullptr;  // of the member whose key was read
  bool is_too_deep_ = false;
  size_t num_values_ = 0;
};

std::string escaped(std::string_view key) {
  std::string text;
  for (const char c : key) {
    if (c == '~')
      text += "~0";
    else if (c == '/')
      text += "~1";
    else
      text += c;
  }
  return text;
}

// Puts the path to `wanted` in front of `path`. False: it is not in `at`.
bool find_path(const Json& at, const Json* wanted, std::string& path) {
  if (&at == wanted) return true;
  if (at.is_object()) {
    for (const auto& [key, value] : at.get_ref<const Json::object_t&>()) {
      if (!find_path(value, wanted, path)) continue;
      path.insert(0, "/" + escaped(key));
      return true;
    }
  } else if (at.is_array()) {
    for (size_t i = 0; i < at.size(); ++i) {
      if (!find_path(at[i], wanted, path)) continue;
      path.insert(0, "/" + std::to_string(i));
      return true;
    }
  }
  return false;
}

}  // namespace

size_t JsonHash::operator()(const Json* value) const {
  if (value->is_number()) return std::hash<double>()(value->get<double>());
  if (value->is_string()) return std::hash<std::string>()(value->get_ref<const std::string&>());
  size_t hash = static_cast<size_t>(value->type());
  if (value->is_boolean()) return combined(hash, value->get<bool>() ? 1 : 2);
  if (value->is_array()) {
    for (const Json& item : *value) hash = combined(hash, (*this)(&item));
  } else if (value->is_object()) {
    for (const auto& [key, item] : value->get_ref<const Json::object_t&>())
      hash = combined(combined(hash, std::hash<std::string>()(key)), (*this)(&item));
  }
  return hash;
}

Result<std::unique_ptr<Document>> Document::read(std::string_view source, WorkBudget& budget) {
  std::unique_ptr<Document> document(new Document(budget));
  MOTE_RETURN_IF_ERROR(budget.spend(source.size() / 8));
  Reader reader(document->root_, budget);
  const bool is_json = Json::sax_parse(source, &reader);
  MOTE_RETURN_IF_ERROR(budget.status());
  MOTE_REQUIRE(!reader.is_too_deep(), Code::kInvalidArgument, "JSON Schema: values are nested deeper than %zu levels",
               kMaxNesting);
  MOTE_REQUIRE(is_json, Code::kInvalidArgument, "JSON Schema: the text is no JSON");
  document->num_values_ = reader.num_values();
  return document;
}

const Json* Document::member(const Json& value, std::string_view key) {
  if (!value.is_object()) return nullptr;
  const auto& members = value.get_ref<const Json::object_t&>();
  budget_.count(1);
  if (members.size() <= kMaxPlainMembers) {
    const auto found =
        std::find_if(members.begin(), members.end(), [&](const auto& member) { return member.first == key; });
    return found == members.end() ? nullptr : &found->second;
  }
  const auto [index, is_new] = members_.try_emplace(&value);
  if (is_new) {
    budget_.count(4 * members.size());
    budget_.hold(kBytesOfEntry * members.size());
    for (const auto& [name, item] : members) index->second.emplace(name, &item);
  }
  const auto found = index->second.find(key);
  return found == index->second.end() ? nullptr : found->second;
}

bool Document::contains_text(const Json& texts, const std::string& text) {
  budget_.count(1);
  const auto [index, is_new] = texts_.try_emplace(&texts);
  if (is_new) {
    budget_.count(4 * texts.size());
    budget_.hold(kBytesOfEntry * texts.size());
    for (const Json& item : texts) index->second.insert(item.get_ref<const std::string&>());
  }
  return index->second.contains(text);
}

bool Document::contains_value(const Json& values, const Json& value) {
  budget_.count(2);
  const auto [index, is_new] = values_.try_emplace(&values);
  if (is_new) {
    budget_.count(4 * values.size());
    budget_.hold(kBytesOfEntry * values.size());
    for (const Json& item : values) index->second.insert(&item);
  }
  return index->second.contains(&value);
}

const Json* Document::first_like(const Json& value) {
  budget_.count(2);
  const auto [found, is_new] = first_like_.try_emplace(&value);
  if (is_new) {
    budget_.count(4 * value.size());
    budget_.hold(2 * kBytesOfEntry);
    found->second = *alike_.insert(&value).first;
  }
  return found->second;
}

std::string Document::pointer_to(const Json* value) const {
  budget_.count(num_values_ / 4);
  std::string path;
  return find_path(root_, value, path) ? "#" + path : "#";
}

}  // namespace mote::constraints
