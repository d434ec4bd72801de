//! The requests of a client in the Wisconsin Proxy Benchmark 1.0 (Almeida and Cao 1998). Phase 1
//! requests new files only. In phase 2, half of the requests usually repeat a file of the same
//! client, recent files more often. Each client has its own requests and files.

use crate::object::Object;
use foxy_base::Random;
use foxy_base::random::split_mix;

const LARGE_FILE_BYTES: u64 = 1024 * 1024;
/// Upper bound of a small file's size in bytes, exclusive.
const SMALL_FILE_BYTES: u64 = 40 * 1024;

/// The distribution of file sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sizes {
    /// 99 % of sizes are uniform from 0 to 40 KB, and 1 % are exactly 1 MB.
    Uniform,
    /// Sizes follow a Pareto distribution with α = 1.1 and k = 3.0 KB, and a mean of 33 KB.
    Pareto,
}

/// The knobs of the benchmark that affect requests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Wpb {
    /// Number of requests of a client in each phase.
    pub requests: u32,
    /// Probability that a request of phase 2 repeats an earlier file of its client.
    pub inherent_hit_ratio: f64,
    /// Distribution of file sizes.
    pub sizes: Sizes,
    /// Number of servers. Each file belongs to one server, and all servers are equally likely.
    pub servers: u32,
    /// Seed of the files' sizes and of the requests.
    pub seed: u64,
}

impl Wpb {
    /// Returns the benchmark's usual knobs: 200 requests per phase, half of phase 2 repeats,
    /// uniform sizes, and seed 1.
    pub const fn new(servers: u32) -> Self {
        Self { requests: 200, inherent_hit_ratio: 0.5, sizes: Sizes::Uniform, servers, seed: 1 }
    }
}

/// A phase of the benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Requests new files only.
    First,
    /// Requests new and repeated files.
    Second,
}

/// A request of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WpbRequest {
    /// Requested file.
    pub object: Object,
    /// Number of the server that has the file, from 0.
    pub server: u32,
    /// Number of requests since the client's earlier request of this file. `None` for a new file.
    pub age: Option<usize>,
}

/// The stream of requests of one client.
#[derive(Clone, Debug)]
pub struct WpbClient {
    knobs: Wpb,
    random: Random,
    /// Upper bits of file numbers. They identify client and run.
    base: u64,
    files: u64,
    issued: Vec<(Object, u32)>,
    /// Sum of 1/t for t from 1 to the number of requests so far.
    harmonic: f64,
}

impl WpbClient {
    /// Makes the stream of client number `client`.
    pub fn new(knobs: &Wpb, client: u32) -> Self {
        let mut state = knobs.seed ^ u64::from(client).rotate_left(40);
        let own = split_mix(&mut state);
        // The upper 40 bits identify the client. Two clients have equal bits with a probability of
        // about 10^-12.
        let base = own & !((1 << 24) - 1);
        Self {
            knobs: *knobs,
            random: Random::new(own),
            base,
            files: 0,
            issued: Vec::new(),
            harmonic: 0.0,
        }
    }

    /// Returns the phase of the next request, or `None` at the end.
    pub fn phase(&self) -> Option<Phase> {
        let phase = self.knobs.requests as usize;
        match self.issued.len() {
            before if before < phase => Some(Phase::First),
            before if before < 2 * phase => Some(Phase::Second),
            _ => None,
        }
    }

    /// Returns the next request, or `None` at the end of phase 2.
    pub fn next_request(&mut self) -> Option<WpbRequest> {
        let repeats =
            self.phase()? == Phase::Second && self.random.chance(self.knobs.inherent_hit_ratio);
        let age = if repeats { self.age() } else { None };
        let (object, server) = match age {
            Some(age) => self.issued[self.issued.len() - age],
            None => (
                self.new_file(),
                u32::try_from(self.random.below(self.knobs.servers.into())).unwrap_or(0),
            ),
        };
        self.issued.push((object, server));
        self.harmonic += 1.0 / count(self.issued.len());
        Some(WpbRequest { object, server, age })
    }

    /// Draws how many requests ago the repeated request was made: t requests with a probability
    /// proportional to 1/t. Returns `None` before the first request.
    fn age(&mut self) -> Option<usize> {
        let mut left = self.random.unit() * self.harmonic;
        let issued = self.issued.len();
        let found = (1..=issued).find(|&age| {
            left -= 1.0 / count(age);
            left < 0.0
        });
        // If rounding errors prevented a choice, choose the oldest request.
        found.or((issued > 0).then_some(issued))
    }

    fn new_file(&mut self) -> Object {
        self.files += 1;
        let size = match self.knobs.sizes {
            Sizes::Uniform if self.random.chance(0.01) => LARGE_FILE_BYTES,
            Sizes::Uniform => self.random.below(SMALL_FILE_BYTES),
            Sizes::Pareto => pareto(&mut self.random),
        };
        Object { id: self.base | self.files, size, version: 1 }
    }
}

#[expect(clippy::cast_precision_loss, reason = "requests of a client are far below 2^53")]
fn count(number: usize) -> f64 {
    number as f64
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "saturates; never negative"
)]
fn pareto(random: &mut Random) -> u64 {
    const ALPHA: f64 = 1.1;
    const LEAST: f64 = 3.0 * 1024.0;
    (LEAST * (1.0 - random.unit()).powf(-1.0 / ALPHA)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn requests(knobs: &Wpb, clients: u32) -> Vec<Vec<WpbRequest>> {
        let all = |client| {
            let mut client = WpbClient::new(knobs, client);
            std::iter::from_fn(|| client.next_request()).collect()
        };
        (0..clients).map(all).collect()
    }

    fn share(part: usize, whole: usize) -> f64 {
        count(part) / count(whole)
    }

    #[test]
    fn phase_1_asks_for_new_files_only_and_no_two_clients_for_the_same() {
        let mut seen = HashSet::new();
        for client in requests(&Wpb::new(8), 32) {
            assert_eq!(client.len(), 400);
            for request in &client[..200] {
                assert!(request.age.is_none() && seen.insert(request.object.id), "{request:?}");
                assert!(request.server < 8);
            }
        }
    }

    #[test]
    fn half_of_phase_2_repeats_which_is_a_quarter_of_everything() {
        let clients = requests(&Wpb::new(8), 100);
        let repeats = clients.iter().flatten().filter(|request| request.age.is_some()).count();
        // The tolerances are four standard deviations of the share of repeats: 0.014 for the 20,000
        // requests of phase 2, and half of it for both phases.
        assert!((share(repeats, 20_000) - 0.5).abs() < 0.014, "{repeats}");
        assert!((share(repeats, 40_000) - 0.25).abs() < 0.007, "{repeats}");
    }

    #[test]
    fn a_repeat_asks_for_exactly_what_was_asked_for_then() {
        for client in requests(&Wpb { sizes: Sizes::Pareto, ..Wpb::new(3) }, 4) {
            for (number, request) in client.iter().enumerate() {
                if let Some(age) = request.age {
                    let then = client[number - age];
                    assert_eq!((request.object, request.server), (then.object, then.server));
                }
            }
        }
    }

    #[test]
    fn the_age_of_a_repeat_is_as_likely_as_its_inverse() {
        let knobs = Wpb { requests: 1000, inherent_hit_ratio: 1.0, ..Wpb::new(1) };
        let mut expected = [0.0; 3];
        let mut seen = [0.0; 3];
        for client in requests(&knobs, 20) {
            for (number, request) in client.iter().enumerate().skip(1000) {
                let harmonic = |most: usize| (1..=most).map(|age| 1.0 / count(age)).sum::<f64>();
                let age = request.age.expect("all are repeats");
                for (slot, most) in [1, 10, 100].into_iter().enumerate() {
                    expected[slot] += harmonic(most) / harmonic(number);
                    seen[slot] += if age <= most { 1.0 } else { 0.0 };
                }
            }
        }
        for (seen, expected) in seen.into_iter().zip(expected) {
            // The tolerance is four times the square root of the expected count, which is at least
            // four standard deviations.
            assert!(
                (seen - expected).abs() < 4.0 * f64::sqrt(expected),
                "{seen}, expected {expected:.0}"
            );
        }
    }

    #[test]
    fn sizes_are_the_two_that_the_benchmark_knows() {
        let sizes = |sizes| {
            let clients = requests(&Wpb { sizes, ..Wpb::new(1) }, 100);
            clients
                .iter()
                .flatten()
                .filter(|request| request.age.is_none())
                .map(|r| r.object.size)
                .collect()
        };
        let uniform: Vec<u64> = sizes(Sizes::Uniform);
        let large = uniform.iter().filter(|&&size| size == LARGE_FILE_BYTES).count();
        assert!((share(large, uniform.len()) - 0.01).abs() < 0.003, "{large} of {}", uniform.len());
        assert!(uniform.iter().all(|&size| size < SMALL_FILE_BYTES || size == LARGE_FILE_BYTES));
        let half = uniform.iter().filter(|&&size| size < SMALL_FILE_BYTES / 2).count();
        assert!((share(half, uniform.len()) - 0.495).abs() < 0.015, "{half} of {}", uniform.len());
        let pareto: Vec<u64> = sizes(Sizes::Pareto);
        assert!(pareto.iter().all(|&size| size >= 3 * 1024));
        for times in [2u32, 10] {
            let above = pareto.iter().filter(|&&size| size > u64::from(times) * 3 * 1024).count();
            let expected = f64::from(times).powf(-1.1);
            assert!(
                (share(above, pareto.len()) - expected).abs() < 0.015,
                "{above} beyond {times} k"
            );
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_requests_and_another_others() {
        let with = |seed| requests(&Wpb { seed, ..Wpb::new(4) }, 3);
        assert_eq!(with(7), with(7));
        let ids = |seed| with(seed).concat().iter().map(|r| r.object.id).collect::<HashSet<_>>();
        assert!(ids(7).is_disjoint(&ids(8)));
    }
}
