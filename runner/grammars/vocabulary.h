// The tokens of a tokenizer as bytes, in a tree in which tokens that begin alike share their beginning.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"

namespace mote::constraints {

// Nodes lie in the order of a walk that goes down first: the children of a node are node + 1, end(node + 1), ... before
// end(node). Node 0 is the root. Immutable.
class Vocabulary {
 public:
  // tokens: the bytes of each id; none: a token that no grammar allows, such as a special token
  // eos_ids: what a text may end with   Errors: kInvalidArgument
  static Result<std::shared_ptr<const Vocabulary>> make(std::vector<std::string> tokens, std::vector<int32_t> eos_ids);

  int32_t num_ids() const { return static_cast<int32_t>(tokens_.size()); }
  std::span<const int32_t> eos_ids() const { return eos_ids_; }
  bool is_eos(int32_t id) const;
  const std::string& bytes(int32_t id) const { return tokens_[static_cast<size_t>(id)]; }
  size_t longest() const { return longest_; }

  uint32_t num_nodes() const { return static_cast<uint32_t>(nodes_.size()); }
  uint32_t end(uint32_t node) const { return nodes_[node].end; }
  uint8_t byte(uint32_t node) const { return nodes_[node].byte; }
  bool has_children(uint32_t node) const { return nodes_[node].end > node + 1; }
  std::span<const int32_t> ids(uint32_t node) const;

  // Words of 32 bits that a mask has: bit id % 32 of word id / 32.
  size_t mask_words() const { return (tokens_.size() + 31) / 32; }

 private:
  struct Node {
    uint32_t end = 0;
    uint32_t first_id = 0;
    uint8_t byte = 0;
  };

  Vocabulary() = default;
  void build_tree();

  std::vector<std::string> tokens_;
  std::vector<int32_t> eos_ids_;
  std::vector<int32_t> sorted_;
  std::vector<Node> nodes_;
  size_t longest_ = 0;
};

}  // namespace mote::constraints
