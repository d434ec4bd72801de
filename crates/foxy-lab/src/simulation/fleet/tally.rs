//! The counts of a simulated fleet, and the measures that follow from them.

use foxy_report::Measure;
use serde::{Deserialize, Serialize};

/// Requests, and the bytes of their responses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Volume {
    pub requests: u64,
    pub bytes: u64,
}

impl Volume {
    pub const fn add(&mut self, bytes: u64) {
        self.requests += 1;
        self.bytes += bytes;
    }

    const fn merge(&mut self, other: Self) {
        self.requests += other.requests;
        self.bytes += other.bytes;
    }
}

/// The counts of a run, or of a part of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FleetTally {
    /// Requests of clients.
    pub clients: Volume,
    /// Hits at the node that the client asked.
    pub at_node: Volume,
    /// Requests that another node asked the owner for.
    pub asked: Volume,
    /// Hits of these requests at the owner.
    pub at_owner: Volume,
    /// Requests that neither the node nor the owner could answer from its cache.
    pub missed: Volume,
    /// Requests to former owners.
    pub former_asked: u64,
    /// Missed requests that a former owner answered.
    pub at_former: Volume,
    /// Copies of hot responses that nodes made.
    pub copies: u64,
    /// Requests of clients and other nodes at each seat.
    pub load: Vec<u64>,
    /// Bytes in the cache of each seat at the end.
    pub stored: Vec<u64>,
    /// Requests of clients and hits in each interval of the run.
    pub windows: Vec<[u64; 2]>,
}

impl FleetTally {
    pub fn new(nodes: u32) -> Self {
        let seats = vec![0; nodes as usize];
        Self { load: seats.clone(), stored: seats, ..Self::default() }
    }

    /// Counts a request of a client in an interval of the run.
    pub fn in_window(&mut self, window: usize, is_hit: bool) {
        let [requests, hits] = self.window(window);
        *requests += 1;
        *hits += u64::from(is_hit);
    }

    /// Counts a hit at a former owner, whose request another part may count.
    pub fn former_hit(&mut self, bytes: u64, window: Option<usize>) {
        self.at_former.add(bytes);
        if let Some(window) = window {
            self.window(window)[1] += 1;
        }
    }

    fn window(&mut self, window: usize) -> &mut [u64; 2] {
        if self.windows.len() <= window {
            self.windows.resize(window + 1, [0; 2]);
        }
        &mut self.windows[window]
    }

    /// Adds the counts of another part of the same run.
    pub fn merge(&mut self, other: &Self) {
        self.clients.merge(other.clients);
        self.at_node.merge(other.at_node);
        self.asked.merge(other.asked);
        self.at_owner.merge(other.at_owner);
        self.missed.merge(other.missed);
        self.former_asked += other.former_asked;
        self.at_former.merge(other.at_former);
        self.copies += other.copies;
        add_all(&mut self.load, &other.load);
        add_all(&mut self.stored, &other.stored);
        for (window, [requests, hits]) in other.windows.iter().enumerate() {
            let own = self.window(window);
            *own = [own[0] + requests, own[1] + hits];
        }
    }

    /// Returns the measures of the run: name, value and unit.
    pub fn measures(&self) -> Vec<(String, f64, &'static str)> {
        let Self { clients, at_node, asked, at_owner, missed, at_former, .. } = self;
        let hit_bytes = at_node.bytes + at_owner.bytes + at_former.bytes;
        let hits = at_node.requests + at_owner.requests + at_former.requests;
        let between = asked.requests + self.former_asked;
        let origin = missed.requests.saturating_sub(at_former.requests);
        let origin_bytes = missed.bytes.saturating_sub(at_former.bytes);
        let all = clients.requests;
        let mut measures = vec![
            ("hit_ratio".into(), ratio(hits, all), "share"),
            ("byte_hit_ratio".into(), ratio(hit_bytes, clients.bytes), "share"),
            ("node_hit_ratio".into(), ratio(at_node.requests, all), "share"),
            ("owner_hit_ratio".into(), ratio(at_owner.requests, asked.requests), "share"),
            ("former_owner_hit_ratio".into(), ratio(at_former.requests, all), "share"),
            ("origin_fetches".into(), origin as f64, "count"),
            ("origin_bytes".into(), origin_bytes as f64, "bytes"),
            ("requests_between_nodes".into(), ratio(between, all), "per request"),
            ("copies".into(), self.copies as f64, "count"),
            ("largest_load".into(), largest(&self.load), "of the mean"),
            ("largest_store_share".into(), share(&self.stored), "share"),
        ];
        let windows = self.windows.iter().enumerate().map(|(number, [requests, hits])| {
            (format!("hit_ratio_window_{}", number + 1), ratio(*hits, *requests), "share")
        });
        measures.extend(windows);
        measures
    }
}

fn add_all(own: &mut Vec<u64>, other: &[u64]) {
    own.resize(own.len().max(other.len()), 0);
    own.iter_mut().zip(other).for_each(|(own, other)| *own += other);
}

fn ratio(part: u64, whole: u64) -> f64 {
    part as f64 / whole.max(1) as f64
}

/// Returns the largest value as a multiple of the mean.
fn largest(values: &[u64]) -> f64 {
    share(values) * values.len() as f64
}

/// Returns the largest value as a share of the sum.
fn share(values: &[u64]) -> f64 {
    ratio(values.iter().copied().max().unwrap_or(0), values.iter().sum())
}

/// Returns the means over several runs, such as runs with different seeds.
pub fn means(subject: &str, tallies: &[FleetTally]) -> Vec<Measure> {
    let all: Vec<_> = tallies.iter().map(FleetTally::measures).collect();
    let Some(shortest) = all.iter().min_by_key(|measures| measures.len()) else {
        return Vec::new();
    };
    let mean = |(place, (name, _, unit)): (usize, &(String, f64, &'static str))| {
        let values: Vec<f64> = all.iter().map(|measures| measures[place].1).collect();
        Measure::of(name, subject, &values, unit)
    };
    shortest.iter().enumerate().map(mean).collect()
}
