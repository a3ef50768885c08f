/* Making an object in memory that is there. Part of nbbs.hpp. */

#ifndef NBBS_MAKE_HPP
#define NBBS_MAKE_HPP

#include <new>
#include <type_traits>
#include <utility>

namespace nbbs::detail {

/// Makes an object in memory for one: by a constructor, or of the members of an aggregate, also before C++20.
template <class T, class... Arguments>
[[gnu::always_inline]] inline T* make_at(void* memory, Arguments&&... arguments) {
    if constexpr (std::is_constructible_v<T, Arguments...>) {
        return ::new (memory) T(std::forward<Arguments>(arguments)...);
    } else {
        return ::new (memory) T{std::forward<Arguments>(arguments)...};
    }
}

}  // namespace nbbs::detail

#endif
