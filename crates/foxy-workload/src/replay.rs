//! The gets of a trace as a workload: which object of the verifying origin stands for each, and
//! whether it was asked for before. It reads no logs (`trace` does) and waits for nothing: who
//! replays keeps the times.

use crate::object::Object;
use crate::trace::Trace;
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

/// The object that stands for a URL when its answer has this size. A URL whose size changes is
/// another object from then on: a cache that has the old one has not the new.
pub fn object(url: u32, size: u64) -> Object {
    Object { id: u64::from(url), size, version: 1 }
}

/// One get, 24 bytes large.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Step {
    /// Microseconds after the first get.
    time: u64,
    size: u64,
    url: u32,
    repeat: bool,
}

const _: () = assert!(size_of::<Step>() == 24);

/// The gets of a trace in their order, without names and clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replay {
    steps: Arc<Vec<Step>>,
}

impl From<Trace> for Replay {
    /// Takes the gets; a set of the objects seen so far is needed meanwhile, and given up.
    fn from(trace: Trace) -> Self {
        let mut seen = HashSet::new();
        let steps = trace.gets.into_iter().map(|get| {
            let repeat = !seen.insert((get.url, get.size));
            Step { time: get.time, size: get.size, url: get.url, repeat }
        });
        Self { steps: Arc::new(steps.collect()) }
    }
}

impl Replay {
    /// How many gets there are.
    pub fn requests(&self) -> u64 {
        self.steps.len() as u64
    }

    /// When a get was recorded, after the first; `None` beyond the last.
    pub fn time(&self, number: u64) -> Option<Duration> {
        let step = self.steps.get(usize::try_from(number).ok()?)?;
        Some(Duration::from_micros(step.time))
    }
}

/// The objects of a replay, one after the other. After the last get it begins again with the first.
#[derive(Clone, Debug)]
pub(crate) struct ReplayStream {
    replay: Replay,
    next: usize,
    again: bool,
}

impl ReplayStream {
    /// From the first get on.
    pub(crate) fn new(replay: &Replay) -> Self {
        Self { replay: replay.clone(), next: 0, again: false }
    }

    /// The next object, and whether it was asked for before.
    ///
    /// # Panics
    /// When the trace has no get at all.
    pub(crate) fn next(&mut self) -> (Object, bool) {
        if self.next == self.replay.steps.len() {
            (self.next, self.again) = (0, true);
        }
        let step = self.replay.steps[self.next];
        self.next += 1;
        (object(step.url, step.size), step.repeat || self.again)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::Get;

    /// URLs and sizes, a second apart.
    fn replay(gets: &[(u32, u64)]) -> Replay {
        let get = |(number, &(url, size)): (usize, &(u32, u64))| Get {
            time: number as u64 * 1_000_000,
            client: 0,
            url,
            size,
        };
        Trace { gets: gets.iter().enumerate().map(get).collect(), ..Trace::default() }.into()
    }

    #[test]
    fn a_url_of_the_same_size_is_a_repeat_and_one_of_another_size_is_not() {
        let replay = replay(&[(0, 10), (1, 10), (0, 10), (0, 11), (0, 10)]);
        let mut stream = ReplayStream::new(&replay);
        let found: Vec<(String, bool)> = (0..5)
            .map(|_| {
                let (object, repeat) = stream.next();
                (object.to_string(), repeat)
            })
            .collect();
        let expected =
            [("0/10", false), ("1/10", false), ("0/10", true), ("0/11", false), ("0/10", true)];
        assert_eq!(found, expected.map(|(name, repeat)| (format!("/o/{name}/1"), repeat)));
        assert_eq!(stream.next(), (object(0, 10), true), "it begins again with what was asked for");
    }

    #[test]
    fn times_are_those_of_the_trace_and_end_with_it() {
        let replay = replay(&[(0, 1), (1, 1)]);
        assert_eq!(replay.time(1), Some(Duration::from_secs(1)));
        assert_eq!((replay.time(2), replay.requests()), (None, 2));
    }
}
