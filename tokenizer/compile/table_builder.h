// The tables of a compiled tokenizer.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "tokenizer/segment/tables.h"

namespace mote::tokenizer {

// Errors: kInvalidTokenizer if they have 4 GiB of text or more.
Result<std::unique_ptr<fb::StringsT>> build_strings(const std::vector<std::string>& strings);

// Finds the strings at `indices`, no two of which are equal.
std::vector<fb::Slot> build_slots(const std::vector<std::string>& strings, const std::vector<uint32_t>& indices);

// No two of the merges have the same pair.
std::vector<fb::Merge> build_merges(const std::vector<fb::Merge>& merges);

// Of the strings with their values, none of which is empty; of equal strings the last counts. nullptr: there are none.
std::unique_ptr<fb::TrieT> build_trie(std::vector<std::pair<std::string, int32_t>> strings);

}  // namespace mote::tokenizer
