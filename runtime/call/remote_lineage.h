// RemoteLineage: the lineage of an object as another process of the cluster knows it. A reference
// carries it, so that a reader that finds the object lost can have it made again, and can say what
// is lost.
#pragma once

#include <memory>
#include <string>

#include "runtime/call/lineage.h"

namespace runtime {

class RemoteLineage final : public Lineage {
 public:
  /// `keeper`: as Lineage::keeper.
  RemoteLineage(std::weak_ptr<const ObjectContext> context, std::string maker, std::string keeper)
      : context_(std::move(context)), maker_(std::move(maker)), keeper_(std::move(keeper)) {}

  std::string maker() const override { return maker_; }
  std::string keeper() const override { return keeper_; }
  /// Asks the keeper, by way of the nodes.
  Result<ObjectStatePtr> make_again(const ObjectLocation& lost) override;

 private:
  const std::weak_ptr<const ObjectContext> context_;
  const std::string maker_;
  const std::string keeper_;
};

}  // namespace runtime
