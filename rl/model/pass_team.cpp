#include "rl/model/pass_team.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <cstddef>
#include <utility>

#include "rl/model/guarded.h"
#include "runtime/core/check.h"

namespace rl {
namespace {

std::span<const std::byte> bytes_in(const at::Tensor& t) {
  CHECK(t.is_contiguous());
  return {static_cast<const std::byte*>(t.const_data_ptr()), static_cast<std::size_t>(t.nbytes())};
}

std::span<std::byte> room_of(const at::Tensor& t) {
  CHECK(t.is_contiguous());
  return {static_cast<std::byte*>(t.mutable_data_ptr()), static_cast<std::size_t>(t.nbytes())};
}

}  // namespace

std::vector<at::Tensor> PassTeam::all_columns(std::span<const at::Tensor> own,
                                              std::span<const ColumnCut> cuts,
                                              std::string_view what) const {
  CHECK(own.size() == cuts.size());
  std::vector<at::Tensor> dense;
  std::vector<at::Tensor> all;
  std::vector<Outgoing> sent;
  for (std::size_t i = 0; i < own.size(); ++i) {
    dense.push_back(own[i].contiguous());
    all.push_back(at::empty({own[i].size(0), cuts[i].total()}, own[i].options()));
    all[i].narrow(1, cuts[i].first(rank()), cuts[i].size(rank())).copy_(own[i]);
    if (dense[i].nbytes() == 0) continue;
    for (int peer = 0; peer < size(); ++peer)
      if (peer != rank()) sent.push_back({peer, bytes_in(dense[i])});
  }
  struct Part {
    at::Tensor values;
    at::Tensor place;
  };
  std::vector<Part> parts;
  std::vector<Incoming> received;
  for (std::size_t i = 0; i < own.size(); ++i) {
    for (int peer = 0; peer < size(); ++peer) {
      if (peer == rank() || cuts[i].size(peer) == 0 || own[i].size(0) == 0) continue;
      const at::Tensor place = all[i].narrow(1, cuts[i].first(peer), cuts[i].size(peer));
      parts.push_back({at::empty(place.sizes(), place.options()), place});
      received.push_back({peer, room_of(parts.back().values)});
    }
  }
  throw_unless_ok(communicator_.all_to_all(sent, received, what));
  for (const Part& part : parts) part.place.copy_(part.values);
  return all;
}

at::Tensor PassTeam::all_columns(const at::Tensor& own, const ColumnCut& cut,
                                 std::string_view what) const {
  return all_columns(std::span(&own, 1), std::span(&cut, 1), what).front();
}

at::Tensor PassTeam::own_columns(const at::Tensor& all, const ColumnCut& cut) const {
  return all.narrow(1, cut.first(rank()), cut.size(rank())).contiguous();
}

at::Tensor PassTeam::own_rows(const at::Tensor& all, const ColumnCut& rows) const {
  return all.narrow(0, rows.first(rank()), rows.size(rank()));
}

at::Tensor PassTeam::columns_of_rows(const at::Tensor& own_rows, const ColumnCut& rows,
                                     const ColumnCut& columns, std::string_view what) const {
  const at::Tensor all = at::empty({rows.total(), columns.size(rank())}, own_rows.options());
  const auto place = [&](int peer) { return all.narrow(0, rows.first(peer), rows.size(peer)); };
  std::vector<at::Tensor> dense;
  std::vector<Outgoing> sent;
  std::vector<Incoming> received;
  for (int peer = 0; peer < size(); ++peer) {
    const at::Tensor part = own_rows.narrow(1, columns.first(peer), columns.size(peer));
    if (peer == rank()) {
      place(peer).copy_(part);
      continue;
    }
    if (part.numel() > 0) {
      dense.push_back(part.contiguous());
      sent.push_back({peer, bytes_in(dense.back())});
    }
    if (place(peer).numel() > 0) received.push_back({peer, room_of(place(peer))});
  }
  throw_unless_ok(communicator_.all_to_all(sent, received, what));
  return all;
}

at::Tensor PassTeam::rows_of_columns(const at::Tensor& own_columns, const ColumnCut& columns,
                                     const ColumnCut& rows, std::string_view what) const {
  const at::Tensor all = at::empty({rows.size(rank()), columns.total()}, own_columns.options());
  const at::Tensor dense = own_columns.contiguous();
  std::vector<std::pair<at::Tensor, at::Tensor>> parts;  // what comes, and its place
  std::vector<Outgoing> sent;
  std::vector<Incoming> received;
  for (int peer = 0; peer < size(); ++peer) {
    const at::Tensor part = dense.narrow(0, rows.first(peer), rows.size(peer));
    const at::Tensor place = all.narrow(1, columns.first(peer), columns.size(peer));
    if (peer == rank()) {
      place.copy_(part);
      continue;
    }
    if (part.numel() > 0) sent.push_back({peer, bytes_in(part)});
    if (place.numel() == 0) continue;
    parts.emplace_back(at::empty(place.sizes(), place.options()), place);
    received.push_back({peer, room_of(parts.back().first)});
  }
  throw_unless_ok(communicator_.all_to_all(sent, received, what));
  for (const auto& [values, place] : parts) place.copy_(values);
  return all;
}

at::Tensor PassTeam::all_rows(const at::Tensor& own, const ColumnCut& rows,
                              std::string_view what) const {
  const at::Tensor all = at::empty({rows.total(), own.size(1)}, own.options());
  const at::Tensor dense = own.contiguous();
  own_rows(all, rows).copy_(dense);
  std::vector<Outgoing> sent;
  std::vector<Incoming> received;
  for (int peer = 0; peer < size(); ++peer) {
    if (peer == rank()) continue;
    if (dense.numel() > 0) sent.push_back({peer, bytes_in(dense)});
    const at::Tensor place = all.narrow(0, rows.first(peer), rows.size(peer));
    if (place.numel() > 0) received.push_back({peer, room_of(place)});
  }
  throw_unless_ok(communicator_.all_to_all(sent, received, what));
  return all;
}

at::Tensor PassTeam::all_rows(const at::Tensor& own, std::span<const int> owner,
                              std::string_view what) const {
  std::vector<std::int64_t> rows_of(static_cast<std::size_t>(size()), 0);
  for (const int rank : owner) ++rows_of[static_cast<std::size_t>(rank)];
  const ColumnCut rows = ColumnCut::of_sizes(rows_of);
  CHECK(own.size(0) == rows.size(rank()));
  std::vector<std::int64_t> next;
  for (int peer = 0; peer < size(); ++peer) next.push_back(rows.first(peer));
  std::vector<std::int64_t> place;
  for (const int rank : owner) place.push_back(next[static_cast<std::size_t>(rank)]++);
  return all_rows(own, rows, what).index_select(0, at::tensor(place, at::kLong));
}

std::vector<ColumnCut> PassTeam::row_cuts(std::span<const std::int64_t> own,
                                          std::string_view what) const {
  const auto count = static_cast<std::int64_t>(own.size());
  const at::Tensor all = at::empty({size(), count}, at::kLong);
  std::copy(own.begin(), own.end(), all[rank()].mutable_data_ptr<std::int64_t>());
  std::vector<Outgoing> sent;
  std::vector<Incoming> received;
  for (int peer = 0; peer < size(); ++peer) {
    if (peer == rank() || own.empty()) continue;
    sent.push_back({peer, bytes_in(all[rank()])});
    received.push_back({peer, room_of(all[peer])});
  }
  throw_unless_ok(communicator_.all_to_all(sent, received, what));
  std::vector<ColumnCut> cuts;
  for (std::int64_t i = 0; i < count; ++i) {
    std::vector<std::int64_t> sizes;
    for (int peer = 0; peer < size(); ++peer)
      sizes.push_back(all[peer].const_data_ptr<std::int64_t>()[i]);
    cuts.push_back(ColumnCut::of_sizes(sizes));
  }
  return cuts;
}

at::Tensor PassTeam::exchanged_rows(const at::Tensor& rows, std::span<const std::int64_t> sent,
                                    std::span<const std::int64_t> received,
                                    std::string_view what) const {
  const ColumnCut out = ColumnCut::of_sizes({sent.begin(), sent.end()});
  const ColumnCut in = ColumnCut::of_sizes({received.begin(), received.end()});
  CHECK(out.total() == rows.size(0));
  const at::Tensor dense = rows.contiguous();
  const at::Tensor all = at::empty({in.total(), rows.size(1)}, rows.options());
  std::vector<Outgoing> outgoing;
  std::vector<Incoming> incoming;
  for (int peer = 0; peer < size(); ++peer) {
    const at::Tensor part = dense.narrow(0, out.first(peer), out.size(peer));
    const at::Tensor place = all.narrow(0, in.first(peer), in.size(peer));
    if (peer == rank()) {
      place.copy_(part);
      continue;
    }
    if (part.numel() > 0) outgoing.push_back({peer, bytes_in(part)});
    if (place.numel() > 0) incoming.push_back({peer, room_of(place)});
  }
  throw_unless_ok(communicator_.all_to_all(outgoing, incoming, what));
  return all;
}

at::Tensor PassTeam::handed(int from, int to, const at::Tensor& own, at::IntArrayRef shape,
                            std::string_view what) const {
  at::Tensor dense, there;
  std::vector<Outgoing> sent;
  std::vector<Incoming> received;
  if (rank() == from) {
    CHECK(own.sizes() == shape && own.scalar_type() == at::kFloat);
    dense = own.contiguous();
    if (dense.numel() > 0) sent.push_back({to, bytes_in(dense)});
  } else if (rank() == to) {
    there = at::empty(shape);
    if (there.numel() > 0) received.push_back({from, room_of(there)});
  }
  throw_unless_ok(communicator_.all_to_all(sent, received, what));
  return there;
}

std::vector<std::byte> PassTeam::from(int rank, std::span<const std::byte> mine,
                                      std::string_view what) const {
  const auto sizes = communicator_.all_gather(mine.size(), what);
  throw_unless_ok(sizes.status());
  if (rank == this->rank()) {
    std::vector<Outgoing> sent;
    for (int peer = 0; peer < size(); ++peer)
      if (peer != rank && !mine.empty()) sent.push_back({peer, mine});
    throw_unless_ok(communicator_.all_to_all(sent, {}, what));
    return {mine.begin(), mine.end()};
  }
  std::vector<std::byte> bytes((*sizes)[static_cast<std::size_t>(rank)]);
  std::vector<Incoming> received;
  if (!bytes.empty()) received.push_back({rank, bytes});
  throw_unless_ok(communicator_.all_to_all({}, received, what));
  return bytes;
}

}  // namespace rl
