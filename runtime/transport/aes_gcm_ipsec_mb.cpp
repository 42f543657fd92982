#include "runtime/transport/aes_gcm.h"

#if __has_include(<intel-ipsec-mb.h>)
#include <dlfcn.h>
#include <intel-ipsec-mb.h>
#include <sodium/utils.h>

#include <array>
#include <string>

namespace runtime {

namespace {

/// Opened by the first that needs it: a worker that talks within its machine alone does not pay for
/// the library. Its direct functions keep nothing in the manager. Null: there is none.
const IMB_MGR* find_manager() {
  const std::string name = "libIPSec_MB.so." + std::to_string(IMB_VERSION_NUM >> 16);
  void* library = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return nullptr;
  const auto make = reinterpret_cast<decltype(&alloc_mb_mgr)>(::dlsym(library, "alloc_mb_mgr"));
  const auto init =
      reinterpret_cast<decltype(&init_mb_mgr_auto)>(::dlsym(library, "init_mb_mgr_auto"));
  const auto version =
      reinterpret_cast<decltype(&imb_get_version)>(::dlsym(library, "imb_get_version"));
  // What an older one has is laid out otherwise.
  if (!make || !init || !version || version() < IMB_VERSION_NUM) return nullptr;
  IMB_MGR* manager = make(0);
  if (manager == nullptr) return nullptr;
  IMB_ARCH chosen = IMB_ARCH_NONE;
  init(manager, &chosen);
  // Without AES instructions it computes by tables, which is slow and takes a time that depends on
  // the key.
  const bool is_fit = chosen > IMB_ARCH_NOAESNI && (manager->features & IMB_FEATURE_AESNI) != 0;
  return is_fit ? manager : nullptr;
}

class IpsecMbAesGcm final : public AesGcm {
 public:
  IpsecMbAesGcm(const IMB_MGR& manager, Use use)
      : manager_(manager),
        update_(use == Use::kSeal ? manager.gcm256_enc_update : manager.gcm256_dec_update),
        finish_(use == Use::kSeal ? manager.gcm256_enc_finalize : manager.gcm256_dec_finalize) {}
  ~IpsecMbAesGcm() override {
    sodium_memzero(&key_, sizeof key_);
    sodium_memzero(&message_, sizeof message_);
  }

  void set_key(const SymmetricKey& key) override { manager_.gcm256_pre(key.data(), &key_); }
  void begin(std::span<const std::byte, kNonceBytes> nonce,
             std::span<const std::byte> associated) override {
    manager_.gcm256_init(&key_, &message_, reinterpret_cast<const std::uint8_t*>(nonce.data()),
                         reinterpret_cast<const std::uint8_t*>(associated.data()),
                         associated.size());
  }
  void update(std::span<const std::byte> from, std::byte* to) override {
    update_(&key_, &message_, reinterpret_cast<std::uint8_t*>(to),
            reinterpret_cast<const std::uint8_t*>(from.data()), from.size());
  }
  void write_tag(Tag tag) override {
    finish_(&key_, &message_, reinterpret_cast<std::uint8_t*>(tag.data()), tag.size());
  }
  bool check_tag(std::span<const std::byte, kTagBytes> tag) override {
    std::array<std::byte, kTagBytes> computed;
    write_tag(computed);
    return sodium_memcmp(computed.data(), tag.data(), kTagBytes) == 0;
  }

 private:
  const IMB_MGR& manager_;
  const aes_gcm_enc_dec_update_t update_;
  const aes_gcm_enc_dec_finalize_t finish_;
  gcm_key_data key_{};
  gcm_context_data message_{};
};

}  // namespace

std::unique_ptr<AesGcm> make_ipsec_mb_aes_gcm(AesGcm::Use use) {
  static const IMB_MGR* const manager = find_manager();
  return manager ? std::make_unique<IpsecMbAesGcm>(*manager, use) : nullptr;
}

}  // namespace runtime

#else

namespace runtime {

std::unique_ptr<AesGcm> make_ipsec_mb_aes_gcm(AesGcm::Use) { return nullptr; }

}  // namespace runtime

#endif
