//! The host: takes free frames back, withholds some, returns them.

use std::ops::Range;
use std::thread::sleep;
use std::time::Duration;

use nbbs::{Buddy, Piece, RangeError};

use super::shared::{Number, Order, Shared, frame_units, units_of};

/// The time between two passes.
const PAUSE: Duration = Duration::from_millis(100);

/// Follows the orders until it is told to stop.
///
/// `broken`: takes what was free when it looked, without claiming it first.
pub fn run(shared: &Shared, broken: bool) -> anyhow::Result<()> {
    let host = Host { shared, pages: shared.pages()?, broken };
    while shared.get(Number::Stop) == 0 {
        let order = shared.get(Number::Order);
        if order != Order::Rest as u64 {
            host.pass()?;
        }
        if order != Order::Busy as u64 {
            sleep(PAUSE);
        }
    }
    Ok(())
}

struct Host<'a> {
    shared: &'a Shared,
    pages: Buddy<'a>,
    broken: bool,
}

impl Host<'_> {
    /// Looks at all frames once.
    fn pass(&self) -> anyhow::Result<()> {
        self.inherit()?;
        let wanted = self.shared.get(Number::Withheld);
        let mut withheld = self.shared.withheld().count();
        for frame in 0..self.shared.frames() {
            if self.shared.withheld().get(frame) {
                if withheld > wanted {
                    self.give_back(frame)?;
                    withheld -= 1;
                }
            } else if self.pages.is_free(units_of(frame))? {
                let keep = withheld < wanted;
                if (keep || !self.shared.not_backed().get(frame)) && self.reclaim(frame, keep)? {
                    withheld += u64::from(keep);
                }
            }
        }
        self.shared.add(Number::Passes, 1);
        Ok(())
    }

    /// Takes the memory of a frame, if the frame is still free. With `keep` it takes the frame, too (hard); otherwise
    /// the guest can allocate the frame at once, and has memory installed (soft).
    fn reclaim(&self, frame: u64, keep: bool) -> anyhow::Result<bool> {
        if self.broken {
            // Time for the guest to allocate the frame. Without it the guest often notices nothing until frames are to
            // be withheld, which this host never does.
            sleep(Duration::from_millis(1));
            self.take_memory(frame)?;
            return Ok(true);
        }
        // Claims all units, or none. From now on the guest gets none of them; it does not wait for us, but goes
        // elsewhere.
        match self.pages.reserve(units_of(frame)) {
            Ok(()) => {}
            Err(RangeError::InUse { .. }) => return Ok(false),
            Err(error) => return Err(error.into()),
        }
        self.shared.owners().reserve(units_of(frame))?;
        self.take_memory(frame)?;
        if keep {
            self.shared.withheld().set(frame);
        } else {
            self.release(units_of(frame))?;
        }
        Ok(true)
    }

    /// Takes a frame's memory. It first records that there is none, as a host may be killed in between.
    fn take_memory(&self, frame: u64) -> anyhow::Result<()> {
        if !self.shared.not_backed().set(frame) {
            self.shared.add(Number::Reclaimed, 1);
        }
        self.shared.punch(frame)?;
        Ok(())
    }

    /// Ends the withholding of a frame. The frame still has no memory.
    fn give_back(&self, frame: u64) -> anyhow::Result<()> {
        self.shared.withheld().clear(frame);
        self.release(units_of(frame))
    }

    fn release(&self, units: Range<u64>) -> anyhow::Result<()> {
        self.shared.owners().release(units.clone())?;
        self.pages.release(units)?;
        Ok(())
    }

    /// Gives back what a killed host had claimed: units that are reserved, as only hosts reserve, and not withheld.
    ///
    /// The guest only allocates blocks. Runs across words look reserved for moments; beside runs, a host would have to
    /// note which frame it is about to claim.
    fn inherit(&self) -> anyhow::Result<()> {
        // A host may have died between a claim and the climb, which leaves a claim below a slot that is still free. If
        // the guest has a block over it, it comes to light in a pass after that block is freed.
        self.pages.mend();
        let mut pieces = Vec::new();
        self.pages.walk(|piece| {
            if let Piece::Reserved { index, len } = piece {
                pieces.push(index..index + len);
            }
        });
        for frame in pieces.chunk_by(|one, next| frame_of(one) == frame_of(next)) {
            if self.shared.withheld().get(frame_of(&frame[0])) {
                continue;
            }
            let units: u64 = frame.iter().map(|piece| piece.end - piece.start).sum();
            if units == frame_units() {
                // The host may have been about to take the memory, after it had recorded that.
                self.take_memory(frame_of(&frame[0]))?;
            }
            for piece in frame {
                // The owner map may not have been told yet, or have been told already.
                for unit in piece.clone() {
                    let _ = self.shared.owners().release(unit..unit + 1);
                }
                self.pages.release(piece.clone())?;
            }
            self.shared.add(Number::Inherited, units);
        }
        Ok(())
    }
}

fn frame_of(units: &Range<u64>) -> u64 {
    units.start / frame_units()
}
