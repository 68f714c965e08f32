#include "base/handles.h"

#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <mutex>

namespace mote {

// `state` holds three fields, from the highest bits to the lowest: the generation, which a handle must have too;
// whether the handle is open; the number of pins.
struct HandleSlot {
  static constexpr uint64_t kPins = (uint64_t{1} << 31) - 1;
  static constexpr uint64_t kOpen = kPins + 1;

  std::atomic<uint64_t> state{0};
  const HandleKind* kind = nullptr;
  void* object = nullptr;
  uint32_t index = 0;
  uint32_t next_free = 0;

  bool pin(uint32_t generation);
  void unpin();
  bool close();
  void clear();
};

namespace {

// A handle is generation, index and a 1, from the highest bit to the lowest. The 1 tells it from the address of an
// object, which is never odd.
constexpr int kIndexBits = sizeof(void*) >= 8 ? 24 : 14;
constexpr int kGenerationBits = sizeof(void*) >= 8 ? 32 : 17;
constexpr uint32_t kMaxSlots = uint32_t{1} << kIndexBits;
constexpr uint32_t kMaxGeneration = static_cast<uint32_t>((uint64_t{1} << kGenerationBits) - 1);
constexpr uint32_t kNone = UINT32_MAX;

uint32_t generation_of(uint64_t state) { return static_cast<uint32_t>(state >> 32); }

// Block k has kFirstBlock << k slots. Blocks stay where they are and are never freed, so that a lookup needs no lock.
constexpr uint32_t kFirstBlock = 64;
constexpr size_t kMaxBlocks = kIndexBits - 5;

constinit std::array<std::atomic<HandleSlot*>, kMaxBlocks> blocks{};

struct Table {
  std::mutex mutex;  // guards the members below, and writing to the blocks
  uint32_t num_slots = 0;
  uint32_t first_free = kNone;
  size_t num_used = 0;
};

// Never destroyed: handles may be closed while the process ends.
Table& table() {
  static Table& forever = *new Table;
  return forever;
}

uint32_t block_of(uint32_t index) { return static_cast<uint32_t>(std::bit_width(index / kFirstBlock + 1)) - 1; }
uint32_t first_index(uint32_t block) { return kFirstBlock * ((uint32_t{1} << block) - 1); }

HandleSlot* slot_at(uint32_t index) {
  const uint32_t block = block_of(index);
  HandleSlot* slots = block < kMaxBlocks ? blocks[block].load(std::memory_order_acquire) : nullptr;
  return slots == nullptr ? nullptr : slots + (index - first_index(block));
}

// The caller holds the table's mutex. nullptr: there are as many slots as handles can tell apart.
HandleSlot* take_slot() {
  Table& all = table();
  if (all.first_free != kNone) {
    HandleSlot* slot = slot_at(all.first_free);
    all.first_free = slot->next_free;
    return slot;
  }
  if (all.num_slots == kMaxSlots) return nullptr;
  const uint32_t block = block_of(all.num_slots);
  if (first_index(block) == all.num_slots)
    blocks[block].store(new HandleSlot[size_t{kFirstBlock} << block], std::memory_order_release);
  HandleSlot* slot = slot_at(all.num_slots);
  slot->index = all.num_slots++;
  return slot;
}

struct Reference {
  uint32_t index = 0;
  uint32_t generation = 0;
  bool is_well_formed = false;

  explicit Reference(const void* handle) {
    const auto value = static_cast<uint64_t>(reinterpret_cast<uintptr_t>(handle));
    index = static_cast<uint32_t>(value >> 1) & (kMaxSlots - 1);
    generation = static_cast<uint32_t>(value >> (1 + kIndexBits));
    is_well_formed = (value & 1) != 0 && generation != 0 && value >> (1 + kIndexBits) <= kMaxGeneration;
  }
  HandleSlot* slot() const { return is_well_formed ? slot_at(index) : nullptr; }
};

HandleSlot* find_slot(const void* handle) {
  const Reference reference(handle);
  HandleSlot* slot = reference.slot();
  return slot != nullptr && slot->pin(reference.generation) ? slot : nullptr;
}

}  // namespace

bool HandleSlot::pin(uint32_t generation) {
  uint64_t now = state.load(std::memory_order_relaxed);
  do {
    if (generation_of(now) != generation || (now & kOpen) == 0) return false;
  } while (!state.compare_exchange_weak(now, now + 1, std::memory_order_acquire, std::memory_order_relaxed));
  return true;
}

void HandleSlot::unpin() {
  const uint64_t before = state.fetch_sub(1, std::memory_order_acq_rel);
  if ((before & (kOpen | kPins)) == 1) clear();
}

// The calling thread has a pin. False if another thread closed the handle first.
bool HandleSlot::close() { return (state.fetch_and(~kOpen, std::memory_order_acq_rel) & kOpen) != 0; }

// A slot whose generations are used up is never used again, so that no old handle becomes a new one.
void HandleSlot::clear() {
  kind->destroy(object);
  Table& all = table();
  const std::lock_guard lock(all.mutex);
  --all.num_used;
  if (generation_of(state.load(std::memory_order_relaxed)) == kMaxGeneration) return;
  next_free = all.first_free;
  all.first_free = index;
}

Pin::~Pin() {
  if (slot_ != nullptr) slot_->unpin();
}

void* Pin::object() const { return slot_->object; }

Pin Pin::find(const HandleKind& kind, const void* handle) noexcept {
  Pin pin;
  pin.slot_ = find_slot(handle);
  return pin && pin.slot_->kind == &kind ? std::move(pin) : Pin();
}

Result<void*> open_handle(const HandleKind& kind, void* object) {
  Table& all = table();
  const std::lock_guard lock(all.mutex);
  HandleSlot* slot = take_slot();
  MOTE_REQUIRE(slot != nullptr, Code::kOutOfMemory, "%u handles are open: close some", kMaxSlots);
  ++all.num_used;
  slot->kind = &kind;
  slot->object = object;
  const uint32_t generation = generation_of(slot->state.load(std::memory_order_relaxed)) + 1;
  slot->state.store((uint64_t{generation} << 32) | HandleSlot::kOpen, std::memory_order_release);
  const uint64_t value = (uint64_t{generation} << (1 + kIndexBits)) | (uint64_t{slot->index} << 1) | 1;
  return reinterpret_cast<void*>(static_cast<uintptr_t>(value));
}

void close_handle(const HandleKind& kind, const void* handle) noexcept {
  HandleSlot* slot = find_slot(handle);
  if (slot == nullptr) return;
  if (slot->kind == &kind) (void)slot->close();
  slot->unpin();
}

Status refuse_handle(const HandleKind& kind, const void* handle) {
  MOTE_REQUIRE(handle != nullptr, Code::kInvalidArgument, "%s is NULL", kind.name);
  const Reference reference(handle);
  const HandleSlot* slot = reference.slot();
  const bool was_open =
      slot != nullptr && reference.generation <= generation_of(slot->state.load(std::memory_order_acquire));
  MOTE_REQUIRE(was_open, Code::kInvalidArgument, "%s = %p: must be a handle that was opened", kind.name, handle);
  HandleSlot* found = find_slot(handle);
  MOTE_REQUIRE(found != nullptr, Code::kInvalidArgument, "%s = %p: it was closed", kind.name, handle);
  const char* name = found->kind->name;
  found->unpin();
  return {Code::kInvalidArgument, format("%s = %p: it is the handle of a %s", kind.name, handle, name)};
}

size_t num_handle_objects() {
  const std::lock_guard lock(table().mutex);
  return table().num_used;
}

}  // namespace mote
