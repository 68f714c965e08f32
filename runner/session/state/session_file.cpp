#include "runner/session/state/session_file.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/atomic_file.h"
#include "base/crc32.h"
#include "base/open_file.h"
#include "session_file_generated.h"

namespace mote {
namespace {

constexpr char kSessionMagic[8] = {'M', 'O', 'T', 'E', 'S', 'E', 'S', 'S'};
constexpr uint32_t kSessionVersion = 2;
constexpr uint64_t kMaxSessionDescriptionBytes = uint64_t{1} << 30;
constexpr uint64_t kMaxDelegateBytes = kMaxSessionDescriptionBytes / 2;

struct SessionHeader {
  char magic[8];
  uint32_t version;
  uint32_t description_crc32;
  uint64_t description_bytes;
  uint64_t payload_bytes;
  uint32_t payload_crc32;
  uint32_t reserved;
};
static_assert(sizeof(SessionHeader) == 40);

template <typename T>
std::span<const std::byte> bytes_of(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

uint32_t program_crc32(const Model& model) { return crc32(model.bound()->file().program_bytes()); }

flatbuffers::Offset<fb::SavedGroup> describe_group(flatbuffers::FlatBufferBuilder& builder,
                                                   const StateSnapshot::Group& group, uint64_t slab_bytes) {
  std::vector<uint8_t> pages;
  for (const Slab& slab : group.slabs) pages.push_back(slab ? 1 : 0);
  return fb::CreateSavedGroup(builder, group.window, group.num_sinks, group.num_slots, slab_bytes,
                              builder.CreateVector(pages), builder.CreateVector(group.positions));
}

// The states that delegates keep, as bytes. Empty if a backend gives no bytes, or more than a description can hold.
Result<std::vector<SavedDelegate>> export_delegates(const SessionSnapshot& snapshot) {
  std::vector<SavedDelegate> saved;
  uint64_t total = 0;
  for (const NamedSnapshot& delegate : snapshot.delegates) {
    MOTE_ASSIGN(std::vector<std::byte> bytes, delegate.snapshot->to_bytes());
    total += bytes.size();
    if (bytes.empty() || total > kMaxDelegateBytes) return std::vector<SavedDelegate>();
    saved.push_back({delegate.backend, std::move(bytes)});
  }
  return saved;
}

void describe(flatbuffers::FlatBufferBuilder& builder, const Model& model, const SessionSnapshot& snapshot,
              const StateMemory& states, std::span<const SavedDelegate> saved_delegates) {
  std::vector<flatbuffers::Offset<fb::SavedDelegate>> delegates;
  for (const SavedDelegate& saved : saved_delegates) {
    const auto bytes = builder.CreateVector(reinterpret_cast<const uint8_t*>(saved.bytes.data()), saved.bytes.size());
    delegates.push_back(fb::CreateSavedDelegate(builder, builder.CreateString(saved.backend), bytes));
  }
  std::vector<flatbuffers::Offset<fb::SavedAdapter>> adapters;
  for (const MixedAdapter& each : snapshot.adapters) {
    const Adapter::Identity& identity = each.adapter->identity();
    adapters.push_back(fb::CreateSavedAdapter(builder, builder.CreateString(each.adapter->name()),
                                              identity.description_crc32, identity.data_crc32, identity.file_bytes,
                                              each.weight));
  }
  std::vector<flatbuffers::Offset<fb::SavedGroup>> groups;
  for (size_t i = 0; i < snapshot.states.groups.size(); ++i) {
    groups.push_back(describe_group(builder, snapshot.states.groups[i], states.slab_bytes(i)));
  }
  const auto model_id = builder.CreateString(model.program().provenance()->model_id()->string_view());
  const auto tokens = builder.CreateVector(snapshot.tokens);
  const auto logits = builder.CreateVector(snapshot.logits);
  const auto recurrent = builder.CreateVector(snapshot.states.recurrent);
  builder.Finish(fb::CreateSavedSession(
      builder, model_id, program_crc32(model), model.bound()->file().program_bytes().size(),
      static_cast<uint8_t>(snapshot.states.kv_dtype), tokens, logits, recurrent, builder.CreateVector(groups),
      builder.CreateVector(delegates), builder.CreateVector(adapters)));
}

// Calls body(address, bytes) for each piece of a page that the file holds, in the order of the file, while that
// succeeds.
template <typename Body>
Status for_each_piece(const StateSnapshot& snapshot, const StateMemory& states, const Body& body) {
  Status status;
  for (size_t i = 0; i < snapshot.groups.size(); ++i) {
    const std::vector<Slab>& slabs = snapshot.groups[i].slabs;
    for (size_t page = 0; page < slabs.size(); ++page) {
      if (!slabs[page]) continue;
      const int64_t slots = states.used_slots(i, static_cast<int64_t>(page), snapshot.position);
      states.for_each_piece(i, slots, [&](int64_t offset, int64_t bytes) {
        if (status.ok()) status = body(slabs[page].data() + offset, static_cast<size_t>(bytes));
      });
    }
  }
  return status;
}

class Reader {
 public:
  Reader(const std::string& path, const Model& model, const StateMemory& states, const AdapterMix& adapters,
         int64_t context_length)
      : path_(path), model_(model), states_(states), adapters_(adapters), context_length_(context_length) {}

  Result<SavedSession> read() {
    MOTE_RETURN_IF_ERROR(open());
    MOTE_RETURN_IF_ERROR(read_header());
    MOTE_RETURN_IF_ERROR(read_description());
    MOTE_RETURN_IF_ERROR(check_model());
    MOTE_RETURN_IF_ERROR(check_adapters());
    SavedSession saved;
    saved.tokens.assign(session_->tokens()->begin(), session_->tokens()->end());
    saved.logits.assign(session_->logits()->begin(), session_->logits()->end());
    MOTE_RETURN_IF_ERROR(check_tokens(saved));
    if (!has_layout()) return saved;
    read_delegates(saved);
    MOTE_ASSIGN(saved.states, read_states());
    return saved;
  }

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };

  Status invalid(const std::string& what) const { return {Code::kInvalidSession, path_ + ": " + what}; }

  Status open() {
    MOTE_ASSIGN(OpenedFile opened, open_regular_file(path_));
    file_.reset(::fdopen(opened.descriptor.get(), "rb"));
    MOTE_REQUIRE(file_ != nullptr, Code::kFileUnreadable, "%s: cannot be opened: %s", path_.c_str(),
                 std::strerror(errno));
    (void)opened.descriptor.release();  // fclose closes it
    file_bytes_ = static_cast<uint64_t>(opened.info.bytes);
    return {};
  }

  Status take(void* to, size_t bytes) {
    MOTE_REQUIRE(std::fread(to, 1, bytes, file_.get()) == bytes, Code::kFileUnreadable, "%s: ends in the middle",
                 path_.c_str());
    return {};
  }

  Status read_header() {
    if (file_bytes_ < sizeof header_) return invalid("is no saved session: it has less bytes than the header");
    MOTE_RETURN_IF_ERROR(take(&header_, sizeof header_));
    if (std::memcmp(header_.magic, kSessionMagic, sizeof kSessionMagic) != 0)
      return invalid("is no saved session: it starts with other bytes");
    MOTE_REQUIRE(header_.version == kSessionVersion, Code::kUnsupportedVersion,
                 "%s: version = %u: this runner reads %u", path_.c_str(), header_.version, kSessionVersion);
    if (header_.description_bytes > std::min(kMaxSessionDescriptionBytes, file_bytes_ - sizeof header_)) {
      return invalid(format(
          "description_bytes = %llu: must be at most %llu", static_cast<unsigned long long>(header_.description_bytes),
          static_cast<unsigned long long>(std::min(kMaxSessionDescriptionBytes, file_bytes_ - sizeof header_))));
    }
    const uint64_t left = file_bytes_ - sizeof header_ - header_.description_bytes;
    if (header_.payload_bytes != left) {
      return invalid(format("payload_bytes = %llu: the file has %llu",
                            static_cast<unsigned long long>(header_.payload_bytes),
                            static_cast<unsigned long long>(left)));
    }
    return {};
  }

  Status read_description() {
    description_.resize(static_cast<size_t>(header_.description_bytes));
    MOTE_RETURN_IF_ERROR(take(description_.data(), description_.size()));
    if (crc32(std::as_bytes(std::span(description_))) != header_.description_crc32) {
      return invalid("description_crc32: the checksum is another, so the file is damaged");
    }
    flatbuffers::Verifier verifier(description_.data(), description_.size());
    if (!verifier.VerifyBuffer<fb::SavedSession>(nullptr)) return invalid("the description is no valid flatbuffer");
    session_ = flatbuffers::GetRoot<fb::SavedSession>(description_.data());
    return {};
  }

  Status check_model() const {
    if (session_->program_crc32() == program_crc32(model_) &&
        session_->program_bytes() == model_.bound()->file().program_bytes().size()) {
      return {};
    }
    return invalid(format("was saved with another model file (%.100s): open that one, not %s",
                          session_->model_id()->c_str(), model_.path().c_str()));
  }

  Status check_adapters() const {
    const uint32_t count = session_->adapters() == nullptr ? 0 : session_->adapters()->size();
    bool is_same = count == adapters_.size();
    std::string saved;
    for (uint32_t i = 0; i < count; ++i) {
      const fb::SavedAdapter& adapter = *session_->adapters()->Get(i);
      saved += (i == 0 ? "" : ", ") + format("%.100s", adapter.name()->c_str());
      if (adapter.weight() != 1.0f) saved += format("=%g", static_cast<double>(adapter.weight()));
      const Adapter::Identity identity{adapter.description_crc32(), adapter.data_crc32(), adapter.file_bytes()};
      is_same = is_same && adapters_[i].adapter->identity() == identity && adapters_[i].weight == adapter.weight();
    }
    if (is_same) return {};
    return invalid(format("adapters = %.500s: the session has %.500s, must have those that the file was saved with",
                          count == 0 ? "none" : saved.c_str(), text_of(adapters_).c_str()));
  }

  Status check_tokens(const SavedSession& saved) const {
    MOTE_REQUIRE(saved.tokens.size() <= static_cast<size_t>(context_length_), Code::kContextFull,
                 "%s: has %zu tokens: open the session with a context_length of at least that, not %lld", path_.c_str(),
                 saved.tokens.size(), static_cast<long long>(context_length_));
    const int32_t vocab_size = model_.vocab_size();
    const auto bad =
        std::find_if(saved.tokens.begin(), saved.tokens.end(), [&](int32_t id) { return id < 0 || id >= vocab_size; });
    if (bad != saved.tokens.end()) return invalid(format("tokens: id %d must be 0..%d", *bad, vocab_size - 1));
    if (!saved.logits.empty() && saved.logits.size() != static_cast<size_t>(vocab_size)) {
      return invalid(format("logits: there are %zu, must be 0 or %d", saved.logits.size(), vocab_size));
    }
    return {};
  }

  void read_delegates(SavedSession& saved) const {
    if (session_->delegates() == nullptr) return;
    for (const fb::SavedDelegate* delegate : *session_->delegates()) {
      const std::span<const std::byte> bytes =
          std::as_bytes(std::span(delegate->bytes()->data(), delegate->bytes()->size()));
      saved.delegates.push_back({delegate->backend()->str(), {bytes.begin(), bytes.end()}});
    }
  }

  // Whether the saved pages have the layout that this session's pages have.
  bool has_layout() const {
    const auto& groups = *session_->groups();
    if (session_->tokens()->size() == 0 || groups.size() != states_.num_groups()) return false;
    const StateSnapshot own = states_.snapshot(0);
    if (session_->kv_dtype() != static_cast<uint8_t>(own.kv_dtype) && groups.size() > 0) return false;
    if (session_->recurrent()->size() != own.recurrent.size()) return false;
    for (uint32_t i = 0; i < groups.size(); ++i) {
      const StateSnapshot::Group& group = own.groups[i];
      const fb::SavedGroup& saved = *groups.Get(i);
      if (saved.window() != group.window || saved.num_sinks() != group.num_sinks ||
          saved.num_slots() != group.num_slots || saved.slab_bytes() != states_.slab_bytes(i)) {
        return false;
      }
    }
    return true;
  }

  Result<StateSnapshot> read_states() {
    StateSnapshot snapshot = states_.snapshot(0);
    snapshot.position = static_cast<int64_t>(session_->tokens()->size());
    snapshot.recurrent.assign(session_->recurrent()->begin(), session_->recurrent()->end());
    for (uint32_t i = 0; i < snapshot.groups.size(); ++i) MOTE_RETURN_IF_ERROR(make_group(i, snapshot));
    Size expected = 0;
    MOTE_RETURN_IF_ERROR(for_each_piece(snapshot, states_, [&](std::byte*, size_t bytes) {
      expected = expected + bytes;
      return Status();
    }));
    if (!(expected == Size(header_.payload_bytes))) {
      return invalid(format("payload_bytes = %llu: these pages take %lld",
                            static_cast<unsigned long long>(header_.payload_bytes),
                            static_cast<long long>(expected.value())));
    }
    uint32_t checksum = 0;
    MOTE_RETURN_IF_ERROR(for_each_piece(snapshot, states_, [&](std::byte* to, size_t bytes) {
      Status taken = take(to, bytes);
      checksum = crc32({to, bytes}, checksum);
      return taken;
    }));
    if (checksum != header_.payload_crc32)
      return invalid("payload_crc32: the checksum is another, so the file is damaged");
    return snapshot;
  }

  // Makes the pages of a group. That a file claims many costs nothing: pages take memory only when they are touched,
  // and only what the file holds is written to them.
  Status make_group(uint32_t index, StateSnapshot& snapshot) const {
    const fb::SavedGroup& saved = *session_->groups()->Get(index);
    StateSnapshot::Group& group = snapshot.groups[index];
    const auto pages = static_cast<size_t>(states_.used_pages(index, snapshot.position));
    if (saved.pages()->size() != pages)
      return invalid(format("groups[%u].pages: there are %u, must be %zu", index, saved.pages()->size(), pages));
    if (saved.positions()->size() != group.positions.size()) {
      return invalid(format("groups[%u].positions: there are %u, must be %zu", index, saved.positions()->size(),
                            group.positions.size()));
    }
    group.slabs.resize(pages);
    for (uint32_t page = 0; page < pages; ++page) {
      if (saved.pages()->Get(page) == 0) continue;
      group.slabs[page] = Slab::allocate(states_.slab_bytes(index), page + 1 < pages);
      MOTE_REQUIRE(static_cast<bool>(group.slabs[page]), Code::kOutOfMemory, "%s: no memory for its keys and values",
                   path_.c_str());
    }
    for (uint32_t slot = 0; slot < saved.positions()->size(); ++slot) {
      const int64_t position = saved.positions()->Get(slot);
      const bool is_held = position >= 0 && position < snapshot.position && states_.slot_of(index, position) == slot;
      if (position != -1 && (!is_held || !group.slabs[slot / kKvPageSlots])) {
        return invalid(
            format("groups[%u].positions[%u] = %lld: cannot be there", index, slot, static_cast<long long>(position)));
      }
      group.positions[slot] = position;
    }
    const bool is_whole = group.window != 0 || std::all_of(group.slabs.begin(), group.slabs.end(),
                                                           [](const Slab& slab) { return bool(slab); });
    return is_whole ? Status() : invalid(format("groups[%u].pages: one is missing", index));
  }

  const std::string& path_;
  const Model& model_;
  const StateMemory& states_;
  const AdapterMix& adapters_;
  const int64_t context_length_;
  std::unique_ptr<std::FILE, Close> file_;
  uint64_t file_bytes_ = 0;
  SessionHeader header_{};
  std::vector<uint8_t> description_;
  const fb::SavedSession* session_ = nullptr;
};

}  // namespace

Status write_session_file(const std::string& path, const Model& model, const SessionSnapshot& snapshot,
                          const StateMemory& states) {
  MOTE_ASSIGN(const std::vector<SavedDelegate> delegates, export_delegates(snapshot));
  flatbuffers::FlatBufferBuilder builder;
  describe(builder, model, snapshot, states, delegates);
  const std::span<const std::byte> description =
      std::as_bytes(std::span(builder.GetBufferPointer(), builder.GetSize()));
  SessionHeader header{};
  std::memcpy(header.magic, kSessionMagic, sizeof kSessionMagic);
  header.version = kSessionVersion;
  header.description_crc32 = crc32(description);
  header.description_bytes = description.size();
  MOTE_ASSIGN(AtomicFile file, AtomicFile::create(path, AtomicFile::Access::kOwner));
  MOTE_RETURN_IF_ERROR(file.write(bytes_of(header)));
  MOTE_RETURN_IF_ERROR(file.write(description));
  MOTE_RETURN_IF_ERROR(for_each_piece(snapshot.states, states, [&](std::byte* from, size_t bytes) {
    header.payload_bytes += bytes;
    header.payload_crc32 = crc32({from, bytes}, header.payload_crc32);
    return file.write({from, bytes});
  }));
  MOTE_RETURN_IF_ERROR(file.overwrite_start(bytes_of(header)));
  return file.commit();
}

Result<SavedSession> read_session_file(const std::string& path, const Model& model, const StateMemory& states,
                                       const AdapterMix& adapters, int64_t context_length) {
  return Reader(path, model, states, adapters, context_length).read();
}

}  // namespace mote
