//! The course of the demonstration: what happens in which order, and what is observed.

use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use comfy_table::Table;

use super::processes::Processes;
use super::shared::{FRAME, Number, Order, Shared, frame_units, units_of};
use crate::print;
use crate::table::{size, table};

/// The time between two observations.
const LOOK: Duration = Duration::from_millis(250);

/// The most time that an expected event may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// Runs the whole course.
pub fn run(processes: Processes, shared: &Shared, kills: u32) -> anyhow::Result<()> {
    let page = rustix::param::page_size() as u64;
    print(format_args!(
        "a guest of {} in {} frames of {}; beside its memory lie {} of metadata and 2 bits a frame",
        size(shared.frames() * FRAME),
        shared.frames(),
        size(FRAME),
        size(8 * nbbs::metadata_words(shared.frames() * FRAME / page) as u64),
    ))?;
    let rows = table(
        &[
            "time",
            "",
            "guest holds",
            "resident",
            "withheld",
            "reclaimed",
            "installed",
            "a second",
            "refused",
        ],
        2,
    );
    let begun = Instant::now();
    let mut course = Course { processes, shared, begun, rows, last: begun, before: [0; 4] };
    let played = course.play(kills);
    let printed = print(&course.rows);
    let deaths = played?;
    printed?;
    print(course.verdict(&deaths)?)?;
    Ok(())
}

struct Course<'a> {
    processes: Processes,
    shared: &'a Shared,
    begun: Instant,
    rows: Table,
    /// The time of the last observation, and the counts then.
    last: Instant,
    before: [u64; 4],
}

/// What the killed hosts left behind.
struct Deaths {
    killed: u32,
    /// The number of hosts that were killed in the middle of a frame.
    in_hand: u32,
    /// The number of units that a successor gave back.
    inherited: u64,
}

impl Course<'_> {
    fn play(&mut self, kills: u32) -> anyhow::Result<Deaths> {
        let frames = self.shared.frames();
        self.look("nothing is backed")?;
        self.processes.start_guest()?;
        self.want(800, "no host: the guest fills up")?;
        self.want(200, "frees most, which stays resident")?;
        self.processes.start_host()?;
        self.order(Order::Automatic, "a host takes what is free")?;
        self.want(600, "the guest needs more, and has it installed")?;
        self.want(200, "and less")?;
        self.withhold(frames / 2, "half is withheld")?;
        self.want(800, "the guest wants more than there is")?;
        self.withhold(0, "nothing is withheld")?;
        self.want(300, "less again")?;
        self.suspend()?;
        let deaths = self.kill(kills)?;
        self.look("hosts were killed, the last one is at work")?;
        self.end()?;
        Ok(deaths)
    }

    /// Sets how many thousandths of its memory the guest is to hold, and observes.
    fn want(&mut self, wanted: u64, what: &str) -> anyhow::Result<()> {
        self.shared.set(Number::Wanted, wanted);
        self.watch(what)
    }

    fn order(&mut self, order: Order, what: &str) -> anyhow::Result<()> {
        self.shared.set(Number::Order, order as u64);
        self.watch(what)
    }

    fn withhold(&mut self, frames: u64, what: &str) -> anyhow::Result<()> {
        self.shared.set(Number::Withheld, frames);
        self.until(|shared| shared.withheld().count() == frames, "the frames are withheld")?;
        self.watch(what)
    }

    /// Observes twice, once at the beginning.
    fn watch(&mut self, what: &str) -> anyhow::Result<()> {
        sleep(LOOK / 2);
        self.look(what)?;
        sleep(2 * LOOK);
        self.look("")
    }

    fn look(&mut self, what: &str) -> anyhow::Result<()> {
        self.processes.check()?;
        let shared = self.shared;
        let page = FRAME / frame_units();
        let counts = [Number::Reclaimed, Number::Installed, Number::Operations, Number::Refused]
            .map(|number| shared.get(number));
        let [reclaimed, installed, operations, refused] =
            std::array::from_fn(|at| counts[at] - self.before[at]);
        let time = self.last.elapsed().as_secs_f64();
        (self.last, self.before) = (Instant::now(), counts);
        self.rows.add_row([
            format!("{:.2} s", self.begun.elapsed().as_secs_f64()),
            what.to_owned(),
            size(shared.get(Number::Held) * page),
            size(shared.resident()?),
            size(shared.withheld().count() * FRAME),
            size(reclaimed * FRAME),
            size(installed * FRAME),
            format!("{:.0} k", operations as f64 / 1e3 / time),
            refused.to_string(),
        ]);
        Ok(())
    }

    /// Waits for an expected event while guest and host are running.
    fn until(&mut self, mut there: impl FnMut(&Shared) -> bool, what: &str) -> anyhow::Result<()> {
        let begun = Instant::now();
        while !there(self.shared) {
            self.processes.check()?;
            ensure!(begun.elapsed() < PATIENCE, "{what}: not within {} s", PATIENCE.as_secs());
            sleep(Duration::from_micros(100));
        }
        Ok(())
    }

    /// Checks that the guest goes on, whatever has become of the host.
    fn guest_goes_on(&mut self) -> anyhow::Result<()> {
        let before = self.shared.get(Number::Operations);
        self.until(|shared| shared.get(Number::Operations) > before + 1000, "the guest goes on")
    }

    fn suspend(&mut self) -> anyhow::Result<()> {
        self.shared.set(Number::Order, Order::Busy as u64);
        sleep(LOOK / 5);
        self.processes.suspend_host(true)?;
        self.guest_goes_on()?;
        self.watch("the host is stopped in the middle, the guest goes on")?;
        self.processes.suspend_host(false)
    }

    /// Kills hosts at work. The guest goes on without a host, and the next host takes over what was left.
    fn kill(&mut self, kills: u32) -> anyhow::Result<Deaths> {
        let mut deaths = Deaths { killed: 0, in_hand: 0, inherited: 0 };
        for kill in 0..kills {
            // A changing demand gives the host something to do.
            self.shared.set(Number::Wanted, if kill % 2 == 0 { 200 } else { 600 });
            let (passes, reclaimed) =
                (self.shared.get(Number::Passes), self.shared.get(Number::Reclaimed));
            let at_work = |shared: &Shared| {
                shared.get(Number::Passes) > passes + 1 && shared.get(Number::Reclaimed) > reclaimed
            };
            self.until(at_work, "the host is at work")?;
            sleep(Duration::from_micros(fastrand::u64(..2000)));
            let inherited = self.shared.get(Number::Inherited);
            self.processes.kill_host()?;
            deaths.killed += 1;
            self.guest_goes_on()?;
            self.processes.start_host()?;
            let passes = self.shared.get(Number::Passes);
            self.until(|shared| shared.get(Number::Passes) > passes, "the next host is at work")?;
            let found = self.shared.get(Number::Inherited) - inherited;
            deaths.in_hand += u32::from(found > 0);
            deaths.inherited += found;
        }
        Ok(deaths)
    }

    /// Ends guest and host: the guest frees everything, and the host takes all of it.
    fn end(&mut self) -> anyhow::Result<()> {
        self.shared.set(Number::Wanted, 0);
        self.until(|shared| shared.get(Number::Held) == 0, "the guest frees everything")?;
        let frames = self.shared.frames();
        self.until(|shared| shared.not_backed().count() == frames, "the host takes everything")?;
        self.look("the guest has freed everything")?;
        self.shared.set(Number::Stop, 1);
        self.processes.wait()
    }

    /// Checks that nothing is missing, and returns a summary.
    fn verdict(&self, deaths: &Deaths) -> anyhow::Result<String> {
        let shared = self.shared;
        let resident = shared.resident()?;
        ensure!(resident == 0, "{} are resident, though no frame is backed", size(resident));
        let pages = shared.pages()?;
        shared.owners().check_empty()?;
        for frame in 0..shared.frames() {
            pages.reserve(units_of(frame)).with_context(|| format!("frame {frame} is lost"))?;
        }
        let audit = pages.audit()?;
        let Deaths { killed, in_hand, inherited } = deaths;
        Ok(format!(
            "owner map and contents: nothing overlapped in {} operations of the guest, {} blocks were checked while held\n\
             {killed} hosts killed, {in_hand} of them with a frame in hand; their successors gave back all of the {inherited} \
             pages; nothing is lost\n\
             audit: in order, {} merges wait",
            shared.get(Number::Operations),
            shared.get(Number::Checked),
            audit.waiting_merges,
        ))
    }
}
