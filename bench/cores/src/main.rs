//! The program that `nbbs bench cores` runs on a simulated machine: one loop on one allocator, on every hart at the
//! same time.
//!
//! Hart 0 reads the request from the console, prepares, and wakes the others. Each runs the loop and notes how long it
//! took. Hart 0 writes the notes to the console.
//!
//! ```text
//! entry       where harts begin        machine     console, cycles, wake-ups, the simulator's controls
//! barrier     all harts wait for all   memory      the heap, and the metadata of arenas
//! request     what is asked for        random      places and orders
//! measure     the one way in which every loop is measured
//! contenders  allocators by name       loops       what a hart does again and again
//! ```
#![no_std]
#![no_main]

extern crate alloc;

mod barrier;
mod contenders;
mod entry;
mod loops;
mod machine;
mod measure;
mod memory;
mod random;
mod request;

use core::panic::PanicInfo;

use spin::Once;

use loops::Job;
use machine::{Console, say};
use measure::Course;
use request::Request;

/// The course and the job of all harts.
static COURSE: Once<(Course, Job)> = Once::new();

/// The main function, to which each hart jumps from its entry.
extern "C" fn main(hart: usize, harts: usize) -> ! {
    if hart == 0 {
        let request = Request::read(&mut Console);
        let course = Course::new(harts, &request);
        let job = contenders::job(&request, harts).unwrap_or_else(|missing| panic!("{missing}"));
        COURSE.call_once(|| (course, job));
        (1..harts).for_each(machine::wake);
    } else {
        machine::sleep();
    }
    let (course, job) = COURSE.get().expect("hart 0 wakes the others when it has prepared");
    job(course, hart);
    course.barrier.wait();
    if hart == 0 {
        course.report();
        machine::exit(0);
    }
    machine::halt()
}

#[panic_handler]
fn panic(info: &PanicInfo<'_>) -> ! {
    say!("panic: {}", info.message());
    machine::exit(101);
    machine::halt()
}
