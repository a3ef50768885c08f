/* Shared memory that outlives its processes: segments, members and offsets. For Linux. Part of nbbs.hpp. */

#ifndef NBBS_SHARED_HPP
#define NBBS_SHARED_HPP

#include "make.hpp"
#include "result.hpp"
#include "storage.hpp"

#if !defined(NBBS_SHARED_MEMORY)
#error "nbbs/shared.hpp takes Linux and a library with shared memory: build it with -DNBBS_SHARED_MEMORY=ON"
#endif

#include <type_traits>
#include <utility>

namespace nbbs {

/// Where in a segment a `T` is: bytes from its beginning, the same in every process; 0: nowhere. It may live in the segment,
/// and be the value of a `std::atomic`.
template <class T>
class offset {
public:
    constexpr offset() noexcept = default;
    constexpr explicit offset(std::uint64_t bytes) noexcept : bytes_(bytes) {}

    constexpr std::uint64_t bytes() const noexcept { return bytes_; }
    constexpr explicit operator bool() const noexcept { return bytes_ != 0; }
    /// The same place, as that of something else.
    template <class U>
    constexpr offset<U> as() const noexcept {
        return offset<U>(bytes_);
    }

    friend constexpr bool operator==(offset one, offset other) noexcept { return one.bytes_ == other.bytes_; }
    friend constexpr bool operator!=(offset one, offset other) noexcept { return one.bytes_ != other.bytes_; }

private:
    std::uint64_t bytes_ = 0;
};

namespace detail {

/// What a member allocates: blocks, or memory of its segment's heap, by the functions of C for them.
template <auto Alloc, auto Free, auto Take, auto TakeFrom, auto Block>
class of_member {
public:
    constexpr explicit of_member(nbbs_shared_member* member) noexcept : member_(member) {}

    /// Allocates at least so many bytes, aligned to a power of two up to a page.
    result<offset<void>> try_alloc(std::size_t bytes, std::size_t align = 8) const noexcept {
        const auto got = get<std::uint64_t>(Alloc, member_, bytes, align);
        return got ? result<offset<void>>(offset<void>(*got)) : result<offset<void>>(got.error());
    }
    [[nodiscard]] offset<void> alloc(std::size_t bytes, std::size_t align = 8) const {
        return try_alloc(bytes, align).value();
    }

    /// A `T` in memory of its own. It must lead nowhere by pointers, and nobody destroys it. If its constructor throws, the memory
    /// is freed.
    template <class T, class... Arguments>
    [[nodiscard]] offset<T> make(Arguments&&... arguments) const {
        static_assert(std::is_trivially_destructible_v<T>, "a process that dies destroys nothing");
        unmade place{*this, alloc(sizeof(T), alignof(T))};
        detail::make_at<T>(block(place.at).memory, std::forward<Arguments>(arguments)...);
        return std::exchange(place.at, offset<void>()).template as<T>();
    }

    /// Frees what is this member's.
    template <class T>
    result<void> try_free(offset<T> block) const noexcept {
        return run(Free, member_, block.bytes());
    }
    template <class T>
    void free(offset<T> block) const {
        try_free(block).value();
    }

    /// Makes this member's what its holder has handed over. Returns whose it was.
    template <class T>
    result<nbbs_shared_id> try_take(offset<T> block) const noexcept {
        return get<nbbs_shared_id>(Take, member_, block.bytes());
    }
    template <class T>
    nbbs_shared_id take(offset<T> block) const {
        return try_take(block).value();
    }

    /// Makes this member's what `from` has handed over, if nobody else has it by now. Returns whose it was: this member's
    /// if it had it already.
    template <class T>
    result<nbbs_shared_id> try_take_from(offset<T> block, nbbs_shared_id from) const noexcept {
        return get<nbbs_shared_id>(TakeFrom, member_, block.bytes(), from);
    }
    template <class T>
    nbbs_shared_id take_from(offset<T> block, nbbs_shared_id from) const {
        return try_take_from(block, from).value();
    }

    /// Where in this process what is this member's is, all of it.
    template <class T>
    result<storage> try_block(offset<T> block) const noexcept {
        storage found{};
        const auto ran = run(Block, member_, block.bytes(), &found.memory, &found.bytes);
        return ran ? result<storage>(found) : result<storage>(ran.error());
    }
    template <class T>
    storage block(offset<T> block) const {
        return try_block(block).value();
    }

protected:
    nbbs_shared_member* member_;

private:
    /// Memory in which nothing was made yet, or nowhere: it is freed.
    struct unmade {
        const of_member& member;
        offset<void> at;
        unmade(const of_member& of, offset<void> place) noexcept : member(of), at(place) {}
        unmade(const unmade&) = delete;
        unmade& operator=(const unmade&) = delete;
        ~unmade() {
            if (at) {
                static_cast<void>(member.try_free(at));
            }
        }
    };
};

using blocks_of_member =
    of_member<nbbs_shared_alloc, nbbs_shared_free, nbbs_shared_take, nbbs_shared_take_from, nbbs_shared_block>;
using heap_of_member =
    of_member<nbbs_shared_heap_alloc, nbbs_shared_heap_free, nbbs_shared_heap_take, nbbs_shared_heap_take_from,
              nbbs_shared_heap_block>;

}  // namespace detail

/// The heap of a segment, as a member uses it: slots of 16 bytes to 4 KiB, blocks if it is more. What it allocates is given
/// to its own functions. As long as the member.
class shared_heap : public detail::heap_of_member {
public:
    using detail::heap_of_member::heap_of_member;

    /// Makes empty slabs, from which slots are cut, blocks again. Returns how many.
    std::size_t trim() const noexcept { return nbbs_shared_heap_trim(member_); }
};

/// A member of a segment, for one thread at a time, and its blocks. What it still holds when it ends others recover.
class shared_member : public detail::blocks_of_member {
public:
    /// None: every call is refused.
    constexpr shared_member() noexcept : shared_member(nullptr) {}
    /// Takes over what C has made.
    using detail::blocks_of_member::blocks_of_member;

    shared_member(shared_member&& from) noexcept : shared_member(std::exchange(from.member_, nullptr)) {}
    shared_member& operator=(shared_member&& from) noexcept {
        shared_member moved(std::move(from));
        std::swap(member_, moved.member_);
        return *this;
    }
    ~shared_member() { nbbs_shared_leave(member_); }

    nbbs_shared_id id() const noexcept { return nbbs_shared_id_of(member_); }

    /// The segment's heap, by this member.
    shared_heap heap() const& noexcept { return shared_heap(member_); }
    shared_heap heap() const&& = delete;

    /// How many members have died that nobody has recovered.
    std::size_t dead() const noexcept { return nbbs_shared_dead(member_); }

    /// Recovers what the dead held, blocks and memory of the heap, and frees it.
    nbbs_shared_recovery recover() const noexcept { return recover_by(nullptr, nullptr); }
    /// The same; what `keeps(offset<void>, std::uint64_t bytes)` says yes to stays this member's. It must not throw.
    template <class Keeps>
    nbbs_shared_recovery recover(Keeps keeps) const noexcept {
        const auto ask = [](void* context, std::uint64_t block, std::uint64_t bytes) noexcept -> bool {
            return (*static_cast<Keeps*>(context))(offset<void>(block), bytes);
        };
        return recover_by(ask, &keeps);
    }

    /// The member, as C has it. Null: there is none.
    nbbs_shared_member* handle() const noexcept { return member_; }

private:
    nbbs_shared_recovery recover_by(nbbs_shared_keeps keeps, void* context) const noexcept {
        nbbs_shared_recovery found{};
        nbbs_shared_recover(member_, keeps, context, &found, nullptr);
        return found;
    }
};

/// A segment in this process: memory that several processes allocate from, and any of them may be killed at any moment.
/// Members keep it mapped.
///
///     auto segment = nbbs::shared_segment::create("/dev/shm/name", {1 << 12, 4096, 64});
///     auto member = segment.join();
///     nbbs::offset<int> number = member.make<int>(42);
///     segment.set_root(number);
class shared_segment {
public:
    /// None: every call is refused.
    constexpr shared_segment() noexcept = default;

    /// Makes a segment in a file, and attaches to it. `mode`: 0: only its owner may open it.
    static result<shared_segment> try_create(const char* path, const nbbs_shared_geometry& geometry,
                                             std::uint32_t mode = 0) noexcept {
        return made(detail::get<nbbs_shared*>(nbbs_shared_create, path, &geometry, mode));
    }
    static shared_segment create(const char* path, const nbbs_shared_geometry& geometry, std::uint32_t mode = 0) {
        return try_create(path, geometry, mode).value();
    }
    /// Makes one in memory without a name, which others attach to by its descriptor.
    static result<shared_segment> try_create_memfd(const char* name, const nbbs_shared_geometry& geometry) noexcept {
        return made(detail::get<nbbs_shared*>(nbbs_shared_create_memfd, name, &geometry));
    }
    static shared_segment create_memfd(const char* name, const nbbs_shared_geometry& geometry) {
        return try_create_memfd(name, geometry).value();
    }
    /// Attaches to one that is there.
    static result<shared_segment> try_attach(const char* path) noexcept {
        return made(detail::get<nbbs_shared*>(nbbs_shared_attach, path));
    }
    static shared_segment attach(const char* path) { return try_attach(path).value(); }
    /// The same by a descriptor, which stays the caller's.
    static result<shared_segment> try_attach(int fd) noexcept {
        return made(detail::get<nbbs_shared*>(nbbs_shared_attach_fd, fd));
    }
    static shared_segment attach(int fd) { return try_attach(fd).value(); }

    shared_segment(shared_segment&& from) noexcept : segment_(std::exchange(from.segment_, nullptr)) {}
    shared_segment& operator=(shared_segment&& from) noexcept {
        shared_segment moved(std::move(from));
        std::swap(segment_, moved.segment_);
        return *this;
    }
    ~shared_segment() { nbbs_shared_detach(segment_); }

    /// Registers a member.
    result<shared_member> try_join() const noexcept {
        auto got = detail::get<nbbs_shared_member*>(nbbs_shared_join, segment_);
        return got ? result<shared_member>(shared_member(*got)) : result<shared_member>(got.error());
    }
    shared_member join() const { return try_join().value(); }

    /// Where a `T` is in this process, aligned for it. Whose it is, and who may touch it, the caller must know.
    template <class T>
    result<T*> try_at(offset<T> place) const noexcept {
        const auto got = detail::get<void*>(nbbs_shared_at, segment_, place.bytes(), sizeof(T));
        if (!got) {
            return got.error();
        }
        if (reinterpret_cast<std::uintptr_t>(*got) % alignof(T) != 0) {
            return refusal(nbbs_error{NBBS_CODE_OFFSET_MISALIGNED, 0, place.bytes(), alignof(T), 0});
        }
        return static_cast<T*>(*got);
    }
    template <class T>
    T* at(offset<T> place) const {
        return try_at(place).value();
    }
    /// The offset of what is there in this process; 0 if it is not in the segment.
    template <class T>
    offset<T> offset_of(const T* address) const noexcept {
        return offset<T>(nbbs_shared_offset(segment_, address));
    }

    /// The root, by which a newcomer finds the rest; 0: none.
    template <class T>
    offset<T> root() const noexcept {
        return offset<T>(nbbs_shared_root(segment_));
    }
    template <class T>
    void set_root(offset<T> root) const noexcept {
        nbbs_shared_set_root(segment_, root.bytes(), nullptr);
    }
    /// Publishes `desired` if the root still is `expected`; if not, `expected` becomes what it is.
    template <class T>
    bool swap_root(offset<T>& expected, offset<T> desired) const noexcept {
        std::uint64_t found = expected.bytes();
        const bool swapped = nbbs_shared_swap_root(segment_, &found, desired.bytes());
        expected = offset<T>(found);
        return swapped;
    }

    /// Whose block, or slot of the heap, begins there, at this moment.
    template <class T>
    result<nbbs_shared_id> try_owner(offset<T> block) const noexcept {
        return detail::get<nbbs_shared_id>(nbbs_shared_owner, segment_, block.bytes());
    }
    nbbs_shared_geometry geometry() const noexcept {
        return detail::get<nbbs_shared_geometry>(nbbs_shared_geometry_of, segment_).value_or(nbbs_shared_geometry{});
    }
    /// Refuses a segment of other dimensions than expected, which attaching does not.
    result<void> try_check_geometry(const nbbs_shared_geometry& expected) const noexcept {
        return detail::run(nbbs_shared_check_geometry, segment_, &expected);
    }
    void check_geometry(const nbbs_shared_geometry& expected) const { try_check_geometry(expected).value(); }
    std::uint64_t count_free_bytes() const noexcept { return nbbs_shared_count_free_bytes(segment_); }
    /// The descriptor, to be handed to another process.
    int fd() const noexcept { return nbbs_shared_fd(segment_); }

    /// Has `hook` told of misuse, by members that join from now on. While nobody else is using the handle.
    result<void> set_hook(nbbs_hook hook, void* context) noexcept {
        return detail::run(nbbs_shared_set_hook, segment_, hook, context);
    }

    /// The segment, as C has it. Null: there is none.
    nbbs_shared* handle() const noexcept { return segment_; }

private:
    static result<shared_segment> made(const result<nbbs_shared*>& got) noexcept {
        if (!got) {
            return got.error();
        }
        shared_segment segment;
        segment.segment_ = *got;
        return result<shared_segment>(std::move(segment));
    }

    nbbs_shared* segment_ = nullptr;
};

}  // namespace nbbs

#endif
