// The baseline: a buddy allocator with free lists and a table of owners in shared memory, under a robust mutex. Whoever finds
// that the mutex's holder has died builds the lists anew from the table, of which every entry is one store.
#pragma once

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <pthread.h>

class Robust {
public:
    static constexpr uint32_t kUnits = 1 << 16, kUnitBytes = 64, kOrders = 17, kNone = ~0u;

    void create() {
        pthread_mutexattr_t how;
        pthread_mutexattr_init(&how);
        pthread_mutexattr_setpshared(&how, PTHREAD_PROCESS_SHARED);
        pthread_mutexattr_setrobust(&how, PTHREAD_MUTEX_ROBUST);
        pthread_mutex_init(&mutex_, &how);
        table_[0] = entry(kOrders - 1, kFree);
        rebuild();
    }

    // A block's first unit; kNone: there is none.
    uint32_t alloc(size_t bytes, uint8_t owner) {
        uint32_t order = 0;
        while ((size_t{kUnitBytes} << order) < bytes) order++;
        lock();
        uint32_t from = order;
        while (from < kOrders && first_[from] == kNone) from++;
        uint32_t unit = kNone;
        if (from < kOrders) {
            unit = first_[from];
            unlink(unit, from);
            while (from > order) {
                from--;
                table_[unit + (1u << from)] = entry(from, kFree);
                table_[unit] = entry(from, kFree);
                link(unit + (1u << from), from);
            }
            table_[unit] = entry(order, owner);
        }
        pthread_mutex_unlock(&mutex_);
        return unit;
    }

    void free(uint32_t unit) {
        lock();
        merge(unit);
        pthread_mutex_unlock(&mutex_);
    }

    // Frees what an owner held that is no more.
    void recover(uint8_t owner) {
        lock();
        for (uint32_t unit = 0; unit < kUnits;) {
            const uint32_t next = unit + (1u << order_of(table_[unit]));
            if (owner_of(table_[unit]) == owner) merge(unit);
            unit = next;
        }
        pthread_mutex_unlock(&mutex_);
    }

private:
    static constexpr uint8_t kFree = 0;
    static uint16_t entry(uint32_t order, uint8_t owner) { return static_cast<uint16_t>(order << 8 | owner); }
    static uint32_t order_of(uint16_t entry) { return entry >> 8; }
    static uint8_t owner_of(uint16_t entry) { return static_cast<uint8_t>(entry); }

    void lock() {
        if (pthread_mutex_lock(&mutex_) == EOWNERDEAD) {
            rebuild();
            pthread_mutex_consistent(&mutex_);
        }
    }
    void merge(uint32_t unit) {
        uint32_t order = order_of(table_[unit]);
        while (order + 1 < kOrders) {
            const uint32_t buddy = unit ^ (1u << order);
            if (table_[buddy] != entry(order, kFree)) break;
            unlink(buddy, order);
            unit &= ~(1u << order);
            order++;
            table_[unit] = entry(order, kFree);
        }
        table_[unit] = entry(order, kFree);
        link(unit, order);
    }
    void link(uint32_t unit, uint32_t order) {
        before_[unit] = kNone;
        next_[unit] = first_[order];
        if (next_[unit] != kNone) before_[next_[unit]] = unit;
        first_[order] = unit;
    }
    void unlink(uint32_t unit, uint32_t order) {
        (before_[unit] == kNone ? first_[order] : next_[before_[unit]]) = next_[unit];
        if (next_[unit] != kNone) before_[next_[unit]] = before_[unit];
    }
    void rebuild() {
        memset(first_, 0xff, sizeof first_);
        for (uint32_t unit = 0; unit < kUnits; unit += 1u << order_of(table_[unit])) {
            if (owner_of(table_[unit]) == kFree) link(unit, order_of(table_[unit]));
        }
    }

    pthread_mutex_t mutex_;
    uint32_t first_[kOrders];
    uint32_t next_[kUnits], before_[kUnits];
    uint16_t table_[kUnits];
};
