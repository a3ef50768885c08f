/* An allocator for standard containers over a buddy. Part of nbbs.hpp. */

#ifndef NBBS_ALLOCATOR_HPP
#define NBBS_ALLOCATOR_HPP

#include "memory_resource.hpp"

namespace nbbs {

/// An allocator for containers, over a buddy that was made of a region and outlives them. It moves and swaps with its
/// container, and is not copied on assignment. What it says of units, alignment and refusals is what `memory_resource`
/// says.
///
///     std::vector<int, nbbs::allocator<int>> numbers(arena);
template <class T>
class allocator : public detail::moves_with_container {
public:
    using value_type = T;

    allocator(const buddy& of) noexcept : of_(&of) {}
    allocator(const buddy&&) = delete;
    template <class U>
    allocator(const allocator<U>& other) noexcept : of_(&other.arena()) {}

    [[nodiscard]] T* allocate(std::size_t count) {
        return static_cast<T*>(detail::allocate(*of_, detail::bytes_of<T>(count), alignof(T)));
    }

    void deallocate(T* first, std::size_t count) noexcept {
        detail::drop(of_->try_free_bytes(first, count * sizeof(T)));
    }

    const buddy& arena() const noexcept { return *of_; }

    template <class U>
    friend bool operator==(const allocator& one, const allocator<U>& other) noexcept {
        return one.arena().same_memory(other.arena());
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
