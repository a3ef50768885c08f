// Sessions of a server, on many threads. What sessions hold comes from memory that was set aside beforehand.
//
//     c++ -std=c++17 sessions.cpp $(pkg-config --cflags --libs nbbs) -pthread -o sessions

#include <nbbs.hpp>

#include <cstddef>
#include <iostream>
#include <string_view>
#include <thread>
#include <vector>

namespace {

// Units of 64 bytes: what nodes and short strings take.
alignas(4096) std::byte memory[1 << 20];

struct session {
    int user;
    std::pmr::vector<std::pmr::string> log;

    session(int of, std::pmr::memory_resource* from) : user(of), log(from) {}
    void note(std::string_view text) { log.emplace_back(text); }
};

// Opens and closes sessions; returns how many lines they logged.
std::size_t serve(int first, nbbs::pool<session>& sessions, std::pmr::memory_resource* strings) {
    std::size_t lines = 0;
    for (int user = first; user < first + 1000; user++) {
        const auto one = sessions.make(user, strings);
        one->note("a line that is too long to be kept in the string itself");
        one->note("bye");
        lines += one->log.size();
    }
    return lines;
}

}  // namespace

int main() {
    try {
        nbbs::buddy units(nbbs::region{memory, sizeof memory, 64});
        nbbs::memory_resource resource(units);
        {
            nbbs::pool_config config;
            config.chunk = 32;  // 32 sessions of 64 bytes at most: chunks of 2 KiB
            nbbs::pool<session> sessions(config, &resource);

            std::size_t lines[4] = {};
            std::vector<std::thread> threads;
            for (int number = 0; number < 4; number++) {
                threads.emplace_back([&, number] { lines[number] = serve(number * 1000, sessions, &resource); });
            }
            for (std::thread& thread : threads) {
                thread.join();
            }
            std::cout << "lines: " << lines[0] + lines[1] + lines[2] + lines[3] << '\n';

            // A run for something larger, which frees itself, and a mistake that is noticed.
            const nbbs::block buffer = nbbs::block::of_bytes(units, 100'000, 4096);
            std::cout << "buffer: " << buffer.units() << " units\n";
            session* closed = sessions.allocate(7, &resource);
            sessions.deallocate(closed).value();
            std::cout << "closed twice: " << nbbs_code_name(sessions.deallocate(closed).code()) << '\n';
        }
        std::cout << "units in use: " << units.stats().used_units << '\n';
    } catch (const std::exception& thrown) {
        std::cerr << thrown.what() << '\n';
        return 1;
    }
}
