//! Measures how long each call of the default engine occupies its thread, while a store is filled
//! and read. On a virtual machine, the clock of CPU time also runs while the host does other work.
//! So the benchmark performs each run twice, and the faster time of each call counts. The caller
//! supplies the clock.

use super::engine::{Store, record, settings};
use foxy_base::{Instant, Random};
use foxy_device::{IoDone, Memory};
use foxy_store::contract::{Lookup, Outbox, Scheme, StoreRequest};
use foxy_store::webcosm::Webcosm;
use foxy_store::{Observer, StoreStatus};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The number of `put` calls between two `get` calls.
const PUTS_A_GET: u64 = 4;

/// A clock that returns the CPU time of this thread.
pub type Clock = fn() -> Duration;

/// The duration above which the benchmark keeps the time of a call. Shorter calls are only counted.
const LONG: Duration = Duration::from_micros(100);

#[derive(Debug, Default)]
struct CallTimes {
    count: u64,
    /// The durations of long calls, by the number of the call in its run.
    long: BTreeMap<u64, Duration>,
}

#[derive(Clone, Copy, Debug)]
pub struct LongestCalls {
    pub count: u64,
    pub records: u64,
    /// The longest duration of a call. Each call is measured in two equal runs, and only the
    /// shorter of its two durations counts.
    pub took: Duration,
    /// The longest duration of a single call, over both runs.
    pub once: Duration,
}

impl LongestCalls {
    fn of(runs: &[CallTimes; 2], records: u64) -> Self {
        let [first, second] = runs;
        assert_eq!(
            first.count, second.count,
            "the same records, seed and clock make the same calls"
        );
        let faster =
            |(call, &took): (&u64, &Duration)| took.min(*second.long.get(call).unwrap_or(&LONG));
        Self {
            count: first.count,
            records,
            took: first.long.iter().map(faster).max().unwrap_or(LONG),
            once: runs.iter().flat_map(|run| run.long.values()).copied().max().unwrap_or(LONG),
        }
    }
}

struct TimedScheme {
    scheme: Box<dyn Scheme + Send>,
    clock: Clock,
    steps: Arc<Mutex<CallTimes>>,
}

impl TimedScheme {
    fn time(&mut self, call: impl FnOnce(&mut dyn Scheme)) {
        let begun = (self.clock)();
        call(&mut *self.scheme);
        let took = (self.clock)().saturating_sub(begun);
        let mut steps = self.steps.lock().unwrap_or_else(PoisonError::into_inner);
        steps.count += 1;
        let call = steps.count;
        if took > LONG {
            steps.long.insert(call, took);
        }
    }
}

impl Scheme for TimedScheme {
    fn start(&mut self, now: Instant, out: &mut Outbox) {
        self.scheme.start(now, out);
    }

    fn on_request(&mut self, request: StoreRequest, now: Instant, out: &mut Outbox) {
        self.time(|scheme| scheme.on_request(request, now, out));
    }

    fn on_io_done(&mut self, done: IoDone, now: Instant, out: &mut Outbox) {
        self.time(|scheme| scheme.on_io_done(done, now, out));
    }

    fn deadline(&self) -> Option<Instant> {
        self.scheme.deadline()
    }

    fn on_deadline(&mut self, now: Instant, out: &mut Outbox) {
        self.time(|scheme| scheme.on_deadline(now, out));
    }

    fn lookup(&self) -> Option<Arc<dyn Lookup>> {
        self.scheme.lookup()
    }
}

/// Replaces the content of a store in memory `turns` times by new records, and reads some of them.
/// Measures every call in two equal runs.
pub fn run(
    size: u64,
    turns: u64,
    seed: u64,
    length: &dyn Fn(&mut Random) -> usize,
    clock: Clock,
    progress: &mut dyn FnMut(u64),
) -> Result<LongestCalls, StoreStatus> {
    let total = turns * size;
    let mut once = |before: u64| {
        let observer = Observer::default();
        let steps = Arc::new(Mutex::new(CallTimes::default()));
        let scheme = Webcosm::boxed(&settings(size, seed), observer.clone());
        let timed = TimedScheme { scheme, clock, steps: Arc::clone(&steps) };
        let mut store = Store::of(Box::new(timed), Memory::default(), observer)?;
        let (mut random, mut records, mut admitted) = (Random::new(seed), 0, 0);
        while admitted < total {
            let content = record(records, length(&mut random));
            store.put(records, &content);
            admitted += content.len() as u64;
            records += 1;
            if records.is_multiple_of(PUTS_A_GET) {
                store.length(random.below(records));
            }
            progress(before + admitted);
        }
        store.flush();
        let counted = std::mem::take(&mut *steps.lock().unwrap_or_else(PoisonError::into_inner));
        Ok((counted, records))
    };
    let (first, records) = once(0)?;
    let (second, _) = once(total)?;
    Ok(LongestCalls::of(&[first, second], records))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    thread_local! {
        static TIME: Cell<Duration> = const { Cell::new(Duration::ZERO) };
    }

    /// A clock that advances by a millisecond with every reading.
    fn ticking() -> Duration {
        TIME.with(|time| time.replace(time.get() + Duration::from_millis(1)))
    }

    #[test]
    fn every_call_of_a_store_that_is_turned_over_is_timed() {
        let steps = run(16 << 20, 2, 1, &|_| 4_000, ticking, &mut |_| {}).expect("it serves");
        assert!(steps.count > steps.records && steps.records > 8_000, "{steps:?}");
        assert_eq!((steps.took, steps.once), (Duration::from_millis(1), Duration::from_millis(1)));
    }

    #[test]
    fn the_faster_time_of_each_call_counts() {
        let run = |long: &[(u64, u64)]| CallTimes {
            count: 9,
            long: long
                .iter()
                .map(|&(call, millis)| (call, Duration::from_millis(millis)))
                .collect(),
        };
        let longest = |runs| LongestCalls::of(&runs, 5);
        let both = longest([run(&[(1, 90), (4, 7), (6, 3)]), run(&[(4, 8), (5, 60), (6, 2)])]);
        assert_eq!((both.took, both.once), (Duration::from_millis(7), Duration::from_millis(90)));
        assert_eq!(longest([run(&[(1, 90)]), run(&[(2, 60)])]).took, LONG);
    }
}
