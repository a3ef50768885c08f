/* An allocator for standard containers over a buddy. Part of nbbs.hpp. */

#ifndef NBBS_ALLOCATOR_HPP
#define NBBS_ALLOCATOR_HPP

#include "memory_resource.hpp"

#include <limits>

namespace nbbs {

/// An allocator for containers, over a buddy that was made of a region and outlives them. It moves and swaps with its
/// container, and is not copied on assignment. What it says of units, alignment and refusals is what `memory_resource`
/// says.
///
///     std::vector<int, nbbs::allocator<int>> numbers(arena);
template <class T>
class allocator {
public:
    using value_type = T;
    using propagate_on_container_copy_assignment = std::false_type;
    using propagate_on_container_move_assignment = std::true_type;
    using propagate_on_container_swap = std::true_type;
    using is_always_equal = std::false_type;

    allocator(const buddy& of) noexcept : of_(&of) {}
    allocator(const buddy&&) = delete;
    template <class U>
    allocator(const allocator<U>& other) noexcept : of_(&other.arena()) {}

    [[nodiscard]] T* allocate(std::size_t count) {
        if (count > std::numeric_limits<std::size_t>::max() / sizeof(T)) {
            detail::fail<bad_alloc>(refusal(
                nbbs_error{NBBS_CODE_TOO_LONG, 0, count, std::numeric_limits<std::size_t>::max() / sizeof(T), 0}));
        }
        return static_cast<T*>(detail::allocate(*of_, count * sizeof(T), alignof(T)));
    }

    void deallocate(T* first, std::size_t count) noexcept {
        static_cast<void>(of_->try_free_bytes(first, count * sizeof(T)));
    }

    const buddy& arena() const noexcept { return *of_; }

    template <class U>
    friend bool operator==(const allocator& one, const allocator<U>& other) noexcept {
        return detail::same_memory(one.arena(), other.arena());
    }
    template <class U>
    friend bool operator!=(const allocator& one, const allocator<U>& other) noexcept {
        return !(one == other);
    }

private:
    const buddy* of_;
};

}  // namespace nbbs

#endif
