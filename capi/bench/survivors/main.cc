// survivors [SECONDS [ROUNDS]]: 1 to 8 processes allocate and free blocks of 64 bytes to 4 KiB in shared memory; in half of the
// runs one is killed and replaced every 100 ms. Operations a second of all, and how long those of the survivors take.
//
// Contenders take turns; each figure is the median of the rounds. A time is that from one operation's end to the next one's.

#include "board.h"
#include "contenders.h"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <vector>

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

namespace {

constexpr int kHeld = 32;
constexpr milliseconds kLife{100}, kStuck{2000};

struct Figures {
    double rate, usual, rare, worst;
    uint64_t deaths;
    bool stuck;
};

[[noreturn]] void work(Contender &contender, Board &board, int number, int victim) {
    uint64_t held[kHeld] = {}, state = static_cast<uint64_t>(getpid()) * 0x9e3779b97f4a7c15 + 1;
    Board::Worker &own = board.worker[number];
    if (!contender.open(number)) _exit(1);
    uint64_t deaths = board.deaths.load(), before = ticks();
    while (!board.stop.load(std::memory_order_relaxed)) {
        if (number == 0 && board.deaths.load(std::memory_order_relaxed) != deaths) {
            deaths = board.deaths.load();
            contender.recover(victim);
            before = ticks();
        }
        state ^= state << 13, state ^= state >> 7, state ^= state << 17;
        uint64_t &one = held[state % kHeld];
        if (one != 0)
            contender.free(std::exchange(one, 0));
        else
            one = contender.alloc(size_t{64} << (state >> 32) % 7);
        const uint64_t now = ticks();
        own.times.add(now - before);
        before = now;
        own.done.fetch_add(1, std::memory_order_relaxed);
    }
    _exit(0);
}

// Whether a process that has been told to stop does. If not, it is killed.
bool ends(pid_t child) {
    const auto until = Clock::now() + kStuck;
    while (waitpid(child, nullptr, WNOHANG) == 0) {
        if (Clock::now() > until) {
            kill(child, SIGKILL);
            waitpid(child, nullptr, 0);
            return false;
        }
        std::this_thread::sleep_for(milliseconds(1));
    }
    return true;
}

Figures run(Contender &contender, int processes, bool deaths, milliseconds length) {
    Board *board = Board::create();
    if (board == nullptr) abort();
    const int victim = processes - 1;
    std::vector<pid_t> children(static_cast<size_t>(processes));
    const auto start = [&](int number) {
        const pid_t child = fork();
        if (child == 0) work(contender, *board, number, victim);
        children[static_cast<size_t>(number)] = child;
    };
    const auto begun = Clock::now();
    const uint64_t first = ticks();
    for (int number = 0; number < processes; number++) start(number);
    const auto survivors_did = [&] {
        uint64_t sum = 0;
        for (int number = 0; number < std::max(victim, 1); number++) sum += board->worker[number].done.load();
        return sum;
    };
    uint64_t last = 0;
    auto moved = begun;
    bool stuck = false;
    for (auto next = begun + kLife; next < begun + length && !stuck; next += kLife) {
        std::this_thread::sleep_until(next);
        if (deaths) {
            kill(children[static_cast<size_t>(victim)], SIGKILL);
            waitpid(children[static_cast<size_t>(victim)], nullptr, 0);
            board->deaths++;
            start(victim);
        }
        if (const uint64_t now = survivors_did(); now != last) last = now, moved = Clock::now();
        stuck = Clock::now() - moved > kStuck;
    }
    std::this_thread::sleep_until(begun + length);
    const double seconds = std::chrono::duration<double>(Clock::now() - begun).count();
    const double tick = seconds * 1e9 / static_cast<double>(ticks() - first);
    board->stop = true;
    for (const pid_t child : children) stuck |= !ends(child);
    Times times{};
    uint64_t done = 0;
    for (int number = 0; number < processes; number++) {
        done += board->worker[number].done;
        if (number < std::max(victim, 1)) times.add(board->worker[number].times);
    }
    const Figures figures = {static_cast<double>(done) / seconds / 1e6, times.all_but(0.01) * tick,
                             times.all_but(0.001) * tick, static_cast<double>(times.worst) * tick,
                             board->deaths.load(), stuck};
    munmap(board, sizeof(Board));
    return figures;
}

double median(const std::vector<Figures> &rounds, double Figures::*of) {
    std::vector<double> all;
    for (const Figures &each : rounds) all.push_back(each.*of);
    std::sort(all.begin(), all.end());
    return all[all.size() / 2];
}

}  // namespace

int main(int argc, char **argv) {
    const milliseconds length(static_cast<int>(1000 * (argc > 1 ? atof(argv[1]) : 1)));
    const int rounds = argc > 2 ? atoi(argv[2]) : 5;
    if (length < kLife || rounds < 1) {
        fprintf(stderr, "survivors [SECONDS [ROUNDS]]: 0.1 seconds and one round at least\n");
        return 2;
    }
    struct Of {
        const char *name;
        std::function<std::unique_ptr<Contender>()> make;
    };
    const std::vector<Of> contenders = {
        {"nbbs-shared", [] { return std::make_unique<Nbbs>(); }},
        {"robust mutex", [] { return std::make_unique<RobustMutex>(); }},
#ifdef WITH_BOOST
        {"boost", [] { return std::make_unique<Boost>(); }},
#endif
    };
    printf("%-13s %9s %6s %12s %10s %10s %10s\n", "", "processes", "deaths", "million op/s", "99 %, ns", "99.9 %, ns",
           "worst, us");
    for (const int processes : {1, 2, 4, 8}) {
        std::map<std::pair<size_t, bool>, std::vector<Figures>> seen;
        for (int round = 0; round < rounds; round++) {
            for (size_t which = 0; which < contenders.size(); which++) {
                for (const bool deaths : {false, true}) {
                    // Of one process nobody would survive.
                    if (deaths && processes == 1) continue;
                    const auto made = contenders[which].make();
                    seen[{which, deaths}].push_back(run(*made, processes, deaths, length));
                }
            }
        }
        for (const auto &[of, all] : seen) {
            const uint64_t deaths = std::max_element(all.begin(), all.end(), [](auto &one, auto &other) {
                                        return one.deaths < other.deaths;
                                    })->deaths;
            const auto stuck = std::count_if(all.begin(), all.end(), [](auto &each) { return each.stuck; });
            printf("%-13s %9d %6llu %12.2f %10.0f %10.0f %10.0f", contenders[of.first].name, processes,
                   static_cast<unsigned long long>(deaths), median(all, &Figures::rate), median(all, &Figures::usual),
                   median(all, &Figures::rare), median(all, &Figures::worst) / 1000);
            if (stuck != 0) printf("  stuck in %td of %zu rounds", stuck, all.size());
            printf("\n");
        }
        fflush(stdout);
    }
}
