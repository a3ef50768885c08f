//! What ownership costs: an allocation and a free by a member of a segment, beside the same by the buddy allocator
//! alone, over words of this process's, which looks for the order of what it frees, or is told. In turn, a thousand
//! pairs at a time. `ownership_cost buddy|sized|member|heap ORDER PAIRS` makes so many pairs of one, for whoever counts
//! instructions; `sized` tells the buddy allocator the order of what it frees.

#[cfg(target_os = "linux")]
mod linux;

#[cfg(target_os = "linux")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    linux::main()
}

#[cfg(not(target_os = "linux"))]
fn main() {
    eprintln!("ownership_cost: this example needs Linux, as segments do");
}
