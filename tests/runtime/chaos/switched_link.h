// A second network on this machine that can be unplugged without either side noticing: packets
// vanish, and both devices stay up.
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <string>

namespace runtime::test {

/// A namespace joined to ours through a bridge. Needs root and `ip`.
class SwitchedLink {
 public:
  /// Null where that cannot be made.
  static std::unique_ptr<SwitchedLink> create() {
    std::unique_ptr<SwitchedLink> link(new SwitchedLink);
    const std::string &far = link->name_, bridge = far + "s", port = far + "p", device = far + "d";
    const bool made =
        ip("netns add " + far) && ip("link add " + bridge + " type bridge") &&
        ip("addr add " + link->near() + "/30 dev " + bridge) && ip("link set " + bridge + " up") &&
        ip("link add " + port + " type veth peer name " + device + " netns " + far) &&
        ip("link set " + port + " master " + bridge) && ip("link set " + port + " up") &&
        ip("-n " + far + " addr add " + link->far() + "/30 dev " + device) &&
        ip("-n " + far + " link set " + device + " up") && ip("-n " + far + " link set lo up");
    return made ? std::move(link) : nullptr;
  }
  SwitchedLink(const SwitchedLink&) = delete;
  SwitchedLink& operator=(const SwitchedLink&) = delete;
  ~SwitchedLink() {
    ip("netns del " + name_);
    ip("link del " + name_ + "s");
  }

  void unplug() { ip("link set " + name_ + "p nomaster"); }
  void plug_in() { ip("link set " + name_ + "p master " + name_ + "s"); }

  /// Addresses on this side and on the other.
  std::string near() const { return prefix_ + std::to_string(base_ + 1); }
  std::string far() const { return prefix_ + std::to_string(base_ + 2); }
  const std::string& name_of_far_side() const { return name_; }

 private:
  SwitchedLink() = default;
  static bool ip(const std::string& arguments) {
    return std::system(("ip " + arguments + " 2>/dev/null").c_str()) == 0;
  }

  const std::string name_ =
      "slc" + std::to_string(::getpid());  // devices' names have at most 15 characters
  // Four addresses for each process, so that several can run at once.
  const std::string prefix_ = "10.214." + std::to_string(::getpid() / 64 % 256) + ".";
  const int base_ = ::getpid() % 64 * 4;
};

}  // namespace runtime::test
