//! A sketch of the most frequent names in a stream, with a fixed number of counters: *space-saving*
//! (Metwally et al., 2005). When a new name finds no free counter, it takes the smallest counter
//! over, with its count. So a count may be too high, but never too low.

use std::collections::HashMap;

/// Longest name in bytes. Longer names are cut.
const MAX_NAME_BYTES: usize = 300;

/// The counter of a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameCount {
    pub name: Box<[u8]>,
    pub requests: u64,
    /// The count may be too high by this number.
    pub excess: u64,
    pub hits: u64,
    pub bytes: u64,
}

/// An event to count: a sampled request.
#[derive(Clone, Copy, Debug)]
pub struct CountedRequest {
    /// Number of requests that the event stands for.
    pub weight: u64,
    pub is_hit: bool,
    /// Number of bytes sent to clients.
    pub bytes: u64,
}

/// Counters for the most frequent names.
#[derive(Debug)]
pub struct Sketch {
    room: usize,
    tallies: Vec<NameCount>,
    places: HashMap<Box<[u8]>, usize>,
}

impl Sketch {
    /// Creates a sketch (counters of frequent names) with `room` counters.
    pub fn new(room: usize) -> Self {
        Self { room, tallies: Vec::new(), places: HashMap::new() }
    }

    pub fn add(&mut self, name: &[u8], event: CountedRequest) {
        let name = &name[..name.len().min(MAX_NAME_BYTES)];
        let place = self.places.get(name).copied().unwrap_or_else(|| self.take_place(name));
        let tally = &mut self.tallies[place];
        tally.requests += event.weight;
        tally.hits += if event.is_hit { event.weight } else { 0 };
        tally.bytes += event.bytes * event.weight;
    }

    fn take_place(&mut self, name: &[u8]) -> usize {
        let name: Box<[u8]> = name.into();
        if self.tallies.len() < self.room {
            self.places.insert(name.clone(), self.tallies.len());
            self.tallies.push(NameCount { name, requests: 0, excess: 0, hits: 0, bytes: 0 });
            return self.tallies.len() - 1;
        }
        let smallest = self.tallies.iter().enumerate().min_by_key(|(_, tally)| tally.requests);
        let place = smallest.map_or(0, |(place, _)| place);
        let tally = &mut self.tallies[place];
        self.places.remove(&tally.name);
        self.places.insert(name.clone(), place);
        *tally =
            NameCount { name, requests: tally.requests, excess: tally.requests, hits: 0, bytes: 0 };
        place
    }

    /// Returns the `most` names with the highest counts, highest first.
    pub fn top(&self, most: usize) -> Vec<&NameCount> {
        let mut all: Vec<&NameCount> = self.tallies.iter().collect();
        all.sort_by(|a, b| b.requests.cmp(&a.requests).then_with(|| a.name.cmp(&b.name)));
        all.truncate(most);
        all
    }

    /// Halves all counts, so that names that are no longer requested leave the list of frequent
    /// names.
    pub fn halve(&mut self) {
        for tally in &mut self.tallies {
            tally.requests /= 2;
            tally.excess /= 2;
            tally.hits /= 2;
            tally.bytes /= 2;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use foxy_base::Random;
    use std::collections::BTreeMap;

    const HIT: CountedRequest = CountedRequest { weight: 1, is_hit: true, bytes: 10 };

    #[test]
    fn a_count_is_never_too_low_and_at_most_its_excess_too_high() {
        let (mut sketch, mut exact, mut random) =
            (Sketch::new(16), BTreeMap::<Vec<u8>, u64>::new(), Random::new(5));
        for _ in 0..20_000 {
            let rank = if random.below(4) == 0 { 0 } else { random.below(64) };
            let name = format!("host-{rank}").into_bytes();
            sketch.add(&name, HIT);
            *exact.entry(name).or_default() += 1;
        }
        let top = sketch.top(16);
        assert_eq!(top.len(), 16);
        for tally in &top {
            let true_count = exact[&tally.name[..]];
            assert!(tally.requests >= true_count, "{tally:?}, not {true_count}");
            assert!(tally.requests - tally.excess <= true_count, "{tally:?}, not {true_count}");
        }
        assert_eq!(&*top[0].name, b"host-0");
    }

    #[test]
    fn names_are_cut_and_counts_fade() {
        let mut sketch = Sketch::new(2);
        sketch.add(&[b'x'; 5000], CountedRequest { weight: 4, ..HIT });
        sketch.halve();
        let top = sketch.top(9);
        assert_eq!((top[0].name.len(), top[0].requests, top[0].bytes), (MAX_NAME_BYTES, 2, 20));
    }
}
