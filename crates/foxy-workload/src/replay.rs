//! Replays the GET requests of a trace as a workload. Each URL becomes a synthetic object, whose
//! bytes the client can check. The caller sends each request at its recorded time.

use crate::object::{Draw, Object};
use crate::trace::Trace;
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

/// Returns the synthetic object that replaces a URL. If the size of the URL changes in the trace,
/// another object replaces the URL. The reason is that a cached copy of the old size is not a hit.
pub fn object(url: u32, size: u64) -> Object {
    Object { id: u64::from(url), size, version: 1 }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Step {
    /// Time of the request in microseconds since the first GET of the trace.
    time: u64,
    size: u64,
    url: u32,
    is_repeat: bool,
}

const _: () = assert!(size_of::<Step>() == 24);

/// The GET requests of a trace, without names and clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replay {
    steps: Arc<Vec<Step>>,
}

impl From<Trace> for Replay {
    fn from(trace: Trace) -> Self {
        let mut seen = HashSet::new();
        let steps = trace.gets.into_iter().map(|get| {
            let is_repeat = !seen.insert((get.url, get.size));
            Step { time: get.time, size: get.size, url: get.url, is_repeat }
        });
        Self { steps: Arc::new(steps.collect()) }
    }
}

impl Replay {
    /// Number of GET requests.
    pub fn requests(&self) -> u64 {
        self.steps.len() as u64
    }

    /// Returns the time of request `number`, measured from the first request. Returns `None` beyond
    /// the last request.
    pub fn time(&self, number: u64) -> Option<Duration> {
        let step = self.steps.get(usize::try_from(number).ok()?)?;
        Some(Duration::from_micros(step.time))
    }
}

/// The objects of a replay. After the last request, the stream starts again.
#[derive(Clone, Debug)]
pub(crate) struct ReplayStream {
    replay: Replay,
    next: usize,
    is_again: bool,
}

impl ReplayStream {
    pub(crate) fn new(replay: &Replay) -> Self {
        Self { replay: replay.clone(), next: 0, is_again: false }
    }

    /// Returns the next object. Panics if the trace is empty.
    pub(crate) fn next(&mut self) -> Draw {
        if self.next == self.replay.steps.len() {
            (self.next, self.is_again) = (0, true);
        }
        let step = self.replay.steps[self.next];
        self.next += 1;
        let is_repeat = step.is_repeat || self.is_again;
        Draw { object: object(step.url, step.size), server: 0, is_repeat }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::Get;

    /// Makes a replay of pairs of URL and size, one second apart.
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
                let draw = stream.next();
                (draw.object.to_string(), draw.is_repeat)
            })
            .collect();
        let expected =
            [("0/10", false), ("1/10", false), ("0/10", true), ("0/11", false), ("0/10", true)];
        assert_eq!(found, expected.map(|(name, repeat)| (format!("/o/{name}/1"), repeat)));
        let again = Draw { object: object(0, 10), server: 0, is_repeat: true };
        assert_eq!(stream.next(), again, "it begins again with what was asked for");
    }

    #[test]
    fn times_are_those_of_the_trace_and_end_with_it() {
        let replay = replay(&[(0, 1), (1, 1)]);
        assert_eq!(replay.time(1), Some(Duration::from_secs(1)));
        assert_eq!((replay.time(2), replay.requests()), (None, 2));
    }
}
