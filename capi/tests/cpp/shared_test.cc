// nbbs::shared_segment, shared_member and offset.
#include "support.hpp"

#include <atomic>
#include <stdexcept>

namespace {

constexpr nbbs_shared_geometry kGeometry = {256, 64, 4};

struct Node {
    std::atomic<nbbs::offset<Node>> next;
    int number;
    explicit Node(int of) : number(of) {}
};
static_assert(sizeof(nbbs::offset<Node>) == 8 && std::atomic<nbbs::offset<Node>>::is_always_lock_free);

}  // namespace

TEST(Shared, StructuresLiveInASegment) {
    const auto segment = nbbs::shared_segment::create_memfd("list", kGeometry);
    const auto writer = segment.join();
    for (int number = 0; number < 10; number++) {
        const auto node = writer.make<Node>(number);
        segment.at(node)->next = segment.root<Node>();
        EXPECT_EQ(segment.offset_of(segment.at(node)), node);
        segment.set_root(node);
    }
    // Another mapping, at another place.
    const auto other = nbbs::shared_segment::attach(segment.fd());
    const auto reader = other.join();
    EXPECT_EQ(other.geometry().units, kGeometry.units);
    other.check_geometry(kGeometry);
    EXPECT_EQ(other.try_check_geometry({256, 128, 4}).error().code(), NBBS_CODE_SEGMENT_GEOMETRY);
    int expected = 10;
    for (auto node = other.root<Node>(); node;) {
        const Node* found = other.at(node);
        EXPECT_EQ(found->number, --expected);
        EXPECT_EQ(other.try_owner(node).value().seat, writer.id().seat);
        const auto next = found->next.load();
        EXPECT_EQ(reader.take(node).seat, writer.id().seat);
        EXPECT_EQ(reader.block(node).bytes, 64u);
        reader.free(node);
        node = next;
    }
    EXPECT_EQ(expected, 0);
    EXPECT_EQ(segment.count_free_bytes(), 256u * 64);
    nbbs::offset<Node> root(1);
    EXPECT_FALSE(segment.swap_root(root, {}));
    EXPECT_TRUE(segment.swap_root(root, {}));
    EXPECT_FALSE(segment.root<Node>());
}

TEST(Shared, TheHeapIsOfAllMembers) {
    const auto segment = nbbs::shared_segment::create_memfd("heap", {256, 4096, 4});
    const auto maker = segment.join(), taker = segment.join();
    const auto node = maker.heap().make<Node>(7);
    EXPECT_EQ(maker.heap().block(node).bytes, 16u);
    EXPECT_EQ(taker.heap().try_free(node).error().code(), NBBS_CODE_NOT_YOURS);
    EXPECT_EQ(taker.heap().take(node).seat, maker.id().seat);
    EXPECT_EQ(segment.at(node)->number, 7);
    const auto damaged = segment.try_at(nbbs::offset<Node>(node.bytes() + 1));
    EXPECT_EQ(damaged.error().code(), NBBS_CODE_OFFSET_MISALIGNED);
    EXPECT_EQ(damaged.error().limit(), alignof(Node));
    EXPECT_NE(damaged.error().message().find("is not aligned to"), std::string::npos);
    EXPECT_EQ(segment.try_owner(node).value().seat, taker.id().seat);
    EXPECT_EQ(maker.heap().try_take_from(node, maker.id()).error().code(), NBBS_CODE_NOT_YOURS);
    EXPECT_EQ(maker.heap().take_from(node, taker.id()).seat, taker.id().seat);
    EXPECT_EQ(maker.heap().take_from(node, taker.id()).seat, maker.id().seat);
    taker.heap().take_from(node, maker.id());
    taker.heap().free(node);
    EXPECT_EQ(taker.heap().try_free(node).error().code(), NBBS_CODE_NOT_YOURS);
    const auto large = maker.heap().alloc(5000, 64);
    EXPECT_EQ(maker.heap().block(large).bytes, 8192u);
    maker.heap().free(large);
    EXPECT_EQ(maker.heap().trim(), 1u);
    EXPECT_EQ(segment.count_free_bytes(), 256u * 4096);
}

// What is not made leaves nothing behind.
TEST(Shared, AConstructorThrows) {
    struct Throws {
        char bytes[40];
        Throws() { throw std::runtime_error("on purpose"); }
    };
    const auto segment = nbbs::shared_segment::create_memfd("throws", kGeometry);
    const auto member = segment.join();
    EXPECT_THROW(static_cast<void>(member.heap().make<Throws>()), std::runtime_error);
    EXPECT_THROW(static_cast<void>(member.make<Throws>()), std::runtime_error);
    EXPECT_EQ(member.heap().trim(), 1u);
    EXPECT_EQ(segment.count_free_bytes(), 256u * 64);
}

TEST(Shared, AggregatesAreMade) {
    struct Pair {
        int first, second;
    };
    const auto segment = nbbs::shared_segment::create_memfd("pairs", kGeometry);
    const auto member = segment.join();
    const auto slot = member.heap().make<Pair>(1, 2);
    const auto block = member.make<Pair>(3, 4);
    EXPECT_EQ(segment.at(slot)->second, 2);
    EXPECT_EQ(segment.at(block)->first, 3);
}

TEST(Shared, WhoEndsIsRecovered) {
    const auto segment = nbbs::shared_segment::create_memfd("ends", kGeometry);
    const auto stays = segment.join();
    nbbs::offset<void> kept, lost;
    {
        const auto goes = segment.join();
        kept = goes.alloc(1000);
        lost = goes.alloc(64);
    }
    const auto found = stays.recover([&](nbbs::offset<void> block, std::uint64_t bytes) {
        return block == kept && bytes == 1024;
    });
    EXPECT_EQ(found.kept, 1u);
    EXPECT_EQ(found.freed, 1u);
    EXPECT_EQ(stays.dead(), 0u);
    stays.free(kept);
    EXPECT_FALSE(stays.try_free(lost));
    EXPECT_EQ(stays.recover().freed, 0u);
}

TEST(Shared, MovesAndSaysWhyNot) {
    auto segment = nbbs::shared_segment::create_memfd("moves", kGeometry);
    Misuse misuse;
    EXPECT_TRUE(segment.set_hook(Misuse::note, &misuse));
    nbbs::shared_segment moved(std::move(segment));
    EXPECT_EQ(segment.handle(), nullptr);
    EXPECT_EQ(segment.try_join().error().code(), NBBS_CODE_NULL);
    auto member = moved.join();
    nbbs::shared_member same(std::move(member));
    EXPECT_EQ(member.try_alloc(1).error().code(), NBBS_CODE_NULL);
    EXPECT_EQ(same.try_alloc(1 << 20).error().message(), "a size of 1048576 bytes: it must be from 1 to 16384");
    const auto block = same.alloc(100);
    same.free(block);
    expect_throw<nbbs::error>(NBBS_CODE_NOT_YOURS, [&] { same.free(block); });
    expect_throw<nbbs::error>(NBBS_CODE_OUTSIDE_SEGMENT, [&] { moved.at(nbbs::offset<int>(8)); });
    expect_throw<nbbs::error>(NBBS_CODE_NO_SEGMENT, [] { nbbs::shared_segment::attach("/bin/sh"); });
    expect_throw<nbbs::error>(NBBS_CODE_MEMBERS, [] {
        nbbs::shared_segment::create_memfd("none", {256, 64, 0});
    });
    // The refused size, the double free, and the offset.
    EXPECT_EQ(misuse.seen.size(), 3u);
    same = moved.join();
    moved = nbbs::shared_segment();
    same.free(same.make<int>(1));
}
