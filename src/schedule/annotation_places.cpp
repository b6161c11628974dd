// Whose decision planning refused: the annotation whose fields the message tells of, at its place.
#include <algorithm>
#include <cctype>

#include "schedule/annotations.h"
#include "support/diag_codes.h"

namespace tilegen::schedule {

namespace {

bool has_word(const std::string& text, const std::string& word) {
  const auto is_letter = [](char c) { return c == '_' || std::isalnum(static_cast<unsigned char>(c)) != 0; };
  for (size_t at = text.find(word); at != text.npos; at = text.find(word, at + 1))
    if ((at == 0 || !is_letter(text[at - 1])) &&
        (at + word.size() == text.size() || !is_letter(text[at + word.size()])))
      return true;
  return false;
}

// How sure it is that a refusal is of the annotation. Some have words of their own for the field.
int closeness(const std::string& message, const std::string& key, const std::vector<std::string>& fields) {
  if (std::any_of(fields.begin(), fields.end(),
                  [&](const std::string& f) { return has_word(message, "`" + f + "`"); }))
    return 3;
  if (has_word(message, key)) return 2;
  const bool in_words = (key == "engine" && has_word(message, "tensor copies")) ||
                        (key == "split" && has_word(message, "share")) ||
                        (key == "role_registers" && has_word(message, "roles"));
  return in_words && message.find('`') == message.npos ? 1 : 0;
}

}  // namespace

Error AnnotatedSchedule::with_place(Error e) const {
  for (Diagnostic& d : e.diagnostics) {
    if (d.code != DiagCode::schedule_illegal && d.code != DiagCode::schedule_mismatch) continue;
    const Place* found = nullptr;
    int most = 0;
    for (const Place& place : places) {
      const int close = place.path == d.op ? closeness(d.message, place.key, place.fields) : 0;
      if (close > most) found = &place, most = close;
    }
    if (!found) continue;
    d.location = found->location;
    const size_t why = d.message.find(", but ");
    if (found->key == "asynchronous" &&
        why != d.message.npos) {  // what copy_async says, which names no field
      d.message = "the copy is asynchronous, but " + d.message.substr(why + 6);
      d.hint =
          "copy whole words of 4 bytes: wider elements, or places and extents of the tensor that are "
          "multiples of "
          "a word at every size (constants, dims with `divisible`)";
      continue;
    }
    d.message = "the annotation `" + found->key + "`: " + d.message;
  }
  return e;
}

}  // namespace tilegen::schedule
