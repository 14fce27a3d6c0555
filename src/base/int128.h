// 128-bit integers, for exact products of two 64-bit numbers. Both compilers have them; the name
// hides that they are an extension.
#pragma once

namespace hopwise {

__extension__ typedef __int128 Int128;            // NOLINT(modernize-use-using)
__extension__ typedef unsigned __int128 Uint128;  // NOLINT(modernize-use-using)

}  // namespace hopwise
