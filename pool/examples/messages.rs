//! Messages in a pool: one thread makes them, another gets them in batches through a channel and frees them. Prints what
//! a message takes, beside messages in boxes of the program's allocator, and what the pool grew to. Then an object goes
//! and its handle stays.

use std::error::Error;
use std::hint::black_box;
use std::sync::mpsc::sync_channel;
use std::thread;
use std::time::Instant;

use nbbs_pool::{Config, Handles, Pool};

/// A message of 64 bytes.
type Message = [u64; 8];

const BATCHES: u64 = 10_000;
const BATCH: u64 = 100;
/// The batches that are on their way at most.
const WAITING: usize = 16;

fn main() -> Result<(), Box<dyn Error>> {
    let pool = Pool::<Message>::with_config(Config::new().ahead(256));
    let in_pool = sent(
        || pool.local(),
        |local, number| local.alloc([number; 8]).expect("the pool may grow"),
        |local, message| {
            let number = message[7];
            local.free(message);
            number
        },
    );
    let in_boxes = sent(|| (), |(), number| Box::new([number; 8]), |(), message| message[7]);
    println!("a message takes {in_pool:.0} ns in the pool, {in_boxes:.0} ns in a box");
    println!("{} are in use; the pool grew to {} slots", pool.len(), pool.capacity());

    let sessions = Handles::<String>::new();
    let name = sessions.insert("alice".to_owned())?;
    println!("handle {name:?} is that of {}", *sessions.get(name)?);
    sessions.remove(name)?;
    let next = sessions.insert("bob".to_owned())?;
    println!(
        "handle {next:?} has her slot, and hers is known to be stale: {:?}",
        sessions.get(name).err()
    );
    Ok(())
}

/// Sends messages from one thread to another, and returns what each takes, in nanoseconds. Each thread has a place of
/// its own, where one makes messages and the other frees them.
fn sent<P, M: Send>(
    place: impl Fn() -> P + Sync,
    make: impl Fn(&mut P, u64) -> M + Sync,
    free: impl Fn(&mut P, M) -> u64 + Sync,
) -> f64 {
    let (sender, receiver) = sync_channel::<Vec<M>>(WAITING);
    let begin = Instant::now();
    thread::scope(|scope| {
        scope.spawn(|| {
            let (sender, mut place) = (sender, place());
            for batch in 0..BATCHES {
                let messages = (0..BATCH).map(|number| make(&mut place, batch * BATCH + number));
                sender.send(messages.collect()).expect("the receiver waits for it");
            }
        });
        let mut place = place();
        let numbers =
            receiver.into_iter().flatten().map(|message| free(&mut place, black_box(message)));
        assert!(numbers.eq(0..BATCHES * BATCH), "messages are lost");
    });
    begin.elapsed().as_nanos() as f64 / (BATCHES * BATCH) as f64
}
