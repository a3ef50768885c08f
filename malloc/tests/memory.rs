//! How the heap gets memory, and gives it back: each in a process of its own.
#![cfg(all(target_os = "linux", not(miri)))]

use std::env;
use std::hint::black_box;
use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::sync::{Barrier, Mutex};
use std::thread;

use libc::{c_void, free, malloc, malloc_trim, realloc};
use nbbs_malloc as _;

/// Runs one of the tests below that are ignored, with so many MiB at first, and in so much address space.
#[track_caller]
fn alone(name: &str, mib: Option<&str>, limit: Option<libc::rlim_t>) {
    let mut command = Command::new(env::current_exe().unwrap());
    command.args([name, "--exact", "--ignored", "--test-threads=1", "--nocapture"]);
    mib.map(|mib| command.env("NBBS_MALLOC_MIB", mib));
    if let Some(bytes) = limit {
        let limit = libc::rlimit { rlim_cur: bytes, rlim_max: bytes };
        // SAFETY: it calls nothing but the system.
        unsafe {
            command.pre_exec(move || {
                _ = libc::setrlimit(libc::RLIMIT_AS, &raw const limit);
                Ok(())
            });
        }
    }
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success() && said.contains("1 passed"), "{said}{output:?}");
}

fn fill(bytes: usize) -> *mut c_void {
    // SAFETY: ours.
    unsafe {
        let block = malloc(bytes);
        assert!(!block.is_null(), "{bytes} bytes are refused");
        black_box(block).cast::<u8>().write_bytes(5, bytes);
        block
    }
}

/// Six threads that allocate 100 MiB together, in blocks of many sizes.
#[test]
#[ignore = "run by others, in a process of its own"]
fn six_threads_fill_100_mib() {
    let fill_some = |thread: usize| {
        let sizes = (0..).map(|n| 1 + (n * 7919 + thread) % 200_000);
        let mut left = 16 << 20;
        let blocks = sizes.take_while(|&bytes| {
            left -= bytes as isize;
            left > 0
        });
        blocks.map(|bytes| fill(bytes) as usize).collect::<Vec<_>>()
    };
    let threads = (0..6).map(|thread| thread::spawn(move || fill_some(thread)));
    let threads: Vec<_> = threads.collect();
    for block in threads.into_iter().flat_map(|thread| thread.join().unwrap()) {
        // SAFETY: ours.
        unsafe { free(block as *mut c_void) };
    }
}

#[test]
fn the_heap_grows() {
    alone("six_threads_fill_100_mib", Some("2"), None);
}

#[test]
fn little_address_space_is_enough() {
    alone("six_threads_fill_100_mib", None, Some(400 << 20));
}

#[test]
#[ignore = "run by others, in a process of its own"]
fn half_is_left() {
    let (access, flags) = (libc::PROT_NONE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: a new mapping, wherever there is room.
    let half = unsafe { libc::mmap(std::ptr::null_mut(), 200 << 20, access, flags, -1, 0) };
    assert_ne!(half, libc::MAP_FAILED);
}

#[test]
fn half_of_the_address_space_is_left_to_others() {
    alone("half_is_left", None, Some(400 << 20));
}

#[test]
#[ignore = "run by others, in a process of its own"]
fn not_much_is_mapped() {
    // SAFETY: it only answers.
    let pages = unsafe { libc::sysconf(libc::_SC_PHYS_PAGES) } as usize;
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    let mapped: usize = statm.split(' ').next().unwrap().parse().unwrap();
    assert!(mapped < pages + (1 << 20), "{mapped} pages of {pages}");
}

#[test]
fn a_high_limit_is_none() {
    alone("not_much_is_mapped", None, Some(1 << 50));
}

#[test]
fn nonsense_is_ignored() {
    for mib in ["", "0", "-1", "5MiB", "99999999999999999999"] {
        alone("six_threads_fill_100_mib", Some(mib), None);
    }
}

/// Returns how many MiB of memory the process has.
fn resident() -> usize {
    // SAFETY: it only answers.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize;
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: usize = statm.split(' ').nth(1).unwrap().parse().unwrap();
    (pages * page) >> 20
}

#[test]
#[ignore = "run by others, in a process of its own"]
fn what_is_free_goes_back() {
    let large = fill(256 << 20);
    let small: Vec<_> = (0..8).map(|_| fill(8 << 20)).collect();
    let before = resident();
    // A large one with its free; others with a trim.
    // SAFETY: ours.
    unsafe { free(large) };
    let between = resident();
    assert!(between + 250 < before, "{before} MiB, and then {between}");
    // What is left when one becomes much shorter, too.
    let shrinks = fill(256 << 20);
    // SAFETY: ours.
    let short = unsafe { realloc(shrinks, 1 << 20) };
    let shrunk = resident();
    assert!(!short.is_null() && shrunk < between + 10, "{between} MiB, and then {shrunk}");
    // SAFETY: ours.
    unsafe { free(short) };
    // SAFETY: ours.
    small.into_iter().for_each(|block| unsafe { free(block) });
    // SAFETY: it may always be called.
    assert_eq!(unsafe { malloc_trim(0) }, 1);
    let after = resident();
    assert!(after + 60 < between, "{between} MiB, and then {after}");
}

#[test]
fn memory_goes_back_to_the_system() {
    alone("what_is_free_goes_back", None, None);
    alone("what_has_gone_back_is_zero", None, None);
    alone("idle_memory_goes_back", None, None);
}

/// A program that needs much memory once, in small blocks or in larger ones, and frees nearly all of it. It goes on with
/// little, which shows that it is done.
#[test]
#[ignore = "run by others, in a process of its own"]
fn idle_memory_goes_back() {
    let before = resident();
    for bytes in [100, 50_000] {
        let blocks: Vec<_> = (0..(200 << 20) / bytes).map(|_| fill(bytes)).collect();
        let peak = resident();
        assert!(peak >= before + 200, "{before} MiB, and then {peak}");
        // SAFETY: ours, in both cases.
        let free =
            |half: usize| blocks.iter().skip(half).step_by(2).for_each(|&at| unsafe { free(at) });
        free(0);
        free(1);
        drop(blocks);
        let mut left = resident();
        for _ in 0..100 {
            if left < before + 70 {
                break;
            }
            // Until so much may go back again.
            thread::sleep(std::time::Duration::from_millis(100));
            let some: Vec<_> = (0..1000).map(|_| fill(bytes)).collect();
            left = resident();
            for at in some {
                // SAFETY: ours.
                unsafe { libc::free(at) };
                // In parts: no call takes long.
                let after = resident();
                assert!(after + 40 > left, "a free: {left} MiB, and then {after}");
                left = after;
            }
        }
        assert!(left < before + 70, "{before} MiB, and then {peak}, {left}");
    }
}

/// A table that a program makes anew, and of which it uses little.
#[test]
#[ignore = "run by others, in a process of its own"]
fn what_has_gone_back_is_zero() {
    for _ in 0..3 {
        let before = most_resident();
        // SAFETY: any number of bytes may be asked for.
        let table = unsafe { libc::calloc(1 << 20, 64) };
        assert!(!table.is_null());
        // SAFETY: ours, and initialized.
        let bytes = unsafe { std::slice::from_raw_parts(table.cast::<u8>(), 64 << 20) };
        assert!(bytes.iter().step_by(1 << 20).all(|&byte| byte == 0));
        let reached = most_resident() - before;
        assert!(reached < 2 << 10, "{reached} KiB");
        // SAFETY: ours.
        unsafe { table.cast::<u8>().write_bytes(1, 1000) };
        // SAFETY: ours.
        unsafe { free(table) };
    }
}

/// A program that replaces random ones of 100 blocks, for long, with less than 24 MiB in use at a time.
#[test]
#[ignore = "run by others, in a process of its own"]
fn a_program_replaces_its_blocks() {
    let mut held = [std::ptr::null_mut(); 100];
    let mut random = 1_u64;
    let before = most_resident();
    for _ in 0..20_000 {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let place = &mut held[(random >> 40) as usize % 100];
        // SAFETY: ours, or null.
        unsafe { free(*place) };
        // From 33 KB to 2 MiB, each twice as large half as often.
        let most = 33_000_u64 << (random >> 33).trailing_zeros().min(6);
        *place = fill((most / 2 + (random >> 20) % most) as usize);
    }
    let reached = most_resident() - before;
    // SAFETY: ours, or null.
    held.iter().for_each(|&block| unsafe { free(block) });
    assert!(reached < 50 << 10, "{reached} KiB");
}

/// Threads that live side by side, of which one after the other holds 8 MiB.
#[test]
#[ignore = "run by others, in a process of its own"]
fn threads_take_turns() {
    const EACH: usize = 8 << 20;
    let threads = 16 * thread::available_parallelism().unwrap().get();
    for bytes in [4096, 50_000] {
        let before = most_resident();
        let turn = Mutex::new(());
        let all_there = Barrier::new(threads);
        let holds = || {
            let guard = turn.lock();
            let held: Vec<_> = (0..EACH / bytes).map(|_| fill(bytes)).collect();
            // SAFETY: ours.
            held.into_iter().for_each(|block| unsafe { free(block) });
            drop(guard);
            all_there.wait();
        };
        thread::scope(|scope| (0..threads).for_each(|_| _ = scope.spawn(holds)));
        let reached = most_resident() - before;
        // Each keeps 2 MiB in its cache.
        assert!(reached < (threads * EACH / 3) as i64 >> 10, "{threads} threads, {reached} KiB");
    }
}

#[test]
fn what_is_freed_is_used_again() {
    alone("a_program_replaces_its_blocks", None, None);
    alone("threads_take_turns", None, None);
}

/// Returns the most KiB of memory that this process has had.
fn most_resident() -> i64 {
    // SAFETY: all bits zero are a value of it, and the call writes it.
    unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        assert_eq!(libc::getrusage(libc::RUSAGE_SELF, &raw mut usage), 0);
        usage.ru_maxrss
    }
}
