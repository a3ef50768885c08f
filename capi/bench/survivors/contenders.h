// What is compared: each is made once for a run, before processes are forked, and opened by each of these.
#pragma once

#include "robust.h"

#include <nbbs.h>

#include <cstdlib>
#include <memory>
#include <new>
#include <sys/mman.h>
#include <unistd.h>
#ifdef WITH_BOOST
#include <boost/interprocess/managed_shared_memory.hpp>
#endif

struct Contender {
    virtual ~Contender() = default;
    // In a process of its own, the `number`th; then the rest is called there.
    virtual bool open(int number) = 0;
    // 0: there is no memory.
    virtual uint64_t alloc(size_t bytes) = 0;
    virtual void free(uint64_t block) = 0;
    // What the last of `of` processes held, which was killed, or the one before it.
    virtual void recover(int of) = 0;
};

struct Nbbs : Contender {
    nbbs_shared *segment = nullptr;
    nbbs_shared_member *member = nullptr;

    Nbbs() {
        const nbbs_shared_geometry geometry = {Robust::kUnits, Robust::kUnitBytes, 16};
        if (nbbs_shared_create_memfd("survivors", &geometry, &segment, nullptr)) abort();
    }
    ~Nbbs() override { nbbs_shared_detach(segment); }
    bool open(int) override {
        nbbs_shared *own = nullptr;
        return !nbbs_shared_attach_fd(nbbs_shared_fd(segment), &own, nullptr) && !nbbs_shared_join(own, &member, nullptr);
    }
    uint64_t alloc(size_t bytes) override {
        uint64_t block = 0;
        nbbs_shared_alloc(member, bytes, 8, &block, nullptr);
        return block;
    }
    void free(uint64_t block) override {
        if (nbbs_shared_free(member, block, nullptr)) abort();
    }
    void recover(int) override { nbbs_shared_recover(member, nullptr, nullptr, nullptr, nullptr); }
};

struct RobustMutex : Contender {
    Robust *allocator;
    uint8_t owner = 0;

    RobustMutex() {
        void *memory = mmap(nullptr, sizeof(Robust), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED) abort();
        allocator = new (memory) Robust;
        allocator->create();
    }
    ~RobustMutex() override { munmap(allocator, sizeof(Robust)); }
    bool open(int number) override {
        owner = static_cast<uint8_t>(number + 1);
        return true;
    }
    uint64_t alloc(size_t bytes) override {
        const uint32_t unit = allocator->alloc(bytes, owner);
        return unit == Robust::kNone ? 0 : uint64_t{unit} + 1;
    }
    void free(uint64_t block) override { allocator->free(static_cast<uint32_t>(block - 1)); }
    void recover(int number) override { allocator->recover(static_cast<uint8_t>(number + 1)); }
};

#ifdef WITH_BOOST
// Nobody can recover what the dead held, nor the mutex.
struct Boost : Contender {
    std::string name = "nbbs-survivors-" + std::to_string(getpid());
    std::unique_ptr<boost::interprocess::managed_shared_memory> memory;

    Boost() {
        boost::interprocess::shared_memory_object::remove(name.c_str());
        boost::interprocess::managed_shared_memory(boost::interprocess::create_only, name.c_str(), 64 << 20);
    }
    ~Boost() override { boost::interprocess::shared_memory_object::remove(name.c_str()); }
    bool open(int) override {
        memory = std::make_unique<boost::interprocess::managed_shared_memory>(boost::interprocess::open_only, name.c_str());
        return true;
    }
    uint64_t alloc(size_t bytes) override {
        void *block = memory->allocate(bytes, std::nothrow);
        return block == nullptr ? 0 : static_cast<uint64_t>(memory->get_handle_from_address(block));
    }
    void free(uint64_t block) override {
        memory->deallocate(memory->get_address_from_handle(static_cast<std::ptrdiff_t>(block)));
    }
    void recover(int) override {}
};
#endif
