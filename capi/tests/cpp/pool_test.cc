// Objects of one type.

#include "support.hpp"

#include <array>
#include <set>
#include <string>

namespace {

TEST(Pool, MakesAndDestroysObjects) {
    nbbs::pool<Counted> pool;
    Counted* one = pool.allocate(7, "seven");
    ASSERT_NE(one, nullptr);
    EXPECT_EQ(one->text, "seven");
    EXPECT_EQ(pool.allocate()->number, 0);
    EXPECT_EQ(pool.length(), 2u);
    EXPECT_GE(pool.capacity(), 2u);
    EXPECT_EQ(Counted::alive, 2);
    EXPECT_TRUE(pool.deallocate(one));
    EXPECT_EQ(Counted::alive, 1);
    EXPECT_TRUE(pool.deallocate(nullptr));
    EXPECT_EQ(pool.length(), 1u);
    EXPECT_EQ(pool.type_size(), sizeof(Counted));
    EXPECT_GT(pool.max_size(), pool.capacity());
}

TEST(Pool, MakesAggregates) {
    struct point {
        int x, y;
    };
    nbbs::pool<point> pool;
    point* one = pool.allocate(3, 4);
    ASSERT_NE(one, nullptr);
    EXPECT_EQ(one->x + one->y, 7);
    EXPECT_EQ(pool.make(5, 6)->y, 6);
}

TEST(Pool, DestroysWhatIsLeft) {
    {
        nbbs::pool<Counted> pool;
        for (int number = 0; number < 3000; number++) {
            static_cast<void>(pool.allocate(number, std::string(30, 'x')));
        }
        EXPECT_EQ(Counted::alive, 3000);
        const std::size_t room = pool.capacity();
        pool.clear();
        EXPECT_EQ(Counted::alive, 0);
        EXPECT_EQ(pool.length(), 0u);
        EXPECT_EQ(pool.capacity(), room);
        EXPECT_EQ(pool.shrink(), room);
        EXPECT_EQ(pool.capacity(), 0u);
        EXPECT_NE(pool.allocate(1), nullptr);
    }
    EXPECT_EQ(Counted::alive, 0);
}

/// An object whose `operator&` is its own, as that of a smart pointer of COM.
struct NoAddress : Counted {
    using Counted::Counted;
    NoAddress* operator&() { return nullptr; }
};

TEST(Pool, DestroysWhatHasAnAddressOperatorOfItsOwn) {
    {
        nbbs::pool<NoAddress> pool;
        EXPECT_NE(pool.allocate(1), nullptr);
        pool.clear();
        EXPECT_EQ(Counted::alive, 0);
        EXPECT_NE(pool.allocate(2), nullptr);
    }
    EXPECT_EQ(Counted::alive, 0);
}

TEST(Pool, AThrowingConstructorLeavesItsSlotFree) {
    nbbs::pool_config one;
    one.limit = 1;
    nbbs::pool<Counted> pool(one);
    EXPECT_THROW(static_cast<void>(pool.allocate(-1)), int);
    EXPECT_THROW(static_cast<void>(pool.make(-2)), int);
    EXPECT_EQ(pool.length(), 0u);
    EXPECT_EQ(Counted::alive, 0);
    EXPECT_NE(pool.allocate(1), nullptr);
}

TEST(Pool, WrongFreesRunNoDestructor) {
    Misuse misuse;
    nbbs::pool<Counted> pool, other;
    EXPECT_TRUE(pool.set_hook(Misuse::note, &misuse));
    Counted* object = pool.allocate(1);
    Counted* foreign = other.allocate(2);
    alignas(Counted) std::byte nothing[sizeof(Counted)];
    auto* inside = reinterpret_cast<Counted*>(reinterpret_cast<std::byte*>(object) + 8);
    EXPECT_EQ(pool.deallocate(foreign).code(), NBBS_CODE_FOREIGN_ADDRESS);
    EXPECT_EQ(pool.deallocate(reinterpret_cast<Counted*>(nothing)).code(), NBBS_CODE_FOREIGN_ADDRESS);
    EXPECT_EQ(pool.deallocate(inside).code(), NBBS_CODE_INSIDE_UNIT);
    EXPECT_EQ(Counted::alive, 2);
    EXPECT_TRUE(pool.deallocate(object));
    EXPECT_EQ(pool.deallocate(object).code(), NBBS_CODE_NO_OBJECT);
    EXPECT_EQ(Counted::alive, 1);
    EXPECT_EQ(misuse.seen.size(), 4u);
}

TEST(Pool, KnowsItsObjects) {
    nbbs::pool<Counted> pool;
    Counted* object = pool.allocate(1);
    EXPECT_TRUE(pool.is_valid(object));
    EXPECT_TRUE(pool.unsafe_is_valid(object));
    EXPECT_FALSE(pool.is_valid(object + 1));
    EXPECT_FALSE(pool.is_valid(nullptr));
    EXPECT_FALSE(pool.is_valid(reinterpret_cast<Counted*>(&pool)));
    EXPECT_FALSE(pool.is_valid(reinterpret_cast<Counted*>(reinterpret_cast<std::byte*>(object) + 1)));
    EXPECT_TRUE(pool.deallocate(object));
    EXPECT_FALSE(pool.is_valid(object));
}

TEST(Pool, UnsafeVariants) {
    nbbs::pool<Counted> pool;
    Counted* object = pool.unsafe_allocate(5);
    EXPECT_EQ(object->number, 5);
    EXPECT_TRUE(pool.unsafe_deallocate(object));
    EXPECT_TRUE(pool.unsafe_deallocate(nullptr));
    EXPECT_EQ(Counted::alive, 0);
    EXPECT_EQ(pool.length(), 0u);
}

TEST(Pool, KeepsItsLimitAndReservation) {
    nbbs::pool_config config;
    config.limit = 100;
    config.reserve = 40;
    config.chunk = 16;
    nbbs::pool<int> pool(config);
    EXPECT_EQ(pool.limit(), 100u);
    EXPECT_GE(pool.capacity(), 40u);
    EXPECT_LT(pool.capacity(), 100u);
    std::set<int*> places;
    for (int number = 0; number < 100; number++) {
        int* place = pool.allocate(number);
        ASSERT_NE(place, nullptr);
        EXPECT_TRUE(places.insert(place).second);
    }
    EXPECT_EQ(pool.stats().objects, 100u);
    EXPECT_EQ(pool.stats().bytes, pool.capacity() * sizeof(int));
    EXPECT_EQ(pool.allocate(1), nullptr);
    expect_throw<nbbs::bad_alloc>(NBBS_CODE_FULL, [&] { pool.make(1).reset(); });
    for (int* place : places) {
        EXPECT_TRUE(pool.deallocate(place));
    }
    pool.shrink();
    EXPECT_GE(pool.capacity(), 40u);
    EXPECT_LT(pool.capacity(), 100u);
    pool.reserve(80);
    EXPECT_GE(pool.capacity(), 80u);
    EXPECT_EQ(pool.try_reserve(101).error().message(), "101 objects are asked for, and the pool may have 100");

    config.chunk = std::size_t{1} << 25;
    expect_throw<nbbs::error>(NBBS_CODE_SETTING, [&] { nbbs::pool<int> none(config); });
}

TEST(Pool, GrowsAheadOfDemand) {
    nbbs::pool_config config;
    config.chunk = 256;
    config.ahead = 100;
    nbbs::pool<int> pool(config);
    for (int number = 0; number < 100; number++) {
        static_cast<void>(pool.allocate(number));
    }
    EXPECT_EQ(pool.capacity(), 256u);
    for (int number = 0; number < 100; number++) {
        static_cast<void>(pool.allocate(number));
    }
    EXPECT_EQ(pool.capacity(), 512u);
}

TEST(Pool, ObjectsThatAreOverAligned) {
    struct alignas(256) Wide {
        std::array<char, 300> bytes;
    };
    nbbs::pool<Wide> pool;
    for (int number = 0; number < 50; number++) {
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(pool.allocate()) % 256, 0u);
    }
}

TEST(Pool, BoxesFreeThemselves) {
    nbbs::pool<Counted> pool;
    nbbs::pool<Counted>::box kept = pool.make(1, "kept");
    {
        const auto gone = pool.make(2);
        EXPECT_EQ(pool.length(), 2u);
    }
    EXPECT_EQ(pool.length(), 1u);
    nbbs::pool<Counted> moved(std::move(pool));
    EXPECT_EQ(kept->text, "kept");
    kept.reset();
    EXPECT_EQ(moved.length(), 0u);
    EXPECT_EQ(pool.length(), 0u);
    EXPECT_EQ(pool.allocate(3), nullptr);
    Counted* old = moved.allocate(4);
    EXPECT_TRUE(moved.is_valid(old));
    const std::size_t dropped = nbbs::dropped_frees();
    auto box = moved.make(5);
    EXPECT_TRUE(moved.deallocate(box.get()));
    box.reset();
    EXPECT_EQ(nbbs::dropped_frees() - dropped, 1u);
    moved = nbbs::pool<Counted>();
    EXPECT_EQ(Counted::alive, 0);
}

TEST(Pool, VisitsAndFreesOnTheWay) {
    nbbs::pool<Counted> pool;
    for (int number = 0; number < 200; number++) {
        static_cast<void>(pool.allocate(number));
    }
    int sum = 0;
    pool.each([&](Counted& object) {
        sum += object.number;
        if (object.number % 2 == 0) {
            EXPECT_TRUE(pool.deallocate(&object));
        }
    });
    EXPECT_EQ(sum, 199 * 100);
    EXPECT_EQ(pool.length(), 100u);
    EXPECT_THROW(pool.each([](Counted& object) { throw object.number; }), int);
    EXPECT_EQ(Counted::alive, 100);
}

using Owner = Link<nbbs::pool>;

TEST(Pool, ClearsObjectsThatOwnOthers) {
    nbbs::pool<Owner> pool;
    for (int chain = 0; chain < 10; chain++) {
        Owner* first = nullptr;
        for (int length = 0; length < 30; length++) {
            first = pool.allocate(&pool, first);
        }
    }
    EXPECT_EQ(Owner::alive, 300);
    pool.clear();
    EXPECT_EQ(Owner::alive, 0);
    EXPECT_EQ(pool.length(), 0u);
}

TEST(Pool, ChunksOfAMemoryResource) {
    static Memory<1 << 20> memory;
    nbbs::buddy pages(memory.region(64));
    nbbs::memory_resource chunks(pages);
    {
        nbbs::pool_config config;
        config.chunk = 32;
        nbbs::pool<std::array<char, 64>> pool(config, &chunks);
        int count = 0;
        while (auto* object = pool.allocate()) {
            EXPECT_TRUE(memory.contains(object));
            count++;
        }
        EXPECT_GT(count, 12000);
        expect_throw<nbbs::bad_alloc>(NBBS_CODE_SOURCE_EMPTY, [&] { pool.make().reset(); });
    }
    expect_empty(pages);
    expect_throw<nbbs::error>(NBBS_CODE_SOURCE_EMPTY,
                              [] { nbbs::pool<int> none({}, std::pmr::null_memory_resource()); });
    std::pmr::memory_resource* const nobody = nullptr;
    expect_throw<nbbs::error>(NBBS_CODE_NULL, [&] { nbbs::pool<int> none({}, nobody); });
}

TEST(Pool, AllOfItInOnePlace) {
    nbbs::pool_config config;
    config.limit = 50;
    std::vector<std::byte> place(nbbs::pool<Counted>::bytes_for(config));
    ASSERT_GT(place.size(), 50 * sizeof(Counted));
    {
        nbbs::pool<Counted> pool(config, nbbs::storage{place.data(), place.size()});
        for (int number = 0; number < 50; number++) {
            auto* at = reinterpret_cast<std::byte*>(pool.allocate(number));
            EXPECT_TRUE(place.data() <= at && at < place.data() + place.size());
        }
        EXPECT_EQ(pool.allocate(1), nullptr);
    }
    EXPECT_EQ(Counted::alive, 0);
    expect_throw<nbbs::error>(NBBS_CODE_TOO_SHORT,
                              [&] { nbbs::pool<Counted> none(config, nbbs::storage{place.data(), 100}); });
    EXPECT_EQ(nbbs::pool<Counted>::bytes_for({}), 0u);
}

}  // namespace
