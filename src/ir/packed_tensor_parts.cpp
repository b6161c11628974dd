// Parallel loops that write some elements of a byte of a tensor, whose others any thread of any block may
// write: two atomic operations change the element's bits and no others.
//
//   parallel i in 8 { Q[i, 2 * k] = x }    ->    parallel i in 8 { atomic_and(Q[i, k], ~15) }
//                                                parallel i in 8 { atomic_or(Q[i, k], code(x)) }
//
// Between the two an element is 0, which none may read: it has one writer, and nothing orders readers before
// the loop ends. They are loops of their own, since operations of several kinds on one byte have an order
// among the iterations of a loop. What stood in front of a store in the loop stays in a loop in front of it.
// Refused: loops that read what they write, since iterations of the second loop would read what the first
// left; threads, whose barriers the program has; loops and operations inside.
#include <map>
#include <string>
#include <utility>

#include "ir/draft_threads.h"
#include "ir/packed_points.h"
#include "ir/packed_resolver.h"
#include "ir/store_parts.h"

namespace tilegen::ir {

// The stores numbered [begin, end) of the body, with the ifs around them and other variables.
Block PackedTypes::some_stores(const Block& body, ExprRewriter& renamed, StoreRange range, int& number) {
  Block out;
  for (StmtId s : body) {
    const SourceLocation location = p_.stmts[s.value].location;
    if (const auto* branch = p_.as<Branch>(s)) {
      Branch made = *branch;
      made.then_body = some_stores(made.then_body, renamed, range, number);
      made.else_body = some_stores(made.else_body, renamed, range, number);
      if (made.then_body.empty() && made.else_body.empty()) continue;
      made.condition = exprs_.value(renamed.rewrite(made.condition));
      p_.stmts.push_back({std::move(made), location});
      out.emplace_back(p_.stmts.size() - 1);
      continue;
    }
    const int at = number++;
    if (at < range.begin || at >= range.end) continue;
    Store made = *p_.as<Store>(s);
    visit_exprs(made, [&](ExprId& e) { e = renamed.rewrite(e); });
    location_ = location;
    if (shares_bytes(made.buffer))
      change_bits(made, range.sets);
    else
      plain_store(made);
    out.push_back(add(std::move(made)));
  }
  return out;
}

// The element becomes 0, or its bits are put where it is 0.
void PackedTypes::change_bits(Store& store, bool sets) {
  if (!takes(store.buffer, store.value)) return;
  ExprPool& e = p_.exprs;
  const int bits = dtype_bits(packed(store.buffer)->type);
  const Place place = place_of(store);
  const ExprId shift = e.cast(DType::i32, e.mul(exprs_.value(place.element), e.const_int(bits)));
  const ExprId ones = e.const_int((int64_t{1} << bits) - 1, DType::i32), all = e.const_int(-1, DType::i32);
  const ExprId code = sets ? exprs_.code(store.value) : ones;
  const ExprId in_place = e.binary(ExprOp::shl, code, shift);
  store.indices.back() = place.byte;
  for (ExprId& index : store.indices) exprs_.move(index);
  store.value = e.cast(DType::u8, sets ? in_place : e.binary(ExprOp::bit_xor, in_place, all));
  store.atomic = sets ? AtomicKind::bit_or : AtomicKind::bit_and;
}

// Atomic operations of iterations on one element are no race, but stores are. Told where constants, loop
// variables and what is the same for all show it.
bool PackedTypes::stores_race(const Loop& loop) {
  ExprPool pool;
  using Element = std::vector<std::pair<std::map<ExprId, int64_t>, int64_t>>;
  std::map<BufferId, std::map<Element, int64_t>> writers;
  const LoopPoints points(p_, loop);
  int64_t places = 0;
  for_each_statement(p_, loop.body, [&](StmtId s, int) {
    const auto* store = p_.as<Store>(s);
    places += store ? static_cast<int64_t>(store->indices.size()) : 1;
  });
  if (!points.are_few(places)) return false;
  for (int64_t t = 0; t < points.count(); ++t) {
    const std::vector<int64_t> point = points.at(t);
    AtPoint here(p_.exprs, pool, loop.vars, point);
    std::vector<StmtId> todo(loop.body.begin(), loop.body.end());
    while (!todo.empty()) {
      const StmtId s = todo.back();
      todo.pop_back();
      if (const auto* branch = p_.as<Branch>(s)) {
        int64_t holds = 0;
        if (!pool.is_const_int(here.rewrite(branch->condition), &holds)) continue;
        const Block& side = holds != 0 ? branch->then_body : branch->else_body;
        todo.insert(todo.end(), side.begin(), side.end());
        continue;
      }
      const Store& store = *p_.as<Store>(s);
      if (!shares_bytes(store.buffer)) continue;
      Element element;
      for (ExprId index : store.indices) {
        Sum sum = sum_of(pool, here.rewrite(index));
        element.emplace_back(std::move(sum.atoms), sum.constant);
      }
      const int64_t first = writers[store.buffer].try_emplace(std::move(element), t).first->second;
      if (first == t) continue;
      const auto text = [&](const std::vector<int64_t>& at) {
        std::string out;
        for (size_t d = 0; d < at.size(); ++d)
          out += (d ? ", " : "(") + p_.var(loop.vars[d]).name + "=" + std::to_string(at[d]);
        return out + ")";
      };
      location_ = p_.stmts[s.value].location;
      error(DiagCode::parallel_race,
            "iterations " + text(points.at(first)) + " and " + text(point) +
                " both write the same element of '" + p_.buffer(store.buffer).name + "'",
            "use every loop variable in the index, or write it in two loops");
      return true;
    }
  }
  return false;
}

// False, and nothing is done: it is none of the loops above.
bool PackedTypes::write_tensor_parts(StmtId s) {
  const Loop written = *p_.as<Loop>(s);
  if (is_of_threads(s) || reads_written(written.body)) return false;
  std::vector<StoreRange> ranges;
  int stores = 0, others = 0;  // behind the last store of parts
  bool plain = true;
  for_each_statement(p_, written.body, [&](StmtId inner, int) {
    const auto* store = p_.as<Store>(inner);
    if (!store) {
      plain = plain && p_.as<Branch>(inner);
      return;
    }
    const int at = stores++;
    if (!shares_bytes(store->buffer)) return;
    if (store->atomic || p_.buffer(store->buffer).scope != MemScope::global) plain = false;
    if (others < at) ranges.push_back({others, at, false});
    ranges.push_back({at, stores, false});
    ranges.push_back({at, stores, true});
    others = stores;
  });
  if (!plain) return false;
  if (stores_race(written)) return true;
  if (others < stores) ranges.push_back({others, stores, false});
  for (size_t r = 0; r < ranges.size(); ++r) {
    Loop loop = written;
    for (size_t v = 0; v < loop.vars.size() && r > 0; ++v) {
      const Var like = p_.var(loop.vars[v]);
      loop.vars[v] = VarId(p_.vars.size());
      p_.vars.push_back(like);
    }
    OfPart renamed(p_.exprs, written.vars, loop.vars);
    int number = 0;
    loop.body = some_stores(written.body, renamed, ranges[r], number);
    for (ExprId& extent : loop.extents) exprs_.move(extent);
    if (r == 0) {
      p_.stmts[s.value].node = std::move(loop);
      continue;
    }
    p_.stmts.push_back({std::move(loop), p_.stmts[s.value].location});
    p_.stmts.back().annotations = p_.stmts[s.value].annotations;
    behind_[s].emplace_back(p_.stmts.size() - 1);
  }
  return true;
}

}  // namespace tilegen::ir
