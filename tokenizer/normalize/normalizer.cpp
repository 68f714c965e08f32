#include "tokenizer/normalize/normalizer.h"

#include "tokenizer/normalize/nfc.h"

namespace mote::tokenizer {
namespace {

class SequenceNormalizer final : public Normalizer {
 public:
  explicit SequenceNormalizer(std::vector<std::unique_ptr<Normalizer>> parts) : parts_(std::move(parts)) {}

  Result<std::string> normalize(std::string text) const override {
    for (const auto& part : parts_) {
      MOTE_ASSIGN(text, part->normalize(std::move(text)));
    }
    return text;
  }

 private:
  std::vector<std::unique_ptr<Normalizer>> parts_;
};

}  // namespace

Result<std::unique_ptr<Normalizer>> make_normalizer(const Field& field) {
  if (field.is_null()) return std::unique_ptr<Normalizer>();
  MOTE_RETURN_IF_ERROR(field.require_object());
  const std::string type = field.type();
  if (type == "NFC") return std::unique_ptr<Normalizer>(std::make_unique<Nfc>());
  if (type != "Sequence") return field["type"].error("NFC or a Sequence of NFC");
  const Field list = field["normalizers"];
  MOTE_RETURN_IF_ERROR(list.require_array());
  std::vector<std::unique_ptr<Normalizer>> parts;
  for (size_t i = 0; i < list.json().size(); ++i) {
    MOTE_ASSIGN(auto part, make_normalizer(list[i]));
    if (part != nullptr) parts.push_back(std::move(part));
  }
  return std::unique_ptr<Normalizer>(std::make_unique<SequenceNormalizer>(std::move(parts)));
}

}  // namespace mote::tokenizer
