//! Sets how deep the suite goes.

/// Returns how many times as much as usual a test should try, if it can try more: `NBBS_DEPTH`, or 1.
///
/// ```
/// assert!(testkit::depth() >= 1);
/// ```
pub fn depth() -> u64 {
    let depth = std::env::var("NBBS_DEPTH").ok().and_then(|depth| depth.parse().ok());
    depth.unwrap_or(1).max(1)
}

/// Returns with how many preemptions a test should try every schedule: two, or three if [`depth`] is 100 or more.
///
/// ```
/// assert!(testkit::preemptions() >= 2);
/// ```
pub fn preemptions() -> u32 {
    if depth() < 100 { 2 } else { 3 }
}
