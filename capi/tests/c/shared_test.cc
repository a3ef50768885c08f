// nbbs_shared_*: segments that several processes allocate from.
#include "support.h"

#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

namespace {

constexpr nbbs_shared_geometry kGeometry = {256, 64, 4};
constexpr uint64_t kBytes = 256 * 64;

// A path of this test's own, and a file there that goes with it.
struct Path {
    std::string name;
    explicit Path(const char *of) : name(testing::TempDir() + "nbbs-" + of + "-" + std::to_string(getpid())) {
        unlink(name.c_str());
    }
    ~Path() { unlink(name.c_str()); }
    operator const char *() const { return name.c_str(); }
};

// A segment, its members, and the misuse that it was told of.
struct Segment {
    nbbs_shared *handle = nullptr;
    std::vector<nbbs_error> misuse;

    Segment() {
        EXPECT_EQ(nbbs_shared_create_memfd("test", &kGeometry, &handle, nullptr), NBBS_CODE_OK);
        EXPECT_EQ(nbbs_shared_set_hook(handle, note, this, nullptr), NBBS_CODE_OK);
    }
    explicit Segment(nbbs_shared *given) : handle(given) {}
    Segment(const Segment &) = delete;
    ~Segment() { nbbs_shared_detach(handle); }

    operator nbbs_shared *() const { return handle; }
    nbbs_shared_member *join() const {
        nbbs_shared_member *member = nullptr;
        nbbs_error error{};
        EXPECT_EQ(nbbs_shared_join(handle, &member, &error), NBBS_CODE_OK) << text_of(error);
        return member;
    }
    static void note(void *context, const nbbs_error *error) {
        static_cast<Segment *>(context)->misuse.push_back(*error);
    }
};

uint64_t alloc(nbbs_shared_member *member, size_t bytes) {
    uint64_t offset = 0;
    nbbs_error error{};
    EXPECT_EQ(nbbs_shared_alloc(member, bytes, 8, &offset, &error), NBBS_CODE_OK) << text_of(error);
    return offset;
}

}  // namespace

TEST(Shared, WhatOneMakesAnotherAttaches) {
    const Path path("attach");
    nbbs_shared *made = nullptr, *attached = nullptr;
    ASSERT_EQ(nbbs_shared_create(path, &kGeometry, 0, &made, nullptr), NBBS_CODE_OK);
    const Segment one(made);
    struct stat status;
    ASSERT_EQ(stat(path, &status), 0);
    EXPECT_EQ(status.st_mode & 0777, 0600u);
    EXPECT_EQ(static_cast<uint64_t>(status.st_size), nbbs_shared_bytes(&kGeometry));
    expect_refusal(NBBS_CODE_SEGMENT_EXISTS, "there is a whole segment already",
                   [&](nbbs_error *error) { return nbbs_shared_create(path, &kGeometry, 0, &attached, error); });
    ASSERT_EQ(nbbs_shared_attach(path, &attached, nullptr), NBBS_CODE_OK);
    const Segment two(attached);
    nbbs_shared_geometry geometry{};
    EXPECT_EQ(nbbs_shared_geometry_of(two, &geometry, nullptr), NBBS_CODE_OK);
    EXPECT_EQ(geometry.units, kGeometry.units);

    nbbs_shared_member *alice = one.join(), *bob = two.join();
    const uint64_t offset = alloc(alice, 200);
    void *here = nullptr, *there = nullptr;
    size_t bytes = 0;
    EXPECT_EQ(nbbs_shared_block(alice, offset, &here, &bytes, nullptr), NBBS_CODE_OK);
    EXPECT_EQ(bytes, 256u);
    memset(here, 7, bytes);
    EXPECT_EQ(nbbs_shared_offset(one, here), offset);
    EXPECT_EQ(nbbs_shared_offset(two, here), 0u);
    nbbs_shared_id owner{}, from{};
    EXPECT_EQ(nbbs_shared_owner(two, offset, &owner, nullptr), NBBS_CODE_OK);
    EXPECT_EQ(owner.seat, nbbs_shared_id_of(alice).seat);
    EXPECT_EQ(nbbs_shared_take(bob, offset, &from, nullptr), NBBS_CODE_OK);
    EXPECT_EQ(from.seat, owner.seat);
    EXPECT_EQ(from.generation, owner.generation);
    EXPECT_EQ(nbbs_shared_at(two, offset, bytes, &there, nullptr), NBBS_CODE_OK);
    EXPECT_NE(here, there);
    EXPECT_EQ(memcmp(here, there, bytes), 0);
    // Whose it was cannot be taken for anybody else's.
    EXPECT_EQ(nbbs_shared_take_from(alice, offset, nbbs_shared_id_of(alice), nullptr, nullptr), NBBS_CODE_NOT_YOURS);
    EXPECT_EQ(nbbs_shared_take_from(alice, offset, nbbs_shared_id{}, nullptr, nullptr), NBBS_CODE_NOT_YOURS);
    // Bob has it already.
    EXPECT_EQ(nbbs_shared_take_from(bob, offset, nbbs_shared_id_of(alice), &from, nullptr), NBBS_CODE_OK);
    EXPECT_EQ(from.seat, nbbs_shared_id_of(bob).seat);
    EXPECT_EQ(nbbs_shared_heap_take_from(bob, offset, nbbs_shared_id_of(alice), nullptr, nullptr), NBBS_CODE_OK);
    from = {};
    EXPECT_EQ(nbbs_shared_heap_take_from(alice, offset, nbbs_shared_id_of(bob), &from, nullptr), NBBS_CODE_OK);
    EXPECT_EQ(from.seat, nbbs_shared_id_of(bob).seat);
    EXPECT_EQ(nbbs_shared_take_from(bob, offset, nbbs_shared_id_of(alice), &from, nullptr), NBBS_CODE_OK);
    EXPECT_EQ(from.seat, nbbs_shared_id_of(alice).seat);
    EXPECT_EQ(nbbs_shared_take_from(alice, offset, nbbs_shared_id_of(bob), nullptr, nullptr), NBBS_CODE_OK);
    EXPECT_EQ(nbbs_shared_take_from(nullptr, offset, from, nullptr, nullptr), NBBS_CODE_NULL);
    EXPECT_EQ(nbbs_shared_free(bob, offset, nullptr), NBBS_CODE_NOT_YOURS);
    EXPECT_EQ(nbbs_shared_free(alice, offset, nullptr), NBBS_CODE_OK);
    EXPECT_EQ(nbbs_shared_count_free_bytes(one), kBytes);
    nbbs_shared_leave(alice);
    nbbs_shared_leave(bob);
}

TEST(Shared, RootIsFoundByAll) {
    const Segment segment;
    nbbs_shared *attached = nullptr;
    ASSERT_EQ(nbbs_shared_attach_fd(nbbs_shared_fd(segment), &attached, nullptr), NBBS_CODE_OK);
    const Segment other(attached);
    EXPECT_EQ(nbbs_shared_root(other), 0u);
    uint64_t expected = 1;
    EXPECT_FALSE(nbbs_shared_swap_root(segment, &expected, 4096));
    EXPECT_EQ(expected, 0u);
    EXPECT_TRUE(nbbs_shared_swap_root(segment, &expected, 4096));
    EXPECT_EQ(nbbs_shared_root(other), 4096u);
    EXPECT_EQ(nbbs_shared_set_root(other, 0, nullptr), NBBS_CODE_OK);
    EXPECT_EQ(nbbs_shared_root(segment), 0u);
}

TEST(Shared, MembersKeepTheSegment) {
    auto *segment = new Segment;
    nbbs_shared_member *member = segment->join();
    const uint64_t offset = alloc(member, 10);
    delete segment;
    void *address = nullptr;
    ASSERT_EQ(nbbs_shared_block(member, offset, &address, nullptr, nullptr), NBBS_CODE_OK);
    memset(address, 1, 10);
    EXPECT_EQ(nbbs_shared_free(member, offset, nullptr), NBBS_CODE_OK);
    nbbs_shared_leave(member);
}

// A child is killed; the parent recovers, and keeps what it finds in the root.
TEST(Shared, WhatTheDeadHeldIsRecovered) {
    const Segment segment;
    nbbs_shared_member *member = segment.join();
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
        nbbs_shared *attached = nullptr;
        nbbs_shared_member *dies = nullptr;
        // The parent's mapping did not come along: the child attaches for itself.
        uint64_t root = 0, more = 0;
        if (nbbs_shared_attach_fd(nbbs_shared_fd(segment), &attached, nullptr) ||
            nbbs_shared_join(attached, &dies, nullptr) || nbbs_shared_alloc(dies, 300, 8, &root, nullptr) ||
            nbbs_shared_alloc(dies, 64, 8, &more, nullptr) || nbbs_shared_set_root(attached, root, nullptr))
            _exit(1);
        raise(SIGKILL);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    EXPECT_EQ(nbbs_shared_dead(member), 1u);
    uint64_t root = nbbs_shared_root(segment);
    nbbs_shared_recovery found{};
    const auto keeps = [](void *context, uint64_t offset, uint64_t bytes) {
        return offset == *static_cast<uint64_t *>(context) && bytes == 512;
    };
    EXPECT_EQ(nbbs_shared_recover(member, keeps, &root, &found, nullptr), NBBS_CODE_OK);
    EXPECT_EQ(found.members, 1u);
    EXPECT_EQ(found.kept, 1u);
    EXPECT_EQ(found.freed, 1u);
    EXPECT_EQ(found.pending + found.damaged, 0u);
    EXPECT_EQ(nbbs_shared_count_free_bytes(segment), kBytes - 512);
    EXPECT_EQ(nbbs_shared_free(member, root, nullptr), NBBS_CODE_OK);
    EXPECT_EQ(nbbs_shared_recover(member, nullptr, nullptr, nullptr, nullptr), NBBS_CODE_OK);
    nbbs_shared_leave(member);
}

// What its parent made a child can only end, and the parent's goes on.
TEST(Shared, ChildrenEndWhatTheyDoNotInherit) {
    nbbs_shared *segment = nullptr;
    nbbs_shared_member *member = nullptr;
    ASSERT_EQ(nbbs_shared_create_memfd("child", &kGeometry, &segment, nullptr), NBBS_CODE_OK);
    ASSERT_EQ(nbbs_shared_join(segment, &member, nullptr), NBBS_CODE_OK);
    const uint64_t held = alloc(member, 100);
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
        const int fd = nbbs_shared_fd(segment);
        nbbs_shared_leave(member);
        nbbs_shared_detach(segment);
        _exit(fd >= 0 ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    EXPECT_EQ(nbbs_shared_free(member, held, nullptr), NBBS_CODE_OK);
    EXPECT_EQ(nbbs_shared_dead(member), 0u);
    EXPECT_EQ(nbbs_shared_count_free_bytes(segment), kBytes);
    nbbs_shared_leave(member);
    nbbs_shared_detach(segment);
}

TEST(Shared, SaysWhyNot) {
    Segment segment;
    nbbs_shared_member *member = segment.join(), *other = segment.join();
    uint64_t offset = 0;
    expect_refusal(NBBS_CODE_SIZE, "a size of 20000 bytes: it must be from 1 to 16384",
                   [&](nbbs_error *error) { return nbbs_shared_alloc(member, 20000, 8, &offset, error); });
    expect_refusal(NBBS_CODE_ALIGNMENT, "an alignment of 8192: it must be a power of two up to 4096",
                   [&](nbbs_error *error) { return nbbs_shared_alloc(member, 1, 8192, &offset, error); });
    expect_refusal(NBBS_CODE_ALIGNMENT, "an alignment of 3: it must be a power of two up to 4096",
                   [&](nbbs_error *error) { return nbbs_shared_alloc(member, 1, 3, &offset, error); });
    expect_refusal(NBBS_CODE_ALIGNMENT, "an alignment of 9223372036854775808: it must be a power of two up to 4096",
                   [&](nbbs_error *error) { return nbbs_shared_alloc(member, 64, size_t{1} << 63, &offset, error); });
    const uint64_t whole = alloc(member, kBytes);
    const size_t ordinary = segment.misuse.size();
    expect_refusal(NBBS_CODE_SEGMENT_FULL, "the segment has no 1 bytes at a multiple of 8",
                   [&](nbbs_error *error) { return nbbs_shared_alloc(member, 1, 8, &offset, error); });
    // Who takes what was sent may come too late.
    const nbbs_shared_id gone = {4, 1};
    EXPECT_EQ(nbbs_shared_take_from(other, whole, gone, nullptr, nullptr), NBBS_CODE_NOT_YOURS);
    EXPECT_EQ(nbbs_shared_heap_take_from(other, whole, gone, nullptr, nullptr), NBBS_CODE_NOT_YOURS);
    EXPECT_EQ(nbbs_shared_heap_take_from(other, whole + 16, gone, nullptr, nullptr), NBBS_CODE_OFFSET_MISALIGNED);
    EXPECT_EQ(segment.misuse.size(), ordinary);
    char at[20];
    snprintf(at, sizeof at, "%#zx", static_cast<size_t>(whole));
    expect_refusal(NBBS_CODE_NOT_YOURS, std::string("the block at ") + at + " is that of seat 1's member 1",
                   [&](nbbs_error *error) { return nbbs_shared_free(other, whole, error); });
    EXPECT_EQ(nbbs_shared_free(member, whole, nullptr), NBBS_CODE_OK);
    expect_refusal(NBBS_CODE_NOT_YOURS, std::string("nobody has a block that begins at ") + at,
                   [&](nbbs_error *error) { return nbbs_shared_free(member, whole, error); });
    EXPECT_EQ(segment.misuse.size(), ordinary + 2);
    snprintf(at, sizeof at, "%#zx", static_cast<size_t>(whole + 8));
    expect_refusal(NBBS_CODE_OFFSET_MISALIGNED, std::string("offset ") + at + " is not aligned to 64 bytes",
                   [&](nbbs_error *error) { return nbbs_shared_take(member, whole + 8, nullptr, error); });
    nbbs_shared_leave(member);
    nbbs_shared_leave(other);
}

// A slot of 48 bytes, freed last.
TEST(Shared, HeapSaysWhyNot) {
    Segment segment;
    nbbs_shared_member *member = segment.join(), *other = segment.join();
    uint64_t slot = 0, offset = 0;
    ASSERT_EQ(nbbs_shared_heap_alloc(member, 40, 16, &slot, nullptr), NBBS_CODE_OK);
    expect_refusal(NBBS_CODE_SIZE, "a size of 20000 bytes: it must be from 1 to 16384",
                   [&](nbbs_error *error) { return nbbs_shared_heap_alloc(member, 20000, 8, &offset, error); });
    expect_refusal(NBBS_CODE_ALIGNMENT, "an alignment of 8192: it must be a power of two up to 4096",
                   [&](nbbs_error *error) { return nbbs_shared_heap_alloc(member, 1, 8192, &offset, error); });
    expect_refusal(NBBS_CODE_ALIGNMENT, "an alignment of 0: it must be a power of two up to 4096",
                   [&](nbbs_error *error) { return nbbs_shared_heap_alloc(member, 1, 0, &offset, error); });
    const size_t misused = segment.misuse.size();
    expect_refusal(NBBS_CODE_SEGMENT_FULL, "the segment has no 16384 bytes at a multiple of 8",
                   [&](nbbs_error *error) { return nbbs_shared_heap_alloc(member, kBytes, 8, &offset, error); });
    EXPECT_EQ(segment.misuse.size(), misused);
    char at[20];
    snprintf(at, sizeof at, "%#zx", static_cast<size_t>(slot));
    const auto not_his = [&](auto what) {
        expect_refusal(NBBS_CODE_NOT_YOURS, std::string("the block at ") + at + " is that of seat 1's member 1", what);
    };
    not_his([&](nbbs_error *error) { return nbbs_shared_heap_free(other, slot, error); });
    not_his([&](nbbs_error *error) { return nbbs_shared_heap_block(other, slot, nullptr, nullptr, error); });
    EXPECT_EQ(segment.misuse.size(), misused + 2);
    nbbs_shared_id owner{};
    EXPECT_EQ(nbbs_shared_owner(segment, slot, &owner, nullptr), NBBS_CODE_OK);
    EXPECT_EQ(owner.seat, nbbs_shared_id_of(member).seat);
    snprintf(at, sizeof at, "%#zx", static_cast<size_t>(slot + 16));
    const auto no_slot = [&](auto what) {
        expect_refusal(NBBS_CODE_OFFSET_MISALIGNED, std::string("no slot of 48 bytes begins at offset ") + at, what);
    };
    no_slot([&](nbbs_error *error) { return nbbs_shared_heap_free(member, slot + 16, error); });
    no_slot([&](nbbs_error *error) { return nbbs_shared_heap_take(member, slot + 16, nullptr, error); });
    no_slot([&](nbbs_error *error) { return nbbs_shared_heap_block(member, slot + 16, nullptr, nullptr, error); });
    no_slot([&](nbbs_error *error) { return nbbs_shared_owner(segment, slot + 16, &owner, error); });
    EXPECT_EQ(nbbs_shared_free(member, slot, nullptr), NBBS_CODE_OFFSET_MISALIGNED) << "a slot is no block";
    EXPECT_EQ(nbbs_shared_heap_free(member, slot, nullptr), NBBS_CODE_OK);
    EXPECT_EQ(nbbs_shared_heap_free(member, slot, nullptr), NBBS_CODE_NOT_YOURS);
    EXPECT_EQ(nbbs_shared_heap_take(member, slot, nullptr, nullptr), NBBS_CODE_NOT_YOURS);
    nbbs_shared_leave(member);
    nbbs_shared_leave(other);
}

// A member's memory stays where it is when the segment's handle goes, and other members'.
TEST(Shared, HeapOutlivesTheHandle) {
    auto *segment = new Segment;
    nbbs_shared_member *member = segment->join(), *goes = segment->join();
    uint64_t slot = 0, left = 0;
    ASSERT_EQ(nbbs_shared_heap_alloc(member, 100, 8, &slot, nullptr), NBBS_CODE_OK);
    ASSERT_EQ(nbbs_shared_heap_alloc(goes, 100, 8, &left, nullptr), NBBS_CODE_OK);
    delete segment;
    nbbs_shared_leave(goes);
    void *address = nullptr;
    size_t bytes = 0;
    ASSERT_EQ(nbbs_shared_heap_block(member, slot, &address, &bytes, nullptr), NBBS_CODE_OK);
    EXPECT_EQ(bytes, 112u);
    memset(address, 1, bytes);
    nbbs_shared_id from{};
    EXPECT_EQ(nbbs_shared_heap_take(member, left, &from, nullptr), NBBS_CODE_OK);
    EXPECT_EQ(from.seat, 2u);
    EXPECT_EQ(nbbs_shared_heap_free(member, left, nullptr), NBBS_CODE_OK);
    EXPECT_EQ(nbbs_shared_heap_free(member, slot, nullptr), NBBS_CODE_OK);
    EXPECT_GE(nbbs_shared_heap_trim(member), 1u);
    nbbs_shared_leave(member);
}

TEST(Shared, OffsetsAreLookedAt) {
    const Segment segment;
    nbbs_shared_member *member = segment.join();
    void *address = nullptr;
    for (uint64_t offset : {uint64_t{0}, uint64_t{8}, nbbs_shared_bytes(&kGeometry), ~uint64_t{0}}) {
        nbbs_error error{};
        EXPECT_EQ(nbbs_shared_at(segment, offset, 1, &address, &error), NBBS_CODE_OUTSIDE_SEGMENT);
        expect_only_what_it_names(error);
        EXPECT_EQ(nbbs_shared_free(member, offset, nullptr), NBBS_CODE_OUTSIDE_SEGMENT);
        EXPECT_EQ(nbbs_shared_take(member, offset, nullptr, nullptr), NBBS_CODE_OUTSIDE_SEGMENT);
        EXPECT_EQ(nbbs_shared_block(member, offset, nullptr, nullptr, nullptr), NBBS_CODE_OUTSIDE_SEGMENT);
        EXPECT_EQ(nbbs_shared_heap_free(member, offset, nullptr), NBBS_CODE_OUTSIDE_SEGMENT);
        EXPECT_EQ(nbbs_shared_heap_take(member, offset, nullptr, nullptr), NBBS_CODE_OUTSIDE_SEGMENT);
        EXPECT_EQ(nbbs_shared_heap_block(member, offset, nullptr, nullptr, nullptr), NBBS_CODE_OUTSIDE_SEGMENT);
    }
    const uint64_t block = alloc(member, 1), end = nbbs_shared_bytes(&kGeometry);
    char within[40];
    snprintf(within, sizeof within, "%#zx..%#zx", static_cast<size_t>(end - kBytes), static_cast<size_t>(end));
    expect_refusal(NBBS_CODE_OUTSIDE_SEGMENT, std::string("64 bytes at 0x8 are not within ") + within,
                   [&](nbbs_error *error) { return nbbs_shared_free(member, 8, error); });
    expect_refusal(NBBS_CODE_OUTSIDE_SEGMENT, std::string("1 bytes at 0x0 are not within ") + within,
                   [&](nbbs_error *error) { return nbbs_shared_free(member, 0, error); });
    char at[40];
    snprintf(at, sizeof at, " at %#zx are not within ", static_cast<size_t>(block));
    const std::pair<size_t, const char *> asked[] = {{1 << 20, "1048576 bytes"}, {size_t{1} << 33, "4294967295 bytes or more"}};
    for (const auto &[bytes, said] : asked)
        expect_refusal(NBBS_CODE_OUTSIDE_SEGMENT, std::string(said) + at + within, [&, bytes = bytes](nbbs_error *error) {
            return nbbs_shared_at(segment, block, bytes, &address, error);
        });
    nbbs_shared_leave(member);
}

TEST(Shared, GeometriesAndFilesAreLookedAt) {
    nbbs_shared *segment = nullptr;
    const auto made = [&](nbbs_shared_geometry geometry) {
        EXPECT_EQ(nbbs_shared_bytes(&geometry), 0u);
        return [&segment, geometry](nbbs_error *error) {
            return nbbs_shared_create_memfd("none", &geometry, &segment, error);
        };
    };
    expect_refusal(NBBS_CODE_UNIT_BYTES, "units of 100 bytes: a power of two from 64 to 1073741824",
                   made({256, 100, 4}));
    expect_refusal(NBBS_CODE_MEMBERS, "1024 members: a segment has seats for 1 to 1022", made({256, 64, 1024}));
    nbbs_error error{};
    EXPECT_EQ(made({0, 64, 4})(&error), NBBS_CODE_UNITS);
    EXPECT_EQ(made({uint64_t{1} << 40, 4096, 4})(&error), NBBS_CODE_SIZE);
    expect_only_what_it_names(error);
    // The units would fit, without their bookkeeping.
    EXPECT_EQ(made({uint64_t{1} << 40, 64, 4})(&error), NBBS_CODE_SIZE);
    EXPECT_GT(error.value, error.limit);
    expect_refusal(NBBS_CODE_TOO_LONG, "a length of 250: it must be at most 249", [&](nbbs_error *refused) {
        return nbbs_shared_create_memfd(std::string(250, 'n').c_str(), &kGeometry, &segment, refused);
    });
    // Bytes of any text.
    EXPECT_EQ(nbbs_shared_create_memfd(std::string(249, '\xff').c_str(), &kGeometry, &segment, nullptr), NBBS_CODE_OK);
    nbbs_shared_detach(segment);
    expect_refusal(NBBS_CODE_NO_SEGMENT, "the file is no segment",
                   [&](nbbs_error *refused) { return nbbs_shared_attach("/bin/sh", &segment, refused); });
    expect_refusal(NBBS_CODE_SYSTEM, "the system refused: errno 2",
                   [&](nbbs_error *refused) { return nbbs_shared_attach("/nowhere", &segment, refused); });
    expect_refusal(NBBS_CODE_SYSTEM, "the system refused: errno 9",
                   [&](nbbs_error *refused) { return nbbs_shared_attach_fd(-1, &segment, refused); });
    expect_refusal(NBBS_CODE_SYSTEM, "the system refused: errno 9",
                   [&](nbbs_error *refused) { return nbbs_shared_attach_fd(1000, &segment, refused); });
    const Path path("files");
    ASSERT_EQ(close(open(path, O_CREAT | O_WRONLY, 0600)), 0);
    expect_refusal(NBBS_CODE_SEGMENT_MAKING, "the segment is not made yet",
                   [&](nbbs_error *refused) { return nbbs_shared_attach(path, &segment, refused); });
    ASSERT_EQ(nbbs_shared_create(path, &kGeometry, 0, &segment, nullptr), NBBS_CODE_OK);
    nbbs_shared_detach(segment);
    const int file = open(path, O_WRONLY);
    ASSERT_EQ(pwrite(file, "\x01", 1, 56), 1);
    EXPECT_EQ(nbbs_shared_attach(path, &segment, nullptr), NBBS_CODE_SEGMENT_HALF_MADE);
    // Part of the root, as of one that was used.
    ASSERT_EQ(pwrite(file, "\x01", 1, 66), 1);
    const char *was_used = "the segment is not whole by its header, but was used: byte 66 is not 0";
    expect_refusal(NBBS_CODE_SEGMENT_CORRUPT, was_used,
                   [&](nbbs_error *refused) { return nbbs_shared_attach(path, &segment, refused); });
    expect_refusal(NBBS_CODE_SEGMENT_CORRUPT, was_used,
                   [&](nbbs_error *refused) { return nbbs_shared_create(path, &kGeometry, 0, &segment, refused); });
    ASSERT_EQ(pwrite(file, "\x0a", 1, 8), 1);
    expect_refusal(NBBS_CODE_SEGMENT_VERSION, "the segment has layout version 10: this code knows 9",
                   [&](nbbs_error *refused) { return nbbs_shared_attach(path, &segment, refused); });
    ASSERT_EQ(pwrite(file, "\x09\0\0\0\0\0\0\0\x55", 9, 8), 9);
    EXPECT_EQ(nbbs_shared_attach(path, &segment, &error), NBBS_CODE_SEGMENT_CORRUPT);
    EXPECT_EQ(error.other, 1u);
    close(file);
}

TEST(Shared, OtherDimensionsAreNoticed) {
    const Segment segment;
    EXPECT_EQ(nbbs_shared_check_geometry(segment, &kGeometry, nullptr), NBBS_CODE_OK);
    const std::pair<nbbs_shared_geometry, const char *> others[] = {
        {{300, 128, 4}, "the segment has 256 units: expected were 300"},
        {{256, 128, 8}, "the segment has 64 bytes to a unit: expected were 128"},
        {{256, 64, 8}, "the segment has 4 seats for members: expected were 8"},
    };
    uint64_t which = 0;
    for (const auto &[expected, said] : others) {
        nbbs_error error{};
        EXPECT_EQ(nbbs_shared_check_geometry(segment, &expected, &error), NBBS_CODE_SEGMENT_GEOMETRY);
        EXPECT_EQ(text_of(error), said);
        EXPECT_EQ(error.other, which++);
    }
    EXPECT_EQ(nbbs_shared_check_geometry(segment, nullptr, nullptr), NBBS_CODE_NULL);
    EXPECT_EQ(segment.misuse.size(), 1u);
}

TEST(Shared, SeatsRunOut) {
    const Segment segment;
    std::vector<nbbs_shared_member *> members;
    for (uint64_t seat = 0; seat < kGeometry.members; seat++) members.push_back(segment.join());
    nbbs_shared_member *member = nullptr;
    expect_refusal(NBBS_CODE_SEATS_TAKEN, "all 4 seats are taken by living members",
                   [&](nbbs_error *error) { return nbbs_shared_join(segment, &member, error); });
    for (auto *each : members) nbbs_shared_leave(each);
    members.assign(1, segment.join());
    // Others that stand still before they have the rest.
    const int other = open(("/proc/self/fd/" + std::to_string(nbbs_shared_fd(segment))).c_str(), O_RDWR);
    struct flock seats {};
    seats.l_type = F_WRLCK;
    seats.l_start = (1 << 30) + 2;
    seats.l_len = 3;
    ASSERT_EQ(fcntl(other, F_OFD_SETLK, &seats), 0);
    expect_refusal(NBBS_CODE_SEATS_TAKEN, "none of 4 seats is free: 3 are just being taken or left",
                   [&](nbbs_error *error) { return nbbs_shared_join(segment, &member, error); });
    close(other);
    EXPECT_TRUE(segment.misuse.empty());
    nbbs_shared_leave(members[0]);
    nbbs_shared_leave(segment.join());
}

TEST(Shared, NullIsRefused) {
    EXPECT_EQ(nbbs_shared_bytes(nullptr), 0u);
    EXPECT_EQ(nbbs_shared_fd(nullptr), -1);
    EXPECT_EQ(nbbs_shared_root(nullptr), 0u);
    EXPECT_EQ(nbbs_shared_count_free_bytes(nullptr), 0u);
    EXPECT_EQ(nbbs_shared_offset(nullptr, nullptr), 0u);
    EXPECT_EQ(nbbs_shared_dead(nullptr), 0u);
    EXPECT_EQ(nbbs_shared_id_of(nullptr).seat, 0u);
    EXPECT_FALSE(nbbs_shared_swap_root(nullptr, nullptr, 0));
    nbbs_shared_detach(nullptr);
    nbbs_shared_leave(nullptr);
    nbbs_shared *segment = nullptr;
    nbbs_error error{};
    EXPECT_EQ(nbbs_shared_create(nullptr, &kGeometry, 0, &segment, &error), NBBS_CODE_NULL);
    EXPECT_EQ(error.value, 1u);
    EXPECT_EQ(nbbs_shared_create("x", nullptr, 0, &segment, &error), NBBS_CODE_NULL);
    EXPECT_EQ(error.value, 2u);
    EXPECT_EQ(nbbs_shared_create("x", &kGeometry, 0, nullptr, &error), NBBS_CODE_NULL);
    EXPECT_EQ(error.value, 4u);
    EXPECT_EQ(nbbs_shared_join(nullptr, nullptr, nullptr), NBBS_CODE_NULL);
    EXPECT_EQ(nbbs_shared_alloc(nullptr, 1, 1, nullptr, nullptr), NBBS_CODE_NULL);
    EXPECT_EQ(nbbs_shared_recover(nullptr, nullptr, nullptr, nullptr, nullptr), NBBS_CODE_NULL);
    EXPECT_EQ(nbbs_shared_heap_alloc(nullptr, 1, 1, nullptr, nullptr), NBBS_CODE_NULL);
    EXPECT_EQ(nbbs_shared_heap_free(nullptr, 4096, nullptr), NBBS_CODE_NULL);
    EXPECT_EQ(nbbs_shared_heap_take(nullptr, 4096, nullptr, nullptr), NBBS_CODE_NULL);
    EXPECT_EQ(nbbs_shared_heap_block(nullptr, 4096, nullptr, nullptr, nullptr), NBBS_CODE_NULL);
    EXPECT_EQ(nbbs_shared_heap_trim(nullptr), 0u);
    const Segment made;
    nbbs_shared_member *member = made.join();
    EXPECT_EQ(nbbs_shared_alloc(member, 1, 1, nullptr, &error), NBBS_CODE_NULL);
    EXPECT_EQ(error.value, 4u);
    EXPECT_EQ(nbbs_shared_heap_alloc(member, 1, 1, nullptr, &error), NBBS_CODE_NULL);
    EXPECT_EQ(error.value, 4u);
    nbbs_shared_leave(member);
}
