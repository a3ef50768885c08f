//! Occupancy maps: how full each stretch of an arena is.

use super::{Look, Piece};
use crate::error::AllocError;
use crate::sync::Word;

impl<W: Word> Look<'_, W> {
    /// Fills `map` with a byte for each stretch of `2^order` units, and returns how many bytes it filled.
    pub fn occupancy_map(self, order: u32, map: &mut [u8]) -> Result<usize, AllocError> {
        if order > self.0.geometry.max_order() {
            return Err(AllocError::OrderTooLarge { order, max: self.0.geometry.max_order() });
        }
        let stretches = self.0.geometry.units().div_ceil(1 << order).min(map.len() as u64) as usize;
        let map = &mut map[..stretches];
        map.fill(0);
        // The walk ascends: the usage of a stretch is complete when a piece of a later one comes.
        let (mut current, mut used) = (0, 0);
        let mut close = |stretch: u64, used: u64| {
            let len = (self.0.geometry.units() - (stretch << order)).min(1 << order);
            if let Some(byte) = usize::try_from(stretch).ok().and_then(|at| map.get_mut(at)) {
                let most = if used == len { 255 } else { 254 };
                *byte = (used * 255).div_ceil(len).min(most) as u8;
            }
        };
        self.walk(|piece| {
            let (mut index, mut len) = match piece {
                Piece::Free { .. } => return,
                Piece::Used { index, order } => (index, 1 << order),
                Piece::Run { index, len } | Piece::Reserved { index, len } => (index, len),
            };
            while len > 0 {
                if index >> order != current {
                    close(current, used);
                    (current, used) = (index >> order, 0);
                }
                let part = len.min(((current + 1) << order) - index);
                used += part;
                index += part;
                len -= part;
            }
        });
        close(current, used);
        Ok(stretches)
    }
}
