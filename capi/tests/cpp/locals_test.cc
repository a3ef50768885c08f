// Locals of a pool, and threaded pools, in which each thread has one.

#include "support.hpp"

#include <array>
#include <memory>
#include <set>
#include <string>

namespace {

// The same of a local and of a threaded pool.
template <class Place>
void expect_to_work(Place& place) {
    Counted* one = place.allocate(7, "seven");
    ASSERT_NE(one, nullptr);
    EXPECT_EQ(one->text, "seven");
    auto two = place.try_allocate(8);
    ASSERT_TRUE(two);
    EXPECT_EQ((*two)->number, 8);
    EXPECT_EQ(place.kept(), 62u);
    EXPECT_EQ(Counted::alive, 2);
    EXPECT_TRUE(place.deallocate(one));
    EXPECT_EQ(place.kept(), 63u);
    EXPECT_EQ(place.deallocate(one).code(), NBBS_CODE_NO_OBJECT);
    EXPECT_EQ(place.allocate(9), one) << "freed last, allocated first";
    EXPECT_TRUE(place.deallocate(one));
    EXPECT_TRUE(place.deallocate(nullptr));
    EXPECT_THROW(static_cast<void>(place.allocate(-1)), int);
    EXPECT_THROW(static_cast<void>(place.try_allocate(-1)), int);
    EXPECT_TRUE(place.deallocate(*two));
    EXPECT_EQ(Counted::alive, 0);
    place.flush();
    EXPECT_EQ(place.kept(), 0u);
}

// Wrong frees of a local and of a threaded pool: none runs a destructor, and all are reported.
template <class Place>
void expect_to_refuse(Place& place, const Misuse& misuse, Counted* foreign) {
    Counted* object = place.allocate(1);
    // So that it knows the chunk.
    EXPECT_TRUE(place.deallocate(place.allocate(2)));
    alignas(Counted) std::byte nothing[sizeof(Counted)];
    auto* inside = reinterpret_cast<Counted*>(reinterpret_cast<std::byte*>(object) + 8);
    EXPECT_EQ(place.deallocate(foreign).code(), NBBS_CODE_FOREIGN_ADDRESS);
    EXPECT_EQ(place.deallocate(reinterpret_cast<Counted*>(nothing)).code(), NBBS_CODE_FOREIGN_ADDRESS);
    EXPECT_EQ(place.deallocate(inside).code(), NBBS_CODE_INSIDE_UNIT);
    EXPECT_EQ(place.deallocate(object + 1).code(), NBBS_CODE_NO_OBJECT) << "kept";
    EXPECT_EQ(Counted::alive, 2);
    EXPECT_TRUE(place.deallocate(object));
    EXPECT_EQ(place.deallocate(object).code(), NBBS_CODE_NO_OBJECT);
    std::thread([&] { EXPECT_EQ(place.deallocate(object).code(), NBBS_CODE_NO_OBJECT); }).join();
    EXPECT_EQ(Counted::alive, 1);
    EXPECT_EQ(misuse.seen.size(), 6u);
}

TEST(Local, MakesAndDestroysObjects) {
    nbbs::pool<Counted> pool;
    nbbs::pool<Counted>::local local(pool);
    expect_to_work(local);
    EXPECT_EQ(pool.length(), 0u);
}

TEST(Local, RefusesWrongFrees) {
    Misuse misuse;
    nbbs::pool<Counted> pool, other;
    EXPECT_TRUE(pool.set_hook(Misuse::note, &misuse));
    Counted* foreign = other.allocate(0);
    nbbs::pool<Counted>::local local(pool);
    expect_to_refuse(local, misuse, foreign);
}

// Gives chunks out at its own places, in an order that is told.
class Places : public std::pmr::memory_resource {
public:
    explicit Places(std::vector<std::size_t> order) : order_(std::move(order)) {}
    bool is_at(const void* address, std::size_t place) const { return address == places_[place]; }

private:
    void* do_allocate(std::size_t bytes, std::size_t align) override {
        if (align < 2048) {
            return std::pmr::new_delete_resource()->allocate(bytes, align);
        }
        return places_[order_.at(given_++)];
    }
    void do_deallocate(void* block, std::size_t bytes, std::size_t align) override {
        if (align < 2048) {
            std::pmr::new_delete_resource()->deallocate(block, bytes, align);
        }
    }
    bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override { return this == &other; }

    alignas(2048) std::byte places_[3][2048];
    std::vector<std::size_t> order_;
    std::size_t given_ = 0;
};

// A local that knows a chunk must not take what lies there later, or elsewhere, for what was there.
TEST(Local, ForgetsChunksThatHaveGone) {
    struct Object {
        std::uint64_t words[4];
    };
    Places places({0, 1, 0});
    nbbs::pool_config config;
    config.chunk = 64;
    nbbs::pool<Object> pool(config, &places);
    nbbs::pool<Object>::local local(pool);
    Object* old = local.allocate();
    EXPECT_TRUE(places.is_at(old, 0));
    EXPECT_TRUE(local.deallocate(old)) << "from here on it knows the chunk";
    local.flush();
    EXPECT_EQ(pool.shrink(), 64u);
    Object* here = local.allocate();
    EXPECT_TRUE(places.is_at(here, 1)) << "the same slots, elsewhere";
    EXPECT_EQ(local.deallocate(old).code(), NBBS_CODE_FOREIGN_ADDRESS);
    std::set<Object*> all{here};
    for (int count = 0; count < 64; count++) {
        all.insert(local.allocate());
    }
    EXPECT_EQ(all.size(), 65u);
    EXPECT_EQ(all.count(old), 1u) << "others, at the old place";
    for (Object* object : all) {
        EXPECT_TRUE(local.deallocate(object));
    }
    local.flush();
    EXPECT_EQ(pool.length(), 0u);
    pool.shrink();
    EXPECT_EQ(pool.capacity(), 0u) << "each went to its own chunk";
}

TEST(Local, KeepsNoMoreThanItMay) {
    nbbs::pool<int> pool;
    nbbs::pool<int>::local local(pool, 5);
    std::vector<int*> objects;
    for (int number = 0; number < 40; number++) {
        objects.push_back(local.allocate(number));
    }
    for (int* object : objects) {
        EXPECT_TRUE(local.deallocate(object));
        EXPECT_LE(local.kept(), 5u);
    }
}

// In a chunk that the local knows, whatever the size of an object.
template <std::size_t Size>
void expect_beginnings_to_be_known() {
    struct Object {
        char bytes[Size];
    };
    nbbs::pool<Object> pool;
    typename nbbs::pool<Object>::local local(pool);
    Object *const one = local.allocate(), *const other = local.allocate();
    ASSERT_TRUE(local.deallocate(one));
    for (std::size_t offset = 1; offset < Size; offset++) {
        EXPECT_EQ(local.deallocate(reinterpret_cast<Object*>(other->bytes + offset)).code(), NBBS_CODE_INSIDE_UNIT)
            << offset << " of " << Size;
    }
    EXPECT_EQ(pool.length(), 1u);
    EXPECT_TRUE(local.deallocate(other));
    EXPECT_FALSE(local.deallocate(other));
}

TEST(Local, KnowsWhereObjectsBegin) {
    expect_beginnings_to_be_known<1>();
    expect_beginnings_to_be_known<3>();
    expect_beginnings_to_be_known<24>();
    expect_beginnings_to_be_known<64>();
    expect_beginnings_to_be_known<100>();
}

TEST(Local, MovesWithWhatItKeeps) {
    nbbs::pool<int> pool;
    nbbs::pool<int>::local first(pool), second(pool, 8);
    int* object = first.allocate(1);
    nbbs::pool<int>::local third(std::move(first));
    EXPECT_EQ(first.kept(), 0u);
    EXPECT_EQ(first.allocate(2), nullptr);
    EXPECT_EQ(first.deallocate(object).code(), NBBS_CODE_NULL);
    EXPECT_EQ(third.kept(), 63u);
    EXPECT_TRUE(third.deallocate(object));
    EXPECT_TRUE(second.deallocate(second.allocate(3)));
    second = std::move(third);
    auto& same = second;
    second = std::move(same);
    EXPECT_EQ(second.kept(), 64u);
    nbbs::pool<int> moved(std::move(pool));
    EXPECT_TRUE(second.deallocate(second.allocate(4)));
    second.flush();
    EXPECT_GT(moved.shrink(), 0u);
    EXPECT_EQ(moved.capacity(), 0u) << "no slot is lost";
    expect_throw<nbbs::error>(NBBS_CODE_SETTING, [&] { nbbs::pool<int>::local(moved, 129).flush(); });
}

TEST(ThreadedPool, MakesAndDestroysObjects) {
    nbbs::threaded_pool<Counted> pool;
    expect_to_work(pool);
    EXPECT_EQ(pool.length(), 0u);
    EXPECT_GT(pool.shrink(), 0u);
    EXPECT_EQ(pool.capacity(), 0u);
}

TEST(ThreadedPool, RefusesWrongFrees) {
    Misuse misuse;
    nbbs::threaded_pool<Counted> pool, other;
    EXPECT_TRUE(pool.set_hook(Misuse::note, &misuse));
    expect_to_refuse(pool, misuse, other.allocate(0));
}

TEST(ThreadedPool, KnowsAndVisitsItsObjectsAlone) {
    nbbs::threaded_pool<Counted> pool;
    std::set<Counted*> made, seen;
    for (int number = 0; number < 100; number++) {
        made.insert(pool.allocate(number));
    }
    for (auto at = made.begin(); at != made.end();) {
        Counted* object = *at;
        if (object->number % 3 == 0) {
            EXPECT_TRUE(pool.deallocate(object));
            EXPECT_FALSE(pool.is_valid(object));
            at = made.erase(at);
        } else {
            EXPECT_TRUE(pool.is_valid(object));
            ++at;
        }
    }
    pool.each([&](Counted& object) { seen.insert(&object); });
    EXPECT_EQ(seen, made);
    EXPECT_EQ(pool.length(), made.size());
    pool.clear();
    EXPECT_EQ(Counted::alive, 0);
    EXPECT_NE(pool.allocate(1), nullptr);
}

TEST(ThreadedPool, DestroysWhatIsLeftAndNothingElse) {
    {
        nbbs::threaded_pool<Counted> pool;
        for (int number = 0; number < 500; number++) {
            static_cast<void>(pool.allocate(number, std::string(30, 'x')));
        }
        EXPECT_TRUE(pool.deallocate(pool.allocate(1)));
        EXPECT_EQ(Counted::alive, 500);
    }
    EXPECT_EQ(Counted::alive, 0);
}

TEST(ThreadedPool, BoxesFreeThemselves) {
    nbbs::threaded_pool<Counted> pool;
    nbbs::threaded_pool<Counted>::box kept = pool.make(1, "kept");
    EXPECT_THROW(pool.make(-1).reset(), int);
    std::thread([&pool] { EXPECT_EQ(pool.make(2)->number, 2); }).join();
    EXPECT_EQ(pool.length(), 1u);
    nbbs::threaded_pool<Counted> moved(std::move(pool));
    EXPECT_EQ(kept->text, "kept");
    kept.reset();
    EXPECT_EQ(Counted::alive, 0);
    EXPECT_EQ(pool.length(), 0u);
    EXPECT_EQ(pool.kept(), 0u);
    EXPECT_EQ(pool.allocate(3), nullptr);
    EXPECT_EQ(pool.try_allocate(3).code(), NBBS_CODE_NULL);
    const std::size_t dropped = nbbs::dropped_frees();
    auto box = moved.make(5);
    EXPECT_TRUE(moved.deallocate(box.get()));
    box.reset();
    EXPECT_EQ(nbbs::dropped_frees() - dropped, 1u);
    Counted* old = moved.allocate(4);
    EXPECT_EQ(pool.deallocate(old).code(), NBBS_CODE_NULL);
    EXPECT_GT(moved.kept(), 0u);
    pool = std::move(moved);
    EXPECT_TRUE(pool.deallocate(old));
    moved = nbbs::threaded_pool<Counted>();
    EXPECT_EQ(Counted::alive, 0);
}

// More pools than a thread has near.
TEST(ThreadedPool, ManyAtATime) {
    std::vector<nbbs::threaded_pool<Counted>> pools(40);
    std::vector<Counted*> objects;
    for (int round = 0; round < 3; round++) {
        for (std::size_t at = 0; at < pools.size(); at++) {
            objects.push_back(pools[at].allocate(static_cast<int>(at)));
            EXPECT_EQ(pools[at].kept(), 63u - static_cast<std::size_t>(round));
        }
    }
    for (std::size_t at = 0; at < objects.size(); at++) {
        EXPECT_EQ(pools[(at + 1) % pools.size()].deallocate(objects[at]).code(), NBBS_CODE_FOREIGN_ADDRESS);
        EXPECT_TRUE(pools[at % pools.size()].deallocate(objects[at]));
    }
    pools.erase(pools.begin() + 3, pools.begin() + 30);
    for (auto& pool : pools) {
        EXPECT_EQ(pool.length(), 0u);
        EXPECT_NE(pool.allocate(1), nullptr);
    }
}

TEST(ThreadedPool, TheLimitAndWhatOthersKeep) {
    nbbs::pool_config config;
    config.limit = 640;
    nbbs::threaded_pool<int> pool(config);
    std::vector<int*> objects;
    std::thread([&] {
        while (int* object = pool.allocate(1)) {
            objects.push_back(object);
        }
        for (int* object : objects) {
            EXPECT_TRUE(pool.deallocate(object));
        }
        EXPECT_LE(pool.kept(), 10u) << "a 64th of the limit";
        EXPECT_GT(pool.kept(), 0u);
        EXPECT_EQ(pool.stats().kept, pool.kept());
        const std::size_t kept = pool.kept();
        std::thread([&] {
            std::size_t got = 0;
            while (pool.allocate(2) != nullptr) {
                got++;
            }
            EXPECT_EQ(got, 640 - kept);
            EXPECT_EQ(pool.try_allocate(2).code(), NBBS_CODE_FULL);
            expect_throw<nbbs::bad_alloc>(NBBS_CODE_FULL, [&] { pool.make(2).reset(); });
        }).join();
        for (std::size_t count = 0; count < kept; count++) {
            EXPECT_NE(pool.allocate(3), nullptr);
        }
    }).join();
    EXPECT_EQ(objects.size(), 640u);
    EXPECT_EQ(pool.length(), 640u);
    EXPECT_EQ(pool.limit(), 640u);
}

TEST(ThreadedPool, OfAMemoryResourceAndInOnePlace) {
    static Memory<1 << 20> memory;
    nbbs::buddy pages(memory.region(64));
    nbbs::memory_resource chunks(pages);
    {
        nbbs::threaded_pool<std::array<char, 64>> pool({}, &chunks);
        std::size_t count = 0;
        nbbs::result<std::array<char, 64>*> got(nullptr);
        while ((got = pool.try_allocate())) {
            EXPECT_TRUE(memory.contains(*got));
            count++;
        }
        EXPECT_GT(count, 8000u);
        EXPECT_EQ(got.code(), NBBS_CODE_SOURCE_EMPTY);
        EXPECT_GT(got.error().value(), 0u);
    }
    expect_empty(pages);

    nbbs::pool_config config;
    config.limit = 50;
    std::vector<std::byte> place(nbbs::threaded_pool<Counted>::bytes_for(config));
    nbbs::threaded_pool<Counted> pool(config, nbbs::storage{place.data(), place.size()}, 3);
    for (int number = 0; number < 50; number++) {
        EXPECT_NE(pool.allocate(number), nullptr);
        EXPECT_LT(pool.kept(), 3u);
    }
    EXPECT_EQ(pool.allocate(1), nullptr);
    expect_throw<nbbs::error>(NBBS_CODE_SETTING, [] { nbbs::threaded_pool<int> none({}, 129); });
}

using Owner = Link<nbbs::threaded_pool>;

TEST(ThreadedPool, DestructorsFreeOthers) {
    {
        nbbs::threaded_pool<Owner> pool;
        for (int chain = 0; chain < 10; chain++) {
            Owner* first = nullptr;
            for (int length = 0; length < 100; length++) {
                first = pool.allocate(&pool, first);
            }
            if (chain % 2 == 0) {
                EXPECT_TRUE(pool.deallocate(first));
            }
        }
        EXPECT_EQ(Owner::alive, 500);
        EXPECT_EQ(pool.length(), 500u);
        EXPECT_LE(pool.kept(), 128u);
    }
    EXPECT_EQ(Owner::alive, 0);
}

}  // namespace
