//! Plans for robots, the clients of a load run. A plan decides how many robots are active and when
//! the run ends. It knows the elapsed time and the sums of the run so far, such as the number of
//! started requests. One plan follows the phases of PolyMix-4.

use crate::load::options::Stop;
use crate::load::outcome::{Answered, ErrorCause, LoadReport, Unanswered};
use foxy_workload::Request;
use foxy_workload::polymix::PolyMix4;
use foxy_workload::polymix::phases::{Factors, Goal, PolymixPhase};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// A plan's instructions for one moment: how many robots (clients) are active, and in which section
/// of the run new requests count.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// `load` is the share of the robots (clients) that are active. The other two factors change
    /// how often requests repeat an object, and how often they are special (`no-cache`, conditional
    /// and similar).
    pub factors: Factors,
    /// The number of the section (a part of the run with its own report) in which new requests
    /// count.
    pub section: usize,
}

/// Decides how many robots are active and when the run ends.
pub trait Plan {
    /// Returns the number of sections of the run. A section is a part with its own report.
    fn sections(&self) -> usize;

    /// Returns the activity of the robots (clients) at the time `elapsed`, which must never
    /// decrease. `None` ends the run.
    fn step(&mut self, elapsed: Duration, seen: &Seen) -> Option<Step>;
}

/// A plan in which all robots (clients) are active until a number of requests or a time is reached.
pub struct Steady(Stop);

impl Steady {
    /// Creates a plan that runs until `stop`.
    pub const fn new(stop: Stop) -> Self {
        Self(stop)
    }
}

impl Plan for Steady {
    fn sections(&self) -> usize {
        1
    }

    fn step(&mut self, elapsed: Duration, seen: &Seen) -> Option<Step> {
        let over = match self.0 {
            Stop::Requests(count) => seen.begun >= count,
            Stop::After(time) => elapsed >= time,
        };
        (!over).then_some(Step { factors: Factors::full(1.0), section: 0 })
    }
}

/// A plan with the phases of PolyMix-4, a workload of the tool Web Polygraph. Each request counts
/// in the phase in which it started.
#[derive(Clone, Debug)]
pub struct Schedule {
    phases: Vec<PolymixPhase>,
    fill_bytes: u64,
    current: usize,
    since: Duration,
    filled_before: u64,
}

impl Schedule {
    /// Creates a plan with the phases of this model.
    pub fn new(knobs: &PolyMix4) -> Self {
        let (phases, fill_bytes) = (knobs.phases(), knobs.fill_bytes());
        Self { phases, fill_bytes, current: 0, since: Duration::ZERO, filled_before: 0 }
    }

    /// Returns the names of the phases.
    pub fn names(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.phases.iter().map(|phase| phase.name)
    }
}

impl Plan for Schedule {
    fn sections(&self) -> usize {
        self.phases.len()
    }

    fn step(&mut self, elapsed: Duration, seen: &Seen) -> Option<Step> {
        loop {
            let phase = self.phases.get(self.current)?;
            let within = elapsed.saturating_sub(self.since);
            let over = match phase.goal {
                Goal::After(time) => within >= time,
                Goal::Filled => {
                    seen.frozen && seen.fill_bytes - self.filled_before >= self.fill_bytes
                }
            };
            if !over {
                return Some(Step { factors: phase.factors_at(within), section: self.current });
            }
            self.current += 1;
            (self.since, self.filled_before) = (elapsed, seen.fill_bytes);
        }
    }
}

#[derive(Debug, Default)]
pub(crate) struct Live {
    begun: AtomicU64,
    ended: AtomicU64,
    answered: AtomicU64,
    response_us: AtomicU64,
    plain: AtomicU64,
    hits: AtomicU64,
    fill_bytes: AtomicU64,
}

/// The sums of a run so far, such as the number of started requests. A plan chooses the next
/// step of the run from these sums.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// The number of started requests.
    pub begun: u64,
    /// The number of requests that ended, successful or failed.
    pub ended: u64,
    /// The number of complete and correct answers.
    pub answered: u64,
    /// The sum of all response times, in microseconds.
    pub response_us: u64,
    /// The number of answers to plain GETs (without no-cache or a condition).
    pub plain: u64,
    /// The number of hits among the plain GETs (without no-cache or a condition).
    pub hits: u64,
    /// The body bytes of cacheable misses, which fill the cache.
    pub fill_bytes: u64,
    /// Whether the set of objects has stopped growing. Requests choose repeats from this set.
    pub frozen: bool,
}

impl Live {
    pub(crate) fn begin(&self) {
        self.begun.fetch_add(1, Relaxed);
    }

    pub(crate) fn end(
        &self,
        request: &Request,
        outcome: &Result<(Answered, Result<bool, ErrorCause>), Unanswered>,
        latency: Duration,
    ) {
        self.ended.fetch_add(1, Relaxed);
        if let Ok((answer, Ok(hit))) = outcome {
            self.answered.fetch_add(1, Relaxed);
            self.response_us
                .fetch_add(u64::try_from(latency.as_micros()).unwrap_or(u64::MAX), Relaxed);
            self.plain.fetch_add(u64::from(LoadReport::is_plain(request)), Relaxed);
            self.hits.fetch_add(u64::from(*hit && LoadReport::is_plain(request)), Relaxed);
            self.fill_bytes.fetch_add(LoadReport::fills(request, answer, *hit), Relaxed);
        }
    }

    pub(crate) fn seen(&self, frozen: bool) -> Seen {
        Seen {
            begun: self.begun.load(Relaxed),
            ended: self.ended.load(Relaxed),
            answered: self.answered.load(Relaxed),
            response_us: self.response_us.load(Relaxed),
            plain: self.plain.load(Relaxed),
            hits: self.hits.load(Relaxed),
            fill_bytes: self.fill_bytes.load(Relaxed),
            frozen,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use foxy_workload::polymix::requests_per_start;
    use foxy_workload::{Content, Model, RequestStream, Workload};

    /// Sends the requests of all phases in virtual time to a perfect cache, which stores every
    /// object immediately. Returns the name and the hit ratio of each phase.
    fn offered(knobs: &PolyMix4, seed: u64) -> Vec<(&'static str, f64)> {
        const TICK: Duration = Duration::from_millis(50);
        let model = Model::PolyMix4(knobs.clone());
        let workload = Workload { model, ..Workload::find("polymix-4").expect("known") };
        let mut stream = RequestStream::new(&workload, seed);
        let mut schedule = Schedule::new(knobs);
        let mut counts = vec![(0u32, 0u32); schedule.sections()];
        let (mut elapsed, mut due, mut fill_bytes, mut section) = (Duration::ZERO, 0.0, 0, 0);
        loop {
            let seen = Seen { fill_bytes, frozen: stream.is_frozen(), ..Seen::default() };
            let Some(step) = schedule.step(elapsed, &seen) else { break };
            if std::mem::replace(&mut section, step.section) != step.section {
                stream.begin_phase();
            }
            elapsed += TICK;
            due += knobs.peak_rate / requests_per_start() * step.factors.load * TICK.as_secs_f64();
            while due >= 1.0 {
                due -= 1.0;
                let page = stream.next_request_with(&step.factors);
                for request in std::iter::once(page).chain(page.embedded()) {
                    let Content::Document(document) = request.content else { continue };
                    if LoadReport::is_plain(&request) {
                        let (plain, hits) = &mut counts[step.section];
                        (*plain, *hits) = (*plain + 1, *hits + u32::from(request.is_offered_hit()));
                        let fills = request.is_cachable() && !request.is_offered_hit();
                        fill_bytes += if fills { document.nature().size } else { 0 };
                    }
                }
            }
        }
        let ratio = |(plain, hits): &(u32, u32)| f64::from(*hits) / f64::from((*plain).max(1));
        schedule.names().zip(counts.iter().map(ratio)).collect()
    }

    /// A run of Web Polygraph 4.9 had 3.7 % possible hits in the phase fill, which fills the cache.
    /// The run had 51.9 % possible hits in top1, the first phase at full load. There were 40
    /// requests per second, a cache of 20 MB and top phases of eight minutes.
    #[test]
    fn phases_offer_the_hits_that_web_polygraph_offers() {
        let knobs = PolyMix4 {
            peak_rate: 40.0,
            fill_rate: 40.0,
            cache_size: 30 * 20_000_000,
            time_scale: 30,
            delay_scale: 1,
            servers: None,
        };
        let runs: Vec<_> = (1..=6).map(|seed| offered(&knobs, seed)).collect();
        let mean = |name| {
            let ratios = runs.iter().flatten().filter(|phase| phase.0 == name).map(|phase| phase.1);
            ratios.sum::<f64>() / 6.0
        };
        for (name, expected) in [("fill", 0.037), ("top1", 0.519), ("top2", 0.519)] {
            assert!((mean(name) - expected).abs() < 0.01, "{name}: {}", mean(name));
        }
        // Phase framp, the first phase, raises the load. It has few hits, because no object was
        // requested before. Phase fexit, after the fill, raises the share of repeated requests to
        // its final value.
        assert!(mean("framp") < mean("fill"), "{}", mean("framp"));
        assert!((0.1..0.4).contains(&mean("fexit")), "{}", mean("fexit"));
    }

    #[test]
    fn the_fill_ends_when_enough_is_filled_and_the_working_set_is_frozen() {
        let Model::PolyMix4(knobs) = Workload::find("polymix-4").expect("known").model else {
            panic!("another model")
        };
        let knobs = PolyMix4 { time_scale: 60, ..knobs };
        let mut schedule = Schedule::new(&knobs);
        let second = Duration::from_secs;
        let mut section = |at, fill_bytes, frozen| {
            let seen = Seen { fill_bytes, frozen, ..Seen::default() };
            schedule.step(second(at), &seen).map(|step| step.section)
        };
        let enough = knobs.fill_bytes();
        assert_eq!(section(19, 5, false), Some(0));
        assert_eq!(section(20, 5, false), Some(1));
        assert_eq!(section(5000, 5 + enough, false), Some(1));
        assert_eq!(section(5000, 4 + enough, true), Some(1));
        assert_eq!(section(5001, 5 + enough, true), Some(2));
        assert_eq!(section(5021, 5 + enough, true), Some(3));
        assert_eq!(section(9000, 5 + enough, true), Some(4));
    }
}
