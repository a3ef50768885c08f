//! Reads heap traces: what a program asked of malloc.
//!
//! The format is that of a page trace, with the first line `# heap trace v1: NAME` and these events, with sizes in
//! bytes: `+THREAD SIZE ALIGN ID` allocates, `=THREAD SIZE ID` reallocates, `-THREAD ID` frees.

use std::alloc::Layout;

use super::lines::{Format, Ids, no_event, number, shorten};
use super::{Fault, TraceError};

/// The sample that ships with the project.
const SAMPLE: &[u8] = include_bytes!("../../../traces/git.heap.zst");

/// The highest number of a thread.
pub const MAX_THREAD: u64 = 1023;

/// The most bytes of a block.
pub const MAX_BYTES: u64 = 1 << 40;

const HEAP: Format = Format {
    header: "# heap trace v1: NAME",
    forms: "\"+THREAD SIZE ALIGN ID\" nor \"=THREAD SIZE ID\" nor \"-THREAD ID\"",
};

/// A heap trace.
#[derive(Debug)]
pub struct HeapTrace {
    /// Its name in the table, which lives as long as the program.
    pub name: &'static str,
    /// The number of threads: threads that have events have lower numbers.
    pub threads: usize,
    /// All events in the order in which they happened.
    pub events: Vec<HeapEvent>,
    /// The layout of each place. A block has a place, and another each time it is reallocated.
    pub places: Vec<Layout>,
    /// The most bytes that were live at once.
    pub peak_bytes: u64,
}

/// One line of a heap trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeapEvent {
    /// The thread on which it happened.
    pub thread: usize,
    /// The place that it leaves, or `None` if it allocates.
    pub from: Option<u32>,
    /// The place that it makes, or `None` if it frees.
    pub to: Option<u32>,
}

impl HeapTrace {
    /// Reads the sample that ships with the project.
    pub fn sample() -> Result<Self, TraceError> {
        Ok(Self { name: "git", ..Self::read("git", SAMPLE)? })
    }

    /// Reads a trace file. Its name in the table is the file name up to the first dot that has something before it.
    pub fn open(path: &std::path::Path) -> Result<Self, TraceError> {
        let (shown, bytes, name) = super::read_file(path)?;
        Ok(Self { name: name.leak(), ..Self::read(&shown, &bytes)? })
    }

    /// Reads the trace in `file`, a zstd file that messages call `shown`.
    pub fn read(shown: &str, file: &[u8]) -> Result<Self, TraceError> {
        let mut reader = Reader::default();
        HEAP.read(shown, file, |line, sign, fields| reader.read_event(line, sign, fields))?;
        let Reader { threads, events, places, peak_bytes, .. } = reader;
        Ok(Self { name: "", threads, events, places, peak_bytes })
    }
}

#[derive(Default)]
struct Reader {
    blocks: Ids,
    /// The latest place of each block by number.
    latest: Vec<u32>,
    threads: usize,
    events: Vec<HeapEvent>,
    places: Vec<Layout>,
    live_bytes: u64,
    peak_bytes: u64,
}

impl Reader {
    fn read_event(&mut self, line: usize, sign: u8, fields: &[&str]) -> Result<(), Fault> {
        let (thread, from, to) = match (sign, fields) {
            (b'+', [thread, size, align, id]) => {
                let layout = layout(size, align)?;
                self.blocks.alloc(id, line)?;
                let to = self.place(layout);
                self.latest.push(to);
                (thread, None, Some(to))
            }
            (b'=', [thread, size, id]) => {
                let block = self.blocks.live(id)?.number;
                let from = self.leave(block);
                let align = self.places[from as usize].align();
                let to = self.place(self::layout(size, &align.to_string())?);
                self.latest[block] = to;
                (thread, Some(from), Some(to))
            }
            (b'-', [thread, id]) => {
                let block = self.blocks.free(id, line)?;
                (thread, Some(self.leave(block)), None)
            }
            _ => return Err(no_event()),
        };
        let known = number(thread, MAX_THREAD).ok_or_else(|| Fault::Thread(shorten(thread)))?;
        let thread = known as usize;
        self.threads = self.threads.max(thread + 1);
        self.events.push(HeapEvent { thread, from, to });
        Ok(())
    }

    fn place(&mut self, layout: Layout) -> u32 {
        self.live_bytes += layout.size() as u64;
        self.peak_bytes = self.peak_bytes.max(self.live_bytes);
        self.places.push(layout);
        self.places.len() as u32 - 1
    }

    fn leave(&mut self, block: usize) -> u32 {
        let from = self.latest[block];
        self.live_bytes -= self.places[from as usize].size() as u64;
        from
    }
}

/// Returns the layout of a block. A block of no bytes gets one byte, so that it has its own address.
fn layout(size: &str, align: &str) -> Result<Layout, Fault> {
    let bytes = number(size, MAX_BYTES).ok_or_else(|| Fault::Size(shorten(size)))?;
    let aligned = number(align, MAX_BYTES).ok_or_else(|| Fault::Align(shorten(align)))?;
    let layout = Layout::from_size_align(bytes.max(1) as usize, aligned as usize);
    layout.map_err(|_| Fault::Align(shorten(align)))
}
