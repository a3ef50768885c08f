// Objects of one type.

#include "support.hpp"

#include <array>
#include <set>
#include <string>

namespace {

// Counts how many there are of it.
struct Counted {
    static inline int alive = 0;
    int number;
    std::string text;
    explicit Counted(int of = 0, std::string with = {}) : number(of), text(std::move(with)) {
        if (number < 0) {
            throw number;
        }
        alive++;
    }
    Counted(const Counted&) = delete;
    ~Counted() { alive--; }
};

TEST(Arena, MakesAndDestroysObjects) {
    nbbs::arena<Counted> arena;
    Counted* one = arena.allocate(7, "seven");
    ASSERT_NE(one, nullptr);
    EXPECT_EQ(one->text, "seven");
    EXPECT_EQ(arena.allocate()->number, 0);
    EXPECT_EQ(arena.length(), 2u);
    EXPECT_GE(arena.capacity(), 2u);
    EXPECT_EQ(Counted::alive, 2);
    EXPECT_TRUE(arena.deallocate(one));
    EXPECT_EQ(Counted::alive, 1);
    EXPECT_TRUE(arena.deallocate(nullptr));
    EXPECT_EQ(arena.length(), 1u);
    EXPECT_EQ(arena.type_size(), sizeof(Counted));
    EXPECT_GT(arena.max_size(), arena.capacity());
}

TEST(Arena, MakesAggregates) {
    struct point {
        int x, y;
    };
    nbbs::arena<point> arena;
    point* one = arena.allocate(3, 4);
    ASSERT_NE(one, nullptr);
    EXPECT_EQ(one->x + one->y, 7);
    EXPECT_EQ(arena.make(5, 6)->y, 6);
}

TEST(Arena, DestroysWhatIsLeft) {
    {
        nbbs::arena<Counted> arena;
        for (int number = 0; number < 3000; number++) {
            static_cast<void>(arena.allocate(number, std::string(30, 'x')));
        }
        EXPECT_EQ(Counted::alive, 3000);
        const std::size_t room = arena.capacity();
        arena.clear();
        EXPECT_EQ(Counted::alive, 0);
        EXPECT_EQ(arena.length(), 0u);
        EXPECT_EQ(arena.capacity(), room);
        EXPECT_EQ(arena.shrink(), room);
        EXPECT_EQ(arena.capacity(), 0u);
        EXPECT_NE(arena.allocate(1), nullptr);
    }
    EXPECT_EQ(Counted::alive, 0);
}

TEST(Arena, AThrowingConstructorLeavesItsSlotFree) {
    nbbs::arena_config one;
    one.limit = 1;
    nbbs::arena<Counted> arena(one);
    EXPECT_THROW(static_cast<void>(arena.allocate(-1)), int);
    EXPECT_THROW(static_cast<void>(arena.make(-2)), int);
    EXPECT_EQ(arena.length(), 0u);
    EXPECT_EQ(Counted::alive, 0);
    EXPECT_NE(arena.allocate(1), nullptr);
}

TEST(Arena, WrongFreesRunNoDestructor) {
    Misuse misuse;
    nbbs::arena<Counted> arena, other;
    EXPECT_TRUE(arena.set_hook(Misuse::note, &misuse));
    Counted* object = arena.allocate(1);
    Counted* foreign = other.allocate(2);
    alignas(Counted) std::byte nothing[sizeof(Counted)];
    auto* inside = reinterpret_cast<Counted*>(reinterpret_cast<std::byte*>(object) + 8);
    EXPECT_EQ(arena.deallocate(foreign).code(), NBBS_CODE_FOREIGN_ADDRESS);
    EXPECT_EQ(arena.deallocate(reinterpret_cast<Counted*>(nothing)).code(), NBBS_CODE_FOREIGN_ADDRESS);
    EXPECT_EQ(arena.deallocate(inside).code(), NBBS_CODE_INSIDE_UNIT);
    EXPECT_EQ(Counted::alive, 2);
    EXPECT_TRUE(arena.deallocate(object));
    EXPECT_EQ(arena.deallocate(object).code(), NBBS_CODE_NO_OBJECT);
    EXPECT_EQ(Counted::alive, 1);
    EXPECT_EQ(misuse.seen.size(), 4u);
}

TEST(Arena, KnowsItsObjects) {
    nbbs::arena<Counted> arena;
    Counted* object = arena.allocate(1);
    EXPECT_TRUE(arena.is_valid(object));
    EXPECT_TRUE(arena.unsafe_is_valid(object));
    EXPECT_FALSE(arena.is_valid(object + 1));
    EXPECT_FALSE(arena.is_valid(nullptr));
    EXPECT_FALSE(arena.is_valid(reinterpret_cast<Counted*>(&arena)));
    EXPECT_FALSE(arena.is_valid(reinterpret_cast<Counted*>(reinterpret_cast<std::byte*>(object) + 1)));
    EXPECT_TRUE(arena.deallocate(object));
    EXPECT_FALSE(arena.is_valid(object));
}

TEST(Arena, UnsafeVariants) {
    nbbs::arena<Counted> arena;
    Counted* object = arena.unsafe_allocate(5);
    EXPECT_EQ(object->number, 5);
    EXPECT_TRUE(arena.unsafe_deallocate(object));
    EXPECT_TRUE(arena.unsafe_deallocate(nullptr));
    EXPECT_EQ(Counted::alive, 0);
    EXPECT_EQ(arena.length(), 0u);
}

TEST(Arena, KeepsItsLimitAndReservation) {
    nbbs::arena_config config;
    config.limit = 100;
    config.reserve = 40;
    config.chunk = 16;
    nbbs::arena<int> arena(config);
    EXPECT_EQ(arena.limit(), 100u);
    EXPECT_GE(arena.capacity(), 40u);
    EXPECT_LT(arena.capacity(), 100u);
    std::set<int*> places;
    for (int number = 0; number < 100; number++) {
        int* place = arena.allocate(number);
        ASSERT_NE(place, nullptr);
        EXPECT_TRUE(places.insert(place).second);
    }
    EXPECT_EQ(arena.allocate(1), nullptr);
    expect_throw<nbbs::bad_alloc>(NBBS_CODE_FULL, [&] { arena.make(1).reset(); });
    for (int* place : places) {
        EXPECT_TRUE(arena.deallocate(place));
    }
    arena.shrink();
    EXPECT_GE(arena.capacity(), 40u);
    EXPECT_LT(arena.capacity(), 100u);
    arena.reserve(80);
    EXPECT_GE(arena.capacity(), 80u);
    EXPECT_EQ(arena.try_reserve(101).code(), NBBS_CODE_FULL);

    config.chunk = std::size_t{1} << 25;
    expect_throw<nbbs::error>(NBBS_CODE_SETTING, [&] { nbbs::arena<int> none(config); });
}

TEST(Arena, GrowsAheadOfDemand) {
    nbbs::arena_config config;
    config.chunk = 256;
    config.ahead = 100;
    nbbs::arena<int> arena(config);
    for (int number = 0; number < 100; number++) {
        static_cast<void>(arena.allocate(number));
    }
    EXPECT_EQ(arena.capacity(), 256u);
    for (int number = 0; number < 100; number++) {
        static_cast<void>(arena.allocate(number));
    }
    EXPECT_EQ(arena.capacity(), 512u);
}

TEST(Arena, ObjectsThatAreOverAligned) {
    struct alignas(256) Wide {
        std::array<char, 300> bytes;
    };
    nbbs::arena<Wide> arena;
    for (int number = 0; number < 50; number++) {
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(arena.allocate()) % 256, 0u);
    }
}

TEST(Arena, BoxesFreeThemselves) {
    nbbs::arena<Counted> arena;
    nbbs::arena<Counted>::box kept = arena.make(1, "kept");
    {
        const auto gone = arena.make(2);
        EXPECT_EQ(arena.length(), 2u);
    }
    EXPECT_EQ(arena.length(), 1u);
    nbbs::arena<Counted> moved(std::move(arena));
    EXPECT_EQ(kept->text, "kept");
    kept.reset();
    EXPECT_EQ(moved.length(), 0u);
    EXPECT_EQ(arena.length(), 0u);
    EXPECT_EQ(arena.allocate(3), nullptr);
    Counted* old = moved.allocate(4);
    EXPECT_TRUE(moved.is_valid(old));
    moved = nbbs::arena<Counted>();
    EXPECT_EQ(Counted::alive, 0);
}

TEST(Arena, VisitsAndFreesOnTheWay) {
    nbbs::arena<Counted> arena;
    for (int number = 0; number < 200; number++) {
        static_cast<void>(arena.allocate(number));
    }
    int sum = 0;
    arena.each([&](Counted& object) {
        sum += object.number;
        if (object.number % 2 == 0) {
            EXPECT_TRUE(arena.deallocate(&object));
        }
    });
    EXPECT_EQ(sum, 199 * 100);
    EXPECT_EQ(arena.length(), 100u);
    EXPECT_THROW(arena.each([](Counted& object) { throw object.number; }), int);
    EXPECT_EQ(Counted::alive, 100);
}

// Owns the next of its kind, in the same arena.
struct Link {
    static inline int alive = 0;
    nbbs::arena<Link>* home;
    Link* next;
    Link(nbbs::arena<Link>* of, Link* then) : home(of), next(then) { alive++; }
    ~Link() {
        alive--;
        // Refused if `clear` came to it first.
        static_cast<void>(home->deallocate(next));
    }
};

TEST(Arena, ClearsObjectsThatOwnOthers) {
    nbbs::arena<Link> arena;
    for (int chain = 0; chain < 10; chain++) {
        Link* first = nullptr;
        for (int length = 0; length < 30; length++) {
            first = arena.allocate(&arena, first);
        }
    }
    EXPECT_EQ(Link::alive, 300);
    arena.clear();
    EXPECT_EQ(Link::alive, 0);
    EXPECT_EQ(arena.length(), 0u);
}

TEST(Arena, ChunksOfAMemoryResource) {
    static Memory<1 << 20> memory;
    nbbs::buddy pages(memory.region(64));
    nbbs::memory_resource chunks(pages);
    {
        nbbs::arena_config config;
        config.chunk = 32;
        nbbs::arena<std::array<char, 64>> arena(config, &chunks);
        int count = 0;
        while (auto* object = arena.allocate()) {
            EXPECT_TRUE(memory.contains(object));
            count++;
        }
        EXPECT_GT(count, 12000);
        expect_throw<nbbs::bad_alloc>(NBBS_CODE_SOURCE_EMPTY, [&] { arena.make().reset(); });
    }
    expect_empty(pages);
    expect_throw<nbbs::error>(NBBS_CODE_SOURCE_EMPTY,
                              [] { nbbs::arena<int> none({}, std::pmr::null_memory_resource()); });
}

TEST(Arena, AllOfItInOnePlace) {
    nbbs::arena_config config;
    config.limit = 50;
    std::vector<std::byte> place(nbbs::arena<Counted>::bytes_for(config));
    ASSERT_GT(place.size(), 50 * sizeof(Counted));
    {
        nbbs::arena<Counted> arena(config, nbbs::storage{place.data(), place.size()});
        for (int number = 0; number < 50; number++) {
            auto* at = reinterpret_cast<std::byte*>(arena.allocate(number));
            EXPECT_TRUE(place.data() <= at && at < place.data() + place.size());
        }
        EXPECT_EQ(arena.allocate(1), nullptr);
    }
    EXPECT_EQ(Counted::alive, 0);
    expect_throw<nbbs::error>(NBBS_CODE_TOO_SHORT,
                              [&] { nbbs::arena<Counted> none(config, nbbs::storage{place.data(), 100}); });
    EXPECT_EQ(nbbs::arena<Counted>::bytes_for({}), 0u);
}

}  // namespace
