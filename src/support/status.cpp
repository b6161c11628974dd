#include "support/status.h"

namespace tilegen {

const char* status_name(StatusCode code) {
  switch (code) {
#define TILEGEN_STATUS(name, value, text) \
  case StatusCode::name:                  \
    return #name;
#include "support/status.def"
#undef TILEGEN_STATUS
  }
  return "unknown";
}

}  // namespace tilegen
