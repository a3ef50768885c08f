//! How deep the suite goes.

/// How many times as much as usual a test is to try that can try more: `NBBS_DEPTH`, or 1.
///
/// ```
/// assert!(testkit::depth() >= 1);
/// ```
pub fn depth() -> u64 {
    let depth = std::env::var("NBBS_DEPTH").ok().and_then(|depth| depth.parse().ok());
    depth.unwrap_or(1).max(1)
}

/// With how many preemptions a test is to try every schedule: two, or three where [`depth`] is 100 or more.
///
/// ```
/// assert!(testkit::preemptions() >= 2);
/// ```
pub fn preemptions() -> u32 {
    if depth() < 100 { 2 } else { 3 }
}
