//! Programs of layouts: what a heap is asked, one request after the other, and the checks of its answers. Property
//! tests draw them, and a fuzzer makes them from bytes.

use nbbs_heap::AddError;
use testkit::Addresses;

use super::subjects::{Given, Spare, Subject};
use super::{Block, layout};

/// One request. Blocks are picked modulo the number held; if none is held, nothing happens.
#[derive(Clone, Debug)]
pub enum Op {
    /// Allocates so many bytes, aligned to this power of two; filled with zeros, if asked for.
    Alloc { size: usize, align: u32, zeroed: bool },
    /// Makes a block larger or smaller.
    Resize { pick: usize, size: usize },
    /// Frees a block by its layout.
    Free { pick: usize },
    /// Frees a block by its address alone, where the heap can.
    FreeAt { pick: usize },
    /// Returns empty slabs.
    Trim,
    /// Adds memory of so many bytes, from the spare.
    Add { bytes: usize },
    /// Audits the heap.
    Audit,
}

/// One request of a CPU.
#[derive(Clone, Debug)]
pub struct Step {
    pub cpu: usize,
    pub op: Op,
}

/// Memory is compared piece by piece: byte by byte it takes a fuzzer, or Miri, too long.
const ZEROS: [u8; 4096] = [0; 4096];

/// The most regions of a heap.
const REGIONS: usize = 8;

/// Runs a program, frees what is left, and checks that all of the heap is free then.
pub fn run(heap: impl Subject, mut spare: Spare, program: &[Step]) {
    let (owners, mut held) = (Addresses::default(), Vec::<Block>::new());
    let mut regions = 1;
    for (seed, Step { cpu, op }) in program.iter().enumerate() {
        let heap = heap.on(*cpu);
        match *op {
            Op::Alloc { size, align, zeroed } => {
                let found = alloc(heap, &owners, (size, align, zeroed), seed as u64);
                held.extend(found);
            }
            Op::Trim => heap.trim(),
            Op::Add { bytes } => regions += usize::from(add(heap, &mut spare, bytes, regions)),
            // It looks at all units, which takes Miri long; there is one at the end.
            Op::Audit if cfg!(miri) => {}
            Op::Audit => heap.audit(&held),
            _ if held.is_empty() => {}
            Op::Resize { pick, size } => {
                let pick = pick % held.len();
                resize(heap, &owners, &mut held[pick], size);
            }
            Op::Free { pick } => {
                let block = held.swap_remove(pick % held.len());
                free(heap, &owners, block, false);
            }
            Op::FreeAt { pick } => {
                let block = held.swap_remove(pick % held.len());
                free(heap, &owners, block, true);
            }
        }
    }
    for (number, block) in held.into_iter().enumerate() {
        free(heap.on(number), &owners, block, number % 3 == 0);
    }
    owners.check_empty().unwrap();
    heap.assert_whole();
}

fn alloc(
    heap: impl Subject,
    owners: &Addresses,
    (size, align, zeroed): (usize, u32, bool),
    seed: u64,
) -> Option<Block> {
    let of = layout(size, 1 << align);
    let at = if zeroed { heap.alloc_zeroed(of) } else { heap.alloc(of) }?;
    // The owners come first: what nobody may write to is not written to.
    owners.take(at.addr().get(), of).unwrap_or_else(|violation| panic!("{of:?}: {violation}"));
    if zeroed {
        // SAFETY: ours, and at least zeroed.
        let bytes = unsafe { std::slice::from_raw_parts(at.as_ptr(), size) };
        let mut pieces = bytes.chunks(ZEROS.len());
        assert!(pieces.all(|piece| *piece == ZEROS[..piece.len()]), "{of:?}: not zero");
    }
    Some(Block::new(heap, at, of, seed))
}

fn resize(heap: impl Subject, owners: &Addresses, block: &mut Block, size: usize) {
    owners.give(block.at.addr().get(), block.layout).unwrap();
    block.resize(heap, size);
    owners.take(block.at.addr().get(), block.layout).unwrap_or_else(|violation| {
        panic!("{block:?}, resized: {violation}");
    });
}

fn free(heap: impl Subject, owners: &Addresses, block: Block, by_address: bool) {
    owners.give(block.at.addr().get(), block.layout).unwrap();
    if by_address {
        block.check();
        // SAFETY: the block is ours, and we give it up.
        unsafe { heap.free_at(block.at, block.layout) };
    } else {
        block.free(heap);
    }
}

/// Adds memory, if there is any to spare. Returns whether the heap took it; it must if it has room for one more region,
/// and a unit fits.
fn add(heap: impl Subject, spare: &mut Spare, bytes: usize, regions: usize) -> bool {
    let Some(at) = spare.take(bytes) else { return false };
    // SAFETY: it is nobody else's, and the heap's from now on.
    match unsafe { heap.add(at, bytes) } {
        Ok(()) => {
            assert!(regions < REGIONS, "{regions} regions and one more");
            true
        }
        Err(AddError::TooSmall { bytes: given, needed }) => {
            assert!(
                given == bytes && needed > bytes && needed < 12_288,
                "{bytes}, {needed} needed"
            );
            false
        }
        Err(refused) => {
            assert_eq!((refused, regions), (AddError::TooMany { most: REGIONS }, REGIONS));
            false
        }
    }
}

/// Makes a program from bytes, four for each step: any bytes are one, and a small change of the bytes is a small change
/// of it.
pub fn from_bytes(bytes: &[u8]) -> Vec<Step> {
    bytes.as_chunks().0.iter().map(|&step| from_four(step)).collect()
}

fn from_four([kind, small, low, high]: [u8; 4]) -> Step {
    let number = usize::from(u16::from_le_bytes([low, high]));
    let (small, scale, cpu) = (usize::from(small), kind >> 4 & 3, usize::from(kind >> 6));
    let size = match scale {
        0 => number % 300,
        1 => number % 5000,
        2 => number % 40_000,
        _ => number * 2,
    };
    // Mostly up to 16 bytes, as most programs have it.
    let align = if small < 224 { small % 5 } else { 5 + small % 12 } as u32;
    let op = match kind & 15 {
        0..=4 => Op::Alloc { size, align, zeroed: false },
        5 => Op::Alloc { size, align, zeroed: true },
        6..=8 => Op::Resize { pick: small, size },
        9..=11 => Op::Free { pick: small },
        12 => Op::FreeAt { pick: small },
        13 => Op::Trim,
        14 => Op::Add { bytes: size },
        _ => Op::Audit,
    };
    Step { cpu, op }
}

/// Runs the program that bytes stand for, on the kind of heap that the first of them chooses.
pub fn run_bytes(bytes: &[u8]) {
    static HEAP: nbbs_heap::Heap<{ 3 << 20 }> = nbbs_heap::Heap::new();
    let [kind, rest @ ..] = bytes else { return };
    let program = from_bytes(rest);
    match kind % 5 {
        0 => run(&HEAP, Spare::default(), &program),
        // Much memory, and so little that slots are runs of their own.
        1 => Given::with(2, 256 << 10, |heap, spare| run(heap, spare, &program)),
        2 => Given::with(1, 60 << 10, |heap, spare| run(heap, spare, &program)),
        3 => run(&nbbs_heap::Small::<{ 16 << 10 }, 16>::new(), Spare::default(), &program),
        _ => run(&nbbs_heap::Small::<{ 64 << 10 }, 64>::new(), Spare::default(), &program),
    }
}
