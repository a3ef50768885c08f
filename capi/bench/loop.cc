// Objects made, written to and freed again, over and over, on each of some threads: what new and delete, mimalloc, a pool,
// its locals and a threaded pool take for a pair, together, and beside mimalloc. One object at a time; or HELD by all threads
// together, all of them made before the first is freed, as in the loop of fe-dagostino/lock-free, with a million.
//
//     capi/bench/loop.sh [PAIRS [HELD]]

#include <nbbs.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#ifdef WITH_MIMALLOC
#include <mimalloc.h>
#endif

namespace {

// Eight words, none of them written by the allocator's user but the first.
struct Object {
    Object() {}
    std::uint64_t words[8];
};

constexpr int kRounds = 9;

// The object is there, as far as the compiler knows.
inline void look_at(Object* object) { asm volatile("" : : "r"(object) : "memory"); }

// What a thread is to do: so many pairs, with so many objects held before the first is freed.
struct Work {
    long count, held;
};

template <class Make>
Object* made(Make& make, long number) {
    Object* const object = make();
    if (object == nullptr) {
        std::abort();
    }
    object->words[0] = static_cast<std::uint64_t>(number);
    look_at(object);
    return object;
}

template <class Make, class Free>
void pairs(Work work, Make make, Free free) {
    if (work.held == 1) {
        for (long number = 0; number < work.count; number++) {
            free(made(make, number));
        }
        return;
    }
    std::vector<Object*> held(static_cast<std::size_t>(work.held));
    for (long round = 0; round < work.count / work.held; round++) {
        for (Object*& object : held) {
            object = made(make, round);
        }
        for (Object* const object : held) {
            free(object);
        }
    }
}

struct Contender {
    const char* name;
    std::function<void(Work)> run;
    std::vector<double> figures{};
};

// ns a pair, all threads together.
double measure(const Contender& contender, int threads, Work all) {
    const long held = std::max(all.held / threads, 1L), rounds = std::max(all.count / threads / held, 1L);
    const Work each{rounds * held, held};
    const auto start = std::chrono::steady_clock::now();
    std::vector<std::thread> crew;
    for (int number = 0; number < threads; number++) {
        crew.emplace_back([&] { contender.run(each); });
    }
    for (std::thread& thread : crew) {
        thread.join();
    }
    const std::chrono::duration<double, std::nano> taken = std::chrono::steady_clock::now() - start;
    return taken.count() / static_cast<double>(each.count * threads);
}

double median(std::vector<double>& figures) {
    std::sort(figures.begin(), figures.end());
    return figures[figures.size() / 2];
}

nbbs_pool* c_pool() {
    nbbs_pool_config config{};
    config.size = sizeof(Object);
    config.align = alignof(Object);
    nbbs_pool* pool = nullptr;
    if (nbbs_pool_create(&config, nullptr, &pool, nullptr) != NBBS_CODE_OK) {
        std::abort();
    }
    return pool;
}

void by_c(nbbs_pool* pool, Work work) {
    nbbs_pool_local local;
    nbbs_pool_local_create(&local, pool, 0, nullptr);
    const auto make = [&] {
        void* object = nullptr;
        nbbs_pool_local_alloc(&local, &object, nullptr);
        return static_cast<Object*>(object);
    };
    pairs(work, make, [&](Object* object) { nbbs_pool_local_free(&local, object, nullptr); });
    nbbs_pool_local_destroy(&local);
}

}  // namespace

int main(int given, char** arguments) {
    const Work all{given > 1 ? std::atol(arguments[1]) : 4000000, given > 2 ? std::atol(arguments[2]) : 1};
    if (all.held < 1 || all.count < all.held) {
        std::fputs("loop [PAIRS [HELD]]: HELD is 1 to PAIRS\n", stderr);
        return 2;
    }
    nbbs::pool<Object> pool;
    nbbs::threaded_pool<Object> threaded;
    nbbs_pool* const c = c_pool();
    std::vector<Contender> contenders{
        {"new/delete", [](Work n) { pairs(n, [] { return new Object; }, [](Object* object) { delete object; }); }},
#ifdef WITH_MIMALLOC
        {"mimalloc",
         [](Work n) {
             pairs(n, [] { return static_cast<Object*>(mi_malloc(sizeof(Object))); }, [](Object* o) { mi_free(o); });
         }},
#endif
        {"pool", [&](Work n) { pairs(n, [&] { return pool.allocate(); }, [&](Object* o) { (void)pool.deallocate(o); }); }},
        {"pool::local",
         [&](Work n) {
             nbbs::pool<Object>::local local(pool);
             pairs(n, [&] { return local.allocate(); }, [&](Object* o) { (void)local.deallocate(o); });
         }},
        {"threaded_pool",
         [&](Work n) { pairs(n, [&] { return threaded.allocate(); }, [&](Object* o) { (void)threaded.deallocate(o); }); }},
        {"C local", [&](Work n) { by_c(c, n); }},
    };
    const std::string beside = contenders[1].name == std::string("mimalloc") ? "mimalloc" : "new/delete";
    std::printf("ns a pair, all threads together, which hold %ld objects, median of %d rounds in turn; in brackets: times as "
                "long as %s\n",
                all.held, kRounds, beside.c_str());
#ifndef WITH_MIMALLOC
    std::puts("mimalloc is not here (Debian: libmimalloc-dev)");
#endif
    std::printf("%-14s", "threads");
    for (const Contender& contender : contenders) {
        std::printf("%20s", contender.name);
    }
    std::puts("");
    for (const int threads : {1, 2, 4, 8, 16}) {
        for (int round = 0; round < kRounds; round++) {
            for (Contender& contender : contenders) {
                contender.figures.push_back(measure(contender, threads, all));
            }
        }
        double standard = 0;
        for (Contender& contender : contenders) {
            standard = contender.name == beside ? median(contender.figures) : standard;
        }
        std::printf("%-14d", threads);
        for (Contender& contender : contenders) {
            const double figure = median(contender.figures);
            std::printf("%12.1f (%4.2f)", figure, figure / standard);
            contender.figures.clear();
        }
        std::puts("");
        std::fflush(stdout);
    }
    nbbs_pool_destroy(c);
}
