#include "runner/templates/describe.h"

#include <cmath>

#include "base/decimal.h"
#include "base/utf8.h"
#include "runner/templates/escapes.h"
#include "runner/templates/loop.h"

namespace mote::jinja {
namespace {

void print_items(Runtime& runtime, TextBuilder& out, const List& list, int depth) {
  for (size_t i = 0; i < list.size; ++i) {
    if (i > 0) out.add(", ", false);
    print_repr(runtime, out, list.items[i], depth + 1);
  }
}

void print_dict(Runtime& runtime, TextBuilder& out, const Dict& dict, int depth) {
  out.add('{');
  for (size_t i = 0; i < dict.size; ++i) {
    if (i > 0) out.add(", ", false);
    print_repr(runtime, out, dict.entries[i].key, depth + 1);
    out.add(": ", false);
    print_repr(runtime, out, dict.entries[i].value, depth + 1);
  }
  out.add('}');
}

void print_view(Runtime& runtime, TextBuilder& out, const DictView& view, int depth) {
  out.add(view.part == DictView::Part::kKeys     ? "dict_keys(["
          : view.part == DictView::Part::kValues ? "dict_values(["
                                                 : "dict_items([",
          false);
  for (size_t i = 0; i < view.dict->size; ++i) {
    const Dict::Entry& entry = view.dict->entries[i];
    if (i > 0) out.add(", ", false);
    if (view.part == DictView::Part::kItems) {
      out.add('(');
      print_repr(runtime, out, entry.key, depth + 1);
      out.add(", ", false);
      print_repr(runtime, out, entry.value, depth + 1);
      out.add(')');
    } else {
      print_repr(runtime, out, view.part == DictView::Part::kKeys ? entry.key : entry.value, depth + 1);
    }
  }
  out.add("])", false);
}

void print_quoted(TextBuilder& out, const Text& text) {
  const std::string_view view = text.view();
  const char quote = view.find('\'') != view.npos && view.find('"') == view.npos ? '"' : '\'';
  out.add(quote);
  out.add_mapped(text, [quote](std::string& buffer, char32_t c) {
    if (c == static_cast<char32_t>(quote) || c == '\\') {
      buffer += '\\';
      buffer += static_cast<char>(c);
    } else if (is_printable(c)) {
      append_utf8(buffer, c);
    } else {
      append_python_escape(buffer, c);
    }
  });
  out.add(quote);
}

std::string range_repr(const Range& range) {
  std::string text = "range(" + std::to_string(range.start) + ", " + std::to_string(range.stop);
  if (range.step != 1) text += ", " + std::to_string(range.step);
  return text + ")";
}

// repr() of objects that have no parts to show.
std::string object_repr(const Value& value) {
  switch (value.kind) {
    case Kind::kMacro:
      return value.macro->info->is_anonymous ? "<Macro anonymous>" : "<Macro " + repr_of(value.macro->info->name) + ">";
    case Kind::kFunction: return "<function " + std::string(value.function->signature.function) + ">";
    case Kind::kMethod: return "<built-in method " + std::string(value.method->function->signature.function) + ">";
    case Kind::kIterator: return "<" + std::string(value.iterator->type_name) + " object>";
    default: return "<" + std::string(type_name(value)) + ">";
  }
}

}  // namespace

const char* type_name(const Value& value) {
  switch (value.kind) {
    case Kind::kMissing:
    case Kind::kUndefined: return "Undefined";
    case Kind::kNone: return "NoneType";
    case Kind::kBool: return "bool";
    case Kind::kInteger: return "int";
    case Kind::kFloat: return "float";
    case Kind::kText: return value.safe ? "Markup" : "str";
    case Kind::kList: return "list";
    case Kind::kTuple: return "tuple";
    case Kind::kDict: return "dict";
    case Kind::kDictView:
      return value.view->part == DictView::Part::kKeys     ? "dict_keys"
             : value.view->part == DictView::Part::kValues ? "dict_values"
                                                           : "dict_items";
    case Kind::kRange: return "range";
    case Kind::kIterator: return value.iterator->type_name;
    case Kind::kNamespace: return "TemplateNamespace";
    case Kind::kMacro: return "Macro";
    case Kind::kFunction: return "function";
    case Kind::kMethod: return "builtin_function_or_method";
    case Kind::kLoop: return "LoopContext";
    case Kind::kCycler: return "Cycler";
    case Kind::kJoiner: return "Joiner";
  }
  return "object";
}

std::string object_type(const Value& value) {
  switch (value.kind) {
    case Kind::kNone: return "None";
    case Kind::kText: return value.safe ? "markupsafe.Markup object" : "str object";
    case Kind::kNamespace: return "transformers.utils.chat_template_utils.TemplateNamespace object";
    case Kind::kMacro:
    case Kind::kLoop: return "jinja2.runtime." + std::string(type_name(value)) + " object";
    case Kind::kCycler:
    case Kind::kJoiner: return "jinja2.utils." + std::string(type_name(value)) + " object";
    default: return std::string(type_name(value)) + " object";
  }
}

std::string undefined_message(Runtime& runtime, const Value& value) {
  const Undefined& undefined = *value.undefined;
  if (undefined.hint.size > 0) return std::string(undefined.hint.view());
  const std::string name = repr_string(runtime, undefined.name);
  if (undefined.object.is(Kind::kMissing)) return name + " is undefined";
  if (!undefined.name.is_text()) return object_type(undefined.object) + " has no element " + name;
  return repr_of(object_type(undefined.object)) + " has no attribute " + name;
}

std::string float_repr(double value) {
  const std::string text = shortest_text(value);
  return text.find_first_not_of("-0123456789") == text.npos ? text + ".0" : text;
}

void print(Runtime& runtime, TextBuilder& out, const Value& value) {
  switch (value.kind) {
    case Kind::kMissing:
    case Kind::kUndefined: return;
    case Kind::kText: return out.add(value.text());
    default: print_repr(runtime, out, value);
  }
}

void print_repr(Runtime& runtime, TextBuilder& out, const Value& value, int depth) {
  const int max_depth = runtime.budget().limits().max_data_depth;
  if (depth > max_depth) MOTE_JINJA_FAIL("a value that is printed nests deeper than %d", max_depth);
  runtime.budget().step();
  switch (value.kind) {
    case Kind::kMissing:
    case Kind::kUndefined: return out.add("Undefined", false);
    case Kind::kNone: return out.add("None", false);
    case Kind::kBool: return out.add(value.boolean ? "True" : "False", false);
    case Kind::kInteger: return out.add(std::to_string(value.integer), false);
    case Kind::kFloat: return out.add(float_repr(value.real), false);
    case Kind::kText:
      if (value.safe) out.add("Markup(", false);
      print_quoted(out, value.text());
      if (value.safe) out.add(')');
      return;
    case Kind::kList:
      out.add('[');
      print_items(runtime, out, *value.list, depth);
      return out.add(']');
    case Kind::kTuple:
      out.add('(');
      print_items(runtime, out, *value.list, depth);
      return out.add(value.list->size == 1 ? ",)" : ")", false);
    case Kind::kDict: return print_dict(runtime, out, *value.dict, depth);
    case Kind::kDictView: return print_view(runtime, out, *value.view, depth);
    case Kind::kRange: return out.add(range_repr(*value.range), false);
    case Kind::kNamespace:
      out.add("<Namespace ", false);
      print_dict(runtime, out, *value.space->attributes, depth + 1);
      return out.add('>');
    case Kind::kLoop:
      return out.add(format("<LoopContext %lld/%lld>", static_cast<long long>(value.loop->index0 + 1),
                            static_cast<long long>(loop_length(*value.loop))),
                     false);
    default: return out.add(object_repr(value), false);
  }
}

Text to_text(Runtime& runtime, const Value& value) {
  Text text = to_soft_text(runtime, value);
  text.safe = false;
  return text;
}

Text to_soft_text(Runtime& runtime, const Value& value) {
  if (value.is_text()) return value.text();
  TextBuilder out(runtime.arena());
  print(runtime, out, value);
  return out.finish();
}

Text to_repr(Runtime& runtime, const Value& value) {
  TextBuilder out(runtime.arena());
  print_repr(runtime, out, value);
  return out.finish();
}

std::string repr_string(Runtime& runtime, const Value& value) { return std::string(to_repr(runtime, value).view()); }

}  // namespace mote::jinja
