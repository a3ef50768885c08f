//! What the functions promise in programs with signal handlers, threads that end, and children of `fork`; and how a
//! program ends that frees what it must not.
#![cfg(all(target_os = "linux", not(miri)))]

use std::env;
use std::ffi::{c_int, c_void};
use std::fs::File;
use std::hint::black_box;
use std::io::Read as _;
use std::os::fd::AsRawFd as _;
use std::process::Command;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Barrier};
use std::thread;

use libc::{free, malloc, realloc};
use nbbs_malloc as _;
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, kill, sigaction};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid, alarm, fork};

/// Allocates and frees blocks of many sizes, and resizes some, with a pattern in each that must stay.
fn churn(steps: usize, seed: usize) {
    let mut held = [(null_mut::<u8>(), 0_usize); 64];
    let mut number = seed;
    for _ in 0..steps {
        number =
            number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let (place, bytes) = (&mut held[number >> 40 & 63], 1 + (number >> 50) % 2000);
        // SAFETY: ours.
        unsafe {
            if !place.0.is_null() {
                let last = place.0.add(place.1 - 1);
                assert_eq!((place.0.read(), last.read()), (place.1 as u8, place.1 as u8));
            }
            place.0 = if number >> 30 & 7 == 0 {
                realloc(place.0.cast(), bytes).cast()
            } else {
                free(place.0.cast());
                malloc(bytes).cast()
            };
            *place = (black_box(place.0), bytes);
            place.0.write(bytes as u8);
            place.0.add(bytes - 1).write(bytes as u8);
        }
    }
    // SAFETY: ours.
    held.iter().for_each(|&(block, _)| unsafe { free(block.cast()) });
}

/// Runs a child, and returns how it ended.
fn child(run: impl FnOnce()) -> WaitStatus {
    // SAFETY: the child allocates and frees, which is what is tested, and ends by `_exit`.
    match unsafe { fork() }.unwrap() {
        ForkResult::Child => {
            alarm::set(20);
            run();
            // SAFETY: it runs nothing of the parent's.
            unsafe { libc::_exit(0) }
        }
        ForkResult::Parent { child } => waitpid(child, None).unwrap(),
    }
}

static HANDLED: AtomicUsize = AtomicUsize::new(0);

extern "C" fn handler(_: c_int) {
    churn(20, HANDLED.fetch_add(1, Ordering::Relaxed));
}

#[test]
fn signal_handlers_allocate() {
    let status = child(|| {
        let action =
            SigAction::new(SigHandler::Handler(handler), SaFlags::SA_RESTART, SigSet::empty());
        // SAFETY: the handler only allocates and frees.
        unsafe { sigaction(Signal::SIGUSR1, &action) }.unwrap();
        let parent = Pid::this();
        // SAFETY: as in `child`.
        let ForkResult::Parent { child } = unsafe { fork() }.unwrap() else {
            loop {
                _ = kill(parent, Signal::SIGUSR1);
                // The parent is gone.
                if Pid::parent() != parent {
                    // SAFETY: as above.
                    unsafe { libc::_exit(0) };
                }
            }
        };
        let is_enough = || HANDLED.load(Ordering::Relaxed) > 500;
        (0..).take_while(|_| !is_enough()).for_each(|seed| churn(1000, seed));
        kill(child, Signal::SIGKILL).unwrap();
    });
    assert!(matches!(status, WaitStatus::Exited(_, 0)), "{status:?}");
}

#[test]
fn children_of_a_program_with_threads_allocate() {
    let is_over = AtomicBool::new(false);
    let ends: Vec<WaitStatus> = thread::scope(|scope| {
        for seed in 0..3 {
            let is_over = &is_over;
            scope.spawn(move || {
                while !is_over.load(Ordering::Relaxed) {
                    churn(1000, seed);
                }
            });
        }
        let ends = (0..200).map(|seed| child(|| churn(500, seed))).collect();
        is_over.store(true, Ordering::Relaxed);
        ends
    });
    for status in ends {
        assert!(matches!(status, WaitStatus::Exited(_, 0)), "{status:?}");
    }
}

#[test]
fn blocks_go_from_thread_to_thread() {
    let (give, take) = sync_channel::<(usize, usize)>(100);
    let taker = thread::spawn(move || {
        for (block, bytes) in take {
            let block = block as *mut u8;
            // SAFETY: the giver has given it up.
            unsafe {
                assert_eq!(block.add(bytes - 1).read(), bytes as u8);
                free(block.cast());
            }
        }
    });
    // Each of them ends with blocks in its cache.
    for round in 0..20 {
        let give = give.clone();
        let giver = thread::spawn(move || {
            for step in 0..2000 {
                let bytes = 1 + (step * 37 + round) % 3000;
                // SAFETY: ours, until it is given away.
                unsafe {
                    let block = malloc(bytes).cast::<u8>();
                    block.add(bytes - 1).write(bytes as u8);
                    give.send((block as usize, bytes)).unwrap();
                }
            }
        });
        giver.join().unwrap();
    }
    drop(give);
    taker.join().unwrap();
}

/// More threads than have caches, one after the other and at once.
#[test]
fn threads_come_and_go() {
    for _ in 0..30 {
        let threads: Vec<_> = (0..50).map(|seed| thread::spawn(move || churn(200, seed))).collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    }
    let barrier = Arc::new(Barrier::new(1100));
    let threads = (0..1100).map(|seed| {
        let barrier = Arc::clone(&barrier);
        let run = move || {
            churn(20, seed);
            barrier.wait();
            churn(20, seed);
        };
        thread::Builder::new().stack_size(64 << 10).spawn(run).unwrap()
    });
    threads.collect::<Vec<_>>().into_iter().for_each(|thread| thread.join().unwrap());
}

/// As PHP loads its modules.
#[cfg(with_assembly)]
#[test]
fn libraries_that_prefer_their_own_functions_have_this_malloc() {
    // SAFETY: the library may be loaded at any time, and its `operator new` is such a function.
    unsafe {
        let mode = libc::RTLD_NOW | libc::RTLD_DEEPBIND;
        let library = libc::dlopen(c"libstdc++.so.6".as_ptr(), mode);
        assert!(!library.is_null(), "no libstdc++.so.6");
        let new = libc::dlsym(library, c"_Znwm".as_ptr());
        assert!(!new.is_null());
        let new: extern "C" fn(usize) -> *mut c_void = std::mem::transmute(new);
        let block = new(100);
        assert_eq!(nbbs_malloc::malloc_usable_size(block), 112);
        free(block);
        assert!(libc::dlopen(c"no library".as_ptr(), mode).is_null());
        assert_eq!(libc::dlclose(library), 0);
    }
}

/// Runs a child that must abort, and returns what it said.
fn last_words(run: impl FnOnce()) -> String {
    let (mut read, write) =
        nix::unistd::pipe().map(|(read, write)| (File::from(read), File::from(write))).unwrap();
    let status = child(|| {
        // SAFETY: standard error is the pipe from now on.
        unsafe { libc::dup2(write.as_raw_fd(), 2) };
        run();
    });
    assert!(matches!(status, WaitStatus::Signaled(_, Signal::SIGABRT, _)), "{status:?}");
    drop(write);
    let mut said = String::new();
    read.read_to_string(&mut said).unwrap();
    said
}

#[test]
fn wrong_frees_end_the_program() {
    let own = Box::into_raw(Box::new([0_u64; 100])).cast::<c_void>();
    // SAFETY: wrong, as is seen.
    unsafe {
        let mut local = 0_u64;
        let local = (&raw mut local).cast::<c_void>();
        let said = last_words(|| free(local));
        let begins = format!("nbbs: free: address {local:p} is in no memory of the heap, ");
        assert!(said.starts_with(&begins), "{said}");
        let said = last_words(|| _ = realloc(local, 5));
        assert!(said.starts_with("nbbs: realloc: address "), "{said}");
        let said = last_words(|| free(own.byte_add(8)));
        assert!(said.starts_with("nbbs: free: ") && said.contains(&format!("{own:p}")), "{said}");
        let said = last_words(|| {
            free(own);
            free(own);
        });
        assert_eq!(said, format!("nbbs: free: nothing is allocated at {own:p}\n"));
        let large = malloc(1 << 20);
        let said = last_words(|| {
            free(large);
            free(large);
        });
        assert!(said.starts_with("nbbs: free: nothing"), "{said}");
        let said = last_words(|| _ = nbbs_malloc::malloc_usable_size(large.byte_add(5000)));
        assert!(said.starts_with("nbbs: malloc_usable_size: "), "{said}");
        free(large);
        drop(Box::from_raw(own.cast::<[u64; 100]>()));
    }
}

/// Runs this program, which lists its tests, with such an environment. Returns what its heap says at the end.
fn said_at_the_end(environment: &[(&str, &str)]) -> String {
    let mut command = Command::new(env::current_exe().unwrap());
    command.arg("--list").env_remove("NBBS_MALLOC_REPORT").env_remove("NBBS_MALLOC_AUDIT");
    let output = command.envs(environment.iter().copied()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn a_report_is_written_where_it_is_asked_for() {
    const REPORT: (&str, &str) = ("NBBS_MALLOC_REPORT", "/dev/stderr");
    assert_eq!(said_at_the_end(&[]), "");
    let said = said_at_the_end(&[REPORT, ("NBBS_MALLOC_AUDIT", "0")]);
    assert!(said.contains(" in slots, ") && !said.contains("in order"), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    let said = said_at_the_end(&[REPORT, ("NBBS_MALLOC_AUDIT", "1")]);
    assert!(said.ends_with("; in order\n"), "{said}");
    let said = said_at_the_end(&[REPORT, ("NBBS_MALLOC_AUDIT", "yes")]);
    let (wrong, report) = said.split_once('\n').unwrap();
    assert_eq!(wrong, "nbbs: NBBS_MALLOC_AUDIT=yes: expected 0 or 1");
    assert!(report.contains(" in slots, ") && !report.contains("in order"), "{report}");
}

#[test]
fn what_has_no_effect_is_said() {
    for (environment, said) in [
        (("NBBS_MALLOC_AUDIT", "1"), "NBBS_MALLOC_AUDIT=1: no effect without NBBS_MALLOC_REPORT"),
        (("NBBS_MALLOC_AUDIT", "on"), "NBBS_MALLOC_AUDIT=on: expected 0 or 1"),
        (
            ("NBBS_MALLOC_REPORT", "/no/folder"),
            "NBBS_MALLOC_REPORT=/no/folder: cannot be written to: no such file or directory, errno 2",
        ),
        (
            ("NBBS_MALLOC_REPORT", "/dev/full"),
            "NBBS_MALLOC_REPORT=/dev/full: cannot be written to: no space left on the device, errno 28",
        ),
    ] {
        assert_eq!(said_at_the_end(&[environment]), format!("nbbs: {said}\n"));
    }
    assert_eq!(said_at_the_end(&[("NBBS_MALLOC_AUDIT", "0")]), "");
}
