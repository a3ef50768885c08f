//! A test of what a small heap keeps to itself: all that its program cannot use.

use std::alloc::Layout;

use nbbs_heap::Small;

/// The bytes of bookkeeping of a heap with units of 32 bytes. Checks that one block may have all the others.
fn bookkeeping<const BYTES: usize>(heap: &'static Small<BYTES>) -> usize {
    let bytes = heap.bytes();
    assert_eq!(heap.count_free_bytes(), bytes, "nothing is in use before the first allocation");
    let all = Layout::from_size_align(bytes, 1).unwrap();
    assert!(heap.alloc(all).is_some() && heap.alloc(Layout::new::<u8>()).is_none());
    size_of::<Small<BYTES>>() - bytes
}

#[test]
fn a_small_heap_keeps_little_to_itself() {
    static SMALL: Small<{ 16 << 10 }> = Small::new();
    static MEDIUM: Small<{ 64 << 10 }> = Small::new();
    static LARGE: Small<{ 1 << 20 }> = Small::new();
    let kept = [bookkeeping(&SMALL), bookkeeping(&MEDIUM), bookkeeping(&LARGE)];
    println!("bytes of bookkeeping: {kept:?} of 16 KiB, 64 KiB and 1 MiB");
    // 200 bytes and a hundredth.
    let most = [16, 64, 1024].map(|kib| 200 + (kib << 10) / 100);
    assert!(kept.iter().zip(most).all(|(kept, most)| *kept <= most), "{kept:?}");
}
