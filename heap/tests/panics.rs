//! Tests that a panic in what a heap calls ends the process: an allocator must not unwind.

use std::alloc::Layout;
use std::panic::catch_unwind;
use std::process::Command;

use nbbs_heap::{Cpu, Heap};

struct Panics;

impl Cpu for Panics {
    fn number() -> Option<usize> {
        panic!("no number")
    }
}

static HEAP: Heap<{ 64 << 10 }, 1, Panics> = Heap::new();

#[test]
fn a_panic_of_a_cpus_number_does_not_unwind() {
    if std::env::var_os("NBBS_PANICS").is_some() {
        let unwound = catch_unwind(|| HEAP.alloc(Layout::new::<u64>()).is_some());
        println!("came back: {unwound:?}");
        return;
    }
    let mut child = Command::new(std::env::current_exe().unwrap());
    let child = child.env("NBBS_PANICS", "1").arg("--nocapture").output().unwrap();
    let [said, why] = [&child.stdout, &child.stderr].map(|said| String::from_utf8_lossy(said));
    assert!(!child.status.success() && !said.contains("came back"), "{}\n{said}", child.status);
    assert!(why.contains("no number") && why.contains("must not panic"), "{why}");
}
