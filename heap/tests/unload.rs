//! Libraries that are unloaded while threads that have used their heap still run.
#![cfg(all(target_os = "linux", not(miri)))]

use std::env;
use std::ffi::{CString, c_void};
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;
use std::process::Command;
use std::thread;

/// Builds the example `in_a_library` beside this test, and returns where it is.
fn library() -> PathBuf {
    let test = env::current_exe().unwrap();
    let profile = test.ancestors().nth(2).unwrap();
    let mut cargo = Command::new(env!("CARGO"));
    cargo.current_dir(env!("CARGO_MANIFEST_DIR")).args(["build", "--quiet", "--offline"]);
    cargo.args(["--package", "nbbs-heap", "--example", "in_a_library"]);
    cargo.arg("--target-dir").arg(profile.parent().unwrap());
    if profile.ends_with("release") {
        cargo.arg("--release");
    }
    assert!(cargo.status().unwrap().success());
    profile.join("examples/libin_a_library.so")
}

fn load(path: &CString, flags: i32) -> *mut c_void {
    // SAFETY: what the library does as it is loaded harms nobody.
    unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | flags) }
}

/// Leaves the calling thread with a cache of a heap whose library is gone.
fn use_and_unload(path: &CString) {
    let library = load(path, 0);
    assert!(!library.is_null());
    // SAFETY: the function has this type, and is called before the library is unloaded.
    let sum = unsafe {
        let sum_below = libc::dlsym(library, c"sum_below".as_ptr());
        assert!(!sum_below.is_null());
        let sum_below: extern "C" fn(u64) -> u64 = std::mem::transmute(sum_below);
        let sum = sum_below(100);
        assert_eq!(libc::dlclose(library), 0);
        sum
    };
    assert_eq!(sum, 4950);
    assert!(load(path, libc::RTLD_NOLOAD).is_null(), "the library is still there");
}

#[test]
fn a_thread_ends_after_the_library() {
    let path = CString::new(library().as_os_str().as_bytes()).unwrap();
    for _ in 0..3 {
        let path = path.clone();
        // To join it is to wait until its destructors have run, too.
        thread::spawn(move || use_and_unload(&path)).join().unwrap();
    }
}
