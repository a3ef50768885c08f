//! The protocol under deaths and stops at every step, in one process: words with a hook before each access, and an
//! owner map that knows nothing of tags.
//!
//! ```text
//! again     blocks that go and come again while they are looked at
//! world     a ledger, who lives, who holds what     deaths    a member dies at every step, a recoverer at every step
//! stops     a member stands still, and goes on      races     recoverers and members at once, under many schedules
//! wild      tags and turns that somebody has written over
//! hidden    a member dies below a claim that is taken back
//! late      an inspection commits that began before a claim
//! watched   members that are never at rest              model     parts of operations at random accesses of recoveries
//! ```

mod again;
mod deaths;
mod hidden;
mod late;
mod model;
mod races;
mod stops;
mod watched;
mod wild;
pub(crate) mod world;
