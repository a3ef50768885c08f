/* A std::pmr::memory_resource over a buddy. Part of nbbs.hpp. */

#ifndef NBBS_MEMORY_RESOURCE_HPP
#define NBBS_MEMORY_RESOURCE_HPP

#include "buddy.hpp"

#include <memory_resource>

namespace nbbs {

namespace detail {

/// Memory of a buddy, or a `bad_alloc` that says why not.
inline void* allocate(const buddy& of, std::size_t bytes, std::size_t align) {
    return had(of.try_alloc_bytes(bytes, align));
}

}  // namespace detail

/// Memory of a buddy that was made of a region, for anything that takes a `std::pmr::memory_resource`. Thread-safe and
/// lock-free.
///
/// A request takes whole units, and no more: for nodes of containers make units of 16 to 64 bytes, or stack a
/// `std::pmr::unsynchronized_pool_resource` on top. Alignments up to that of the region's base can be had; a larger one,
/// and memory that is not there, throw `nbbs::bad_alloc`. What cannot be freed is refused,
/// told to the buddy's hook, and counted by `dropped_frees`.
class memory_resource : public std::pmr::memory_resource {
public:
    /// `of` has to outlive it.
    explicit memory_resource(const buddy& of) noexcept : of_(&of) {}
    memory_resource(const buddy&&) = delete;

    const buddy& arena() const noexcept { return *of_; }

private:
    void* do_allocate(std::size_t bytes, std::size_t align) override { return detail::allocate(*of_, bytes, align); }

    void do_deallocate(void* address, std::size_t bytes, std::size_t) override {
        detail::drop(of_->try_free_bytes(address, bytes));
    }

    bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override {
#if defined(__cpp_rtti) || defined(_CPPRTTI)
        const auto* same = dynamic_cast<const memory_resource*>(&other);
        return same != nullptr && of_->same_memory(*same->of_);
#else
        return this == &other;
#endif
    }

    const buddy* of_;
};

}  // namespace nbbs

#endif
