// Parallel loops that write some elements of a byte: an iteration to which the byte belongs reads it, puts
// its elements in and stores it again.
//
//   parallel i in 8 { q[i, k] = x }    ->    parallel i in 8 {
//                                              q[i, k // 2] = q[i, k // 2] & bit_not(15 << k % 2 * 4)
//                                                             | code(x) << k % 2 * 4 }
//
// Bytes of tiles are those of one block, whose statements follow each other. No two iterations may touch one:
// as they stand, or where those of a byte are one iteration, or a loop of its own for the first elements of
// bytes, and then for the next ones. A tile that is written so is filled first, so that no byte is read
// before it is written.
#include <algorithm>
#include <utility>

#include "ir/draft_exprs.h"
#include "ir/draft_threads.h"
#include "ir/op_kinds.h"
#include "ir/packed_points.h"
#include "ir/packed_resolver.h"
#include "ir/store_parts.h"

namespace tilegen::ir {

namespace {

// Places that iterations touch: in the dimensions that differ by constants alone, whose they are.
class Owners {
 public:
  // `at`: expressions of `pool`.
  void touch(int64_t iteration, const ExprPool& pool, const std::vector<ExprId>& at) {
    std::vector<int64_t> place;
    for (size_t d = 0; d < at.size(); ++d) {
      Sum sum = sum_of(pool, at[d]);
      if (d == atoms_.size())
        atoms_.push_back(std::move(sum.atoms)), known_.push_back(true);
      else if (sum.atoms != atoms_[d])
        known_[d] = false;
      place.push_back(sum.constant);
    }
    places_.emplace_back(std::move(place), iteration);
  }
  bool are_one_each() {
    std::map<std::vector<int64_t>, int64_t> owner;
    for (auto& [place, iteration] : places_) {
      for (size_t d = 0; d < place.size(); ++d)
        if (!known_[d]) place[d] = 0;
      if (owner.try_emplace(place, iteration).first->second != iteration) return false;
    }
    return true;
  }

 private:
  std::vector<std::map<ExprId, int64_t>> atoms_;
  std::vector<bool> known_;
  std::vector<std::pair<std::vector<int64_t>, int64_t>> places_;
};

}  // namespace

PackedTypes::Place PackedTypes::place_of(const Store& store) {
  ExprPool& e = p_.exprs;
  const int in_byte = packed(store.buffer)->in_byte;
  const PackedIndex::Split at = index_.split(store.indices.back(), in_byte);
  int64_t rest = 0;
  if (e.is_const_int(at.rest, &rest)) return {at.times, at.rest};
  const ExprId of = e.const_int(in_byte);
  return {e.add(at.times, e.floordiv(at.rest, of)), e.floormod(at.rest, of)};
}

// Whether each byte of tiles that it writes in parts is one iteration's, whatever its values are, and
// whatever ifs hold: those that they do not hold for may read it.
bool PackedTypes::owns_bytes(const Loop& loop) {
  std::map<BufferId, std::vector<std::vector<ExprId>>> writes;
  bool plain = true;
  std::vector<Store> stores;
  for_each_statement(p_, loop.body, [&](StmtId s, int) {
    const auto* store = p_.as<Store>(s);
    if (!store && !p_.as<Branch>(s)) plain = false;
    if (store && shares_bytes(store->buffer)) stores.push_back(*store);
  });
  for (const Store& store : stores) {
    if (store.atomic || p_.buffer(store.buffer).scope != MemScope::shared) plain = false;
    std::vector<ExprId> at = store.indices;
    at.back() = place_of(store).byte;
    writes[store.buffer].push_back(std::move(at));
  }
  const LoopPoints points(p_, loop);
  int64_t places = 0;
  for (const auto& [buffer, of_buffer] : writes)
    for (const std::vector<ExprId>& place : of_buffer) places += static_cast<int64_t>(place.size());
  if (!plain || !points.are_few(places)) return false;
  ExprPool pool;
  std::map<BufferId, Owners> owners;
  for (int64_t t = 0; t < points.count(); ++t) {
    const std::vector<int64_t> point = points.at(t);
    AtPoint here(p_.exprs, pool, loop.vars, point);
    for (const auto& [buffer, places] : writes)
      for (const std::vector<ExprId>& place : places) {
        std::vector<ExprId> at;
        for (ExprId index : place) at.push_back(here.rewrite(index));
        owners[buffer].touch(t, pool, at);
      }
  }
  return std::all_of(owners.begin(), owners.end(), [](auto& o) { return o.second.are_one_each(); });
}

// The statements for one lane of a byte, with other variables.
Block PackedTypes::of_lane(const Block& body, LaneExprs& lane, const std::vector<VarId>& from,
                           const std::vector<VarId>& to) {
  OfPart renamed(p_.exprs, from, to);
  const auto value = [&](ExprId e) { return renamed.rewrite(lane.value(e)); };
  Block out;
  for (StmtId s : body) {
    location_ = p_.stmts[s.value].location;
    if (const auto* branch = p_.as<Branch>(s)) {
      Branch made = *branch;
      made.condition = value(made.condition);
      made.then_body = of_lane(made.then_body, lane, from, to);
      made.else_body = of_lane(made.else_body, lane, from, to);
      p_.stmts.push_back({std::move(made), location_});
      out.emplace_back(p_.stmts.size() - 1);
    } else {
      Store made = *p_.as<Store>(s);
      visit_exprs(made, [&](ExprId& e) { e = value(e); });
      out.push_back(add(std::move(made)));
    }
  }
  return out;
}

// False, and nothing is done: bytes are of several iterations, or of tensors, whose other elements other
// blocks may write, or the loop has other statements.
bool PackedTypes::write_parts(StmtId s, int of) {
  const Loop written = *p_.as<Loop>(s);
  const bool of_threads = is_of_threads(s);
  const auto done = [&](Loop loop) {
    put_parts(loop.body);
    p_.stmts[s.value].node = std::move(loop);
    return true;
  };
  if (owns_bytes(written)) return done(written);
  bool plain = !of_threads;
  for_each_statement(p_, written.body, [&](StmtId inner, int) {
    plain = plain && (p_.as<Branch>(inner) || p_.as<Store>(inner));
  });
  if (!plain) return false;
  std::vector<int64_t> extents;
  for (ExprId e : written.extents) p_.exprs.is_const_int(e, &extents.emplace_back(1));
  // The iterations of one lane of the bytes that a variable counts, with these variables.
  const auto add_lane = [&](Loop& loop, size_t v, int lane, const std::vector<VarId>& to) {
    LaneExprs exprs(p_, written.vars[v], of, lane);
    loop.extents[v] = p_.exprs.const_int((extents[v] - lane + of - 1) / of);
    loop.vars = to;
    const Block body = of_lane(written.body, exprs, written.vars, to);
    loop.body.insert(loop.body.end(), body.begin(), body.end());
  };
  Loop head = written;
  head.body.clear();
  for (size_t v = written.vars.size(); v-- > 0;) {
    if (extents[v] % of != 0) continue;
    Loop merged = head;
    for (int lane = 0; lane < of; ++lane) add_lane(merged, v, lane, written.vars);
    merged.extents[v] = p_.exprs.const_int(extents[v] / of);
    if (owns_bytes(merged)) return done(std::move(merged));
  }
  for (size_t v = written.vars.size(); v-- > 0 && !reads_written(written.body);) {
    std::vector<Loop> loops;
    for (int lane = 0; lane < std::min<int64_t>(of, extents[v]); ++lane) {
      std::vector<VarId> vars = written.vars;
      for (size_t i = 0; i < vars.size() && lane > 0; ++i) {
        const Var like = p_.var(vars[i]);
        vars[i] = VarId(p_.vars.size());
        p_.vars.push_back(like);
      }
      add_lane(loops.emplace_back(head), v, lane, vars);
    }
    if (!std::all_of(loops.begin(), loops.end(), [&](const Loop& loop) { return owns_bytes(loop); }))
      continue;
    for (size_t lane = 1; lane < loops.size(); ++lane) {
      put_parts(loops[lane].body);
      p_.stmts.push_back({std::move(loops[lane]), p_.stmts[s.value].location});
      p_.stmts.back().annotations = p_.stmts[s.value].annotations;
      behind_[s].emplace_back(p_.stmts.size() - 1);
    }
    return done(std::move(loops.front()));
  }
  return false;
}

// Of its iterations one may read what another writes.
bool PackedTypes::reads_written(const Block& body) {
  DraftExprs exprs(p_);
  std::set<BufferId> read, written;
  const auto reads = [&](ExprId e) {
    const auto& buffers = exprs.reads(e);
    read.insert(buffers.begin(), buffers.end());
  };
  for_each_statement(p_, body, [&](StmtId s, int) {
    if (const auto* branch = p_.as<Branch>(s)) reads(branch->condition);
    if (const auto* store = p_.as<Store>(s)) {
      visit_exprs(*store, reads);
      visit_written(*store, [&](BufferId b, const auto&) { written.insert(b); });
    }
  });
  return std::any_of(written.begin(), written.end(), [&](BufferId b) { return read.contains(b); });
}

void PackedTypes::put_parts(const Block& body) {
  for (StmtId s : body) {
    location_ = p_.stmts[s.value].location;
    merged_.resize(std::max(merged_.size(), p_.stmts.size()), false);
    merged_[s.value] = true;
    if (const auto* branch = p_.as<Branch>(s)) {
      Branch b = *branch;
      b.condition = exprs_.value(b.condition);
      put_parts(b.then_body), put_parts(b.else_body);
      p_.stmts[s.value].node = std::move(b);
      continue;
    }
    Store store = *p_.as<Store>(s);
    if (shares_bytes(store.buffer))
      put_part(store);
    else
      plain_store(store);
    p_.stmts[s.value].node = std::move(store);
  }
}

// The byte's other elements stay as they are.
void PackedTypes::put_part(Store& store) {
  if (!takes(store.buffer, store.value)) return;
  ExprPool& e = p_.exprs;
  const int bits = dtype_bits(packed(store.buffer)->type);
  const Place place = place_of(store);
  const ExprId code = exprs_.code(store.value);
  const ExprId shift = e.cast(DType::i32, e.mul(exprs_.value(place.element), e.const_int(bits)));
  store.indices.back() = place.byte;
  for (ExprId& index : store.indices) exprs_.move(index);
  const ExprId was = e.cast(DType::i32, e.load(store.buffer, DType::u8, store.indices));
  const ExprId ones = e.const_int((int64_t{1} << bits) - 1, DType::i32), all = e.const_int(-1, DType::i32);
  const ExprId others = e.binary(ExprOp::bit_xor, e.binary(ExprOp::shl, ones, shift), all);
  store.value = e.cast(DType::u8, e.binary(ExprOp::bit_or, e.binary(ExprOp::bit_and, was, others),
                                           e.binary(ExprOp::shl, code, shift)));
  in_parts_.insert(store.buffer);
}

// What is written in parts is filled in front of everything, where nothing else does so.
void PackedTypes::fill_parts(Kernel& kernel) {
  for (const BufferId b : in_parts_) {
    const auto fills = [&](StmtId s) {
      const auto* op = p_.as<TileOp>(s);
      if (!op || op->kind != OpKind::fill || op->operands.front().buffer != b) return false;
      return op->operands.front().extents == p_.tile_shape(b);
    };
    const auto stands_before = [&](StmtId s) {
      bool writes = false;
      for_each_statement(p_, Block{s}, [&](StmtId inside, int) {
        const auto* store = p_.as<Store>(inside);
        writes = writes || (store && store->buffer == b);
      });
      return !writes;
    };
    const auto first = std::find_if_not(kernel.body.begin(), kernel.body.end(), stands_before);
    if (std::any_of(kernel.body.begin(), first, fills)) continue;
    TileOp op;
    op.kind = OpKind::fill;
    Region& whole = op.operands.emplace_back();
    whole.buffer = b;
    whole.extents = p_.tile_shape(b);
    whole.offsets.assign(whole.extents.size(), p_.exprs.const_int(0));
    op.value = p_.exprs.const_int(0, DType::u8);
    p_.stmts.push_back({std::move(op), p_.buffer(b).location});
    kernel.body.insert(kernel.body.begin(), StmtId(p_.stmts.size() - 1));
  }
  in_parts_.clear();
}

}  // namespace tilegen::ir
