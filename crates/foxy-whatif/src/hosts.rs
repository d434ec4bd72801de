//! The hits of the most requested hosts, as curves over the cache size.

use crate::curve::Estimate;
use crate::sums::{Amount, GroupSums, bytes, hit_share, requests};
use std::collections::HashMap;

/// Number of hosts that are counted at the same time.
const MAX_HOSTS: usize = 128;

/// The hits of a host's requests in caches of several sizes.
#[derive(Clone, Debug, PartialEq)]
pub struct HostCurve {
    /// The host, with its port if clients sent a port.
    pub host: String,
    /// Estimated number of requests.
    pub requests: f64,
    /// Estimated number of bytes that clients received.
    pub bytes: f64,
    /// For each size, the shares of requests and of bytes that hit.
    pub points: Vec<(Estimate, Estimate)>,
}

#[derive(Default)]
struct HostSums {
    asked: GroupSums,
    /// For each cache size, the requests that missed.
    missed: Vec<GroupSums>,
}

/// Counts the requests of each host.
#[derive(Default)]
pub struct HostTable {
    hosts: HashMap<Box<str>, HostSums>,
}

impl HostTable {
    /// Adds a request. `missed` tells for each size whether the request missed.
    pub fn add(
        &mut self,
        host: &str,
        key_hash: u64,
        (weight, bytes): (f64, f64),
        missed: impl ExactSizeIterator<Item = bool>,
    ) {
        if !self.hosts.contains_key(host) {
            if self.hosts.len() >= MAX_HOSTS {
                self.keep_half();
            }
            self.hosts.insert(host.into(), HostSums::default());
        }
        let Some(sums) = self.hosts.get_mut(host) else { return };
        sums.asked.add(key_hash, weight, bytes);
        sums.missed.resize_with(missed.len(), GroupSums::default);
        for (sum, missed) in sums.missed.iter_mut().zip(missed) {
            if missed {
                sum.add(key_hash, weight, bytes);
            }
        }
    }

    /// Forgets the half of the hosts with the fewest requests.
    fn keep_half(&mut self) {
        let mut counts: Vec<f64> =
            self.hosts.values().map(|sums| sums.asked.total().requests).collect();
        counts.sort_by(f64::total_cmp);
        let median = counts[counts.len() / 2];
        self.hosts.retain(|_, sums| sums.asked.total().requests > median);
    }

    pub fn halve(&mut self) {
        for sums in self.hosts.values_mut() {
            sums.asked.halve();
            sums.missed.iter_mut().for_each(GroupSums::halve);
        }
    }

    /// Returns the curves of the `most` hosts with the most requests.
    pub fn curves(&self, most: usize) -> Vec<HostCurve> {
        let mut hosts: Vec<_> = self.hosts.iter().collect();
        let count = |sums: &HostSums| sums.asked.total().requests;
        hosts.sort_by(|a, b| count(b.1).total_cmp(&count(a.1)).then_with(|| a.0.cmp(b.0)));
        let curve = |host: &str, sums: &HostSums| {
            let share = |missed, of| hit_share((missed, &sums.asked), of);
            let point = |missed| (share(missed, requests), share(missed, bytes));
            let Amount { requests, bytes } = sums.asked.total();
            let points = sums.missed.iter().map(point).collect();
            HostCurve { host: host.to_string(), requests, bytes, points }
        };
        hosts.into_iter().take(most).map(|(host, sums)| curve(host, sums)).collect()
    }
}
