#include "rl/mesh/mesh.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "runtime/core/check.h"

namespace rl {
namespace {

using runtime::Result;

// The data axes as one, outermost first: what experts are folded over.
constexpr std::array<Axis, 3> kExpertAxes = {Axis::kReplica, Axis::kShard, Axis::kSequence};

int product(const std::array<int, kAxes>& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), 1, std::multiplies<>());
}

int folded(const MeshShape& shape) {
  int size = 1;
  for (const Axis axis : kExpertAxes) size *= shape[axis];
  return size;
}

}  // namespace

const char* axis_name(Axis axis) {
  switch (axis) {
    case Axis::kStage: return "stage";
    case Axis::kReplica: return "replica";
    case Axis::kShard: return "shard";
    case Axis::kSequence: return "sequence";
    case Axis::kTensor: return "tensor";
  }
  return "?";
}

std::string MeshShape::text() const {
  std::string text;
  const auto add = [&](int size, const std::string& name) {
    if (size == 1) return;
    if (!text.empty()) text += " x ";
    text += std::to_string(size) + " " + name;
  };
  for (const Axis axis : kAllAxes) add((*this)[axis], axis_name(axis));
  if (text.empty()) text = "1 rank";
  if (experts > 1) text += ", " + std::to_string(experts) + " expert";
  return text;
}

Mesh::Mesh(const MeshShape& shape) : shape_(shape) {
  order_.resize(static_cast<std::size_t>(product(shape.sizes)));
  std::iota(order_.begin(), order_.end(), 0);
  position_ = order_;
}

Result<Mesh> Mesh::make(const MeshShape& shape, std::vector<int> order) {
  for (const Axis axis : kAllAxes) {
    if (shape[axis] < 1)
      return runtime::invalid_argument("a mesh cannot have " + std::to_string(shape[axis]) +
                                       " ranks on its " + axis_name(axis) + " axis");
  }
  if (shape.experts < 1 || folded(shape) % shape.experts != 0)
    return runtime::invalid_argument(
        std::to_string(shape.experts) + " expert-parallel ranks do not divide the " +
        std::to_string(folded(shape)) + " ranks of replica x shard x sequence");
  Mesh mesh(shape);
  if (order.empty()) return mesh;
  std::vector<int> sorted = order;
  std::ranges::sort(sorted);
  if (sorted != mesh.order_)
    return runtime::invalid_argument("the order of a mesh must name each of its " +
                                     std::to_string(mesh.world()) + " ranks once");
  for (std::size_t position = 0; position < order.size(); ++position)
    mesh.position_[static_cast<std::size_t>(order[position])] = static_cast<int>(position);
  mesh.order_ = std::move(order);
  return mesh;
}

Coordinates Mesh::of(int rank) const {
  CHECK(rank >= 0);
  CHECK(rank < world());
  int rest = position_[static_cast<std::size_t>(rank)];
  Coordinates where;
  for (std::size_t axis = kAxes; axis-- > 0;) {
    where.on[axis] = rest % shape_.sizes[axis];
    rest /= shape_.sizes[axis];
  }
  return where;
}

int Mesh::position(const Coordinates& where) const {
  int position = 0;
  for (std::size_t axis = 0; axis < kAxes; ++axis)
    position = position * shape_.sizes[axis] + where.on[axis];
  return position;
}

int Mesh::rank_at(const Coordinates& where) const {
  return order_[static_cast<std::size_t>(position(where))];
}

int Mesh::data_rank(int rank) const {
  const Coordinates where = of(rank);
  return where[Axis::kReplica] * size(Axis::kShard) + where[Axis::kShard];
}

std::vector<int> Mesh::peers(int rank, std::initializer_list<Axis> axes) const {
  std::vector<int> peers{rank};
  for (const Axis axis : axes) {
    std::vector<int> next;
    for (const int peer : peers) {
      Coordinates where = of(peer);
      for (where[axis] = 0; where[axis] < size(axis); ++where[axis]) next.push_back(rank_at(where));
    }
    peers = std::move(next);
  }
  return peers;
}

// A rank's place on the folded axis.
int Mesh::expert_position(int rank) const {
  const Coordinates where = of(rank);
  int position = 0;
  for (const Axis axis : kExpertAxes) position = position * size(axis) + where[axis];
  return position;
}

int Mesh::expert_rank(int rank) const { return expert_position(rank) % shape_.experts; }

std::vector<int> Mesh::expert_peers(int rank) const {
  const std::vector<int> all =
      peers(rank, {Axis::kReplica, Axis::kShard, Axis::kSequence});  // in their folded order
  const int first = expert_position(rank) / shape_.experts * shape_.experts;
  return {all.begin() + first, all.begin() + first + shape_.experts};
}

}  // namespace rl
