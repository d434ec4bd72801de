//! The plan of a simulated fleet: its nodes, the placement of responses, and its changes over time.

use foxy_base::Instant;
use foxy_schemes::PolicyName;
use foxy_workload::Get;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// The rule that decides which nodes store a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// The owner of the key. Other nodes keep copies of hot responses.
    Owner,
    /// Each node that clients ask. No node asks another node.
    Replicate,
    /// The owner of the key. Each node has a small cache for the keys of other owners.
    TwoTiers,
}

impl Placement {
    pub const ALL: [Self; 3] = [Self::Owner, Self::Replicate, Self::TwoTiers];
}

impl fmt::Display for Placement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Owner => "owner",
            Self::Replicate => "replicate",
            Self::TwoTiers => "two-tiers",
        })
    }
}

impl FromStr for Placement {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|placement| placement.to_string() == text);
        found.ok_or_else(|| format!("{text:?} is no placement; use owner, replicate or two-tiers"))
    }
}

/// The nodes that a run counts: each `of`-th seat, from the seat `number` - 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FleetShare {
    number: u32,
    of: u32,
}

impl FleetShare {
    pub const WHOLE: Self = Self { number: 1, of: 1 };

    pub const fn has(self, seat: u32) -> bool {
        seat % self.of == self.number - 1
    }
}

impl FromStr for FleetShare {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let numbers = text.split_once('/');
        let numbers = numbers.and_then(|(one, all)| Some((one.parse().ok()?, all.parse().ok()?)));
        let numbers = numbers.filter(|(number, of)| (1..=*of).contains(number));
        numbers
            .map(|(number, of)| Self { number, of })
            .ok_or_else(|| format!("{text:?} is no part of a fleet; write for example 3/16"))
    }
}

/// A node that is lost for some time, and comes back with its cache.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outage {
    pub seat: u32,
    pub from: Duration,
    pub to: Duration,
}

impl FromStr for Outage {
    type Err = String;

    /// Reads `NODE@FROM-TO`. The first node is 1. The times are in seconds.
    fn from_str(text: &str) -> Result<Self, String> {
        let read = || {
            let (node, times) = text.split_once('@')?;
            let (from, to) = times.split_once('-')?;
            let seat = node.parse::<u32>().ok()?.checked_sub(1)?;
            let seconds =
                |text: &str| text.parse().ok().and_then(|s| Duration::try_from_secs_f64(s).ok());
            Some(Self { seat, from: seconds(from)?, to: seconds(to)? })
        };
        let outage = read().filter(|outage| outage.from < outage.to);
        outage.ok_or_else(|| {
            format!("{text:?} is no outage; write NODE@FROM-TO with seconds, such as 3@30-60")
        })
    }
}

/// A simulated fleet.
#[derive(Clone, Debug)]
pub struct FleetPlan {
    pub placement: Placement,
    pub nodes: u32,
    /// Number of nodes that clients ask, from the first.
    pub entries: u32,
    /// True if each client always asks the same node. Otherwise each request asks a random node.
    pub is_by_client: bool,
    pub policy: PolicyName,
    /// Largest size of an object that a policy with a size limit stores.
    pub object_limit: u64,
    /// Size of each node's cache in bytes.
    pub capacity: u64,
    /// Size in bytes of each node's cache for the keys of other owners.
    pub tier: u64,
    /// Requests per second of other nodes for a key, above which they keep copies.
    pub hot_rate: u32,
    pub copy_life: Duration,
    /// Requests per second of all clients. `None` takes the times of the trace.
    pub rate: Option<f64>,
    /// Number of times per hour that each node is replaced by a new node with an empty cache.
    pub churn: f64,
    pub ramp: Duration,
    pub former_owner: Duration,
    pub outages: Vec<Outage>,
    /// Length of the intervals whose hits are counted apart.
    pub window: Option<Duration>,
    pub seed: u64,
    pub share: FleetShare,
}

impl FleetPlan {
    /// Returns the time of a request, which is number `index` of the trace.
    pub fn time(&self, index: usize, get: &Get) -> Instant {
        match self.rate {
            Some(rate) => Instant((index as f64 / rate * 1e9) as u64),
            None => Instant(get.time.saturating_mul(1000)),
        }
    }

    /// Returns whether nodes join or leave during the run.
    pub fn has_changes(&self) -> bool {
        self.churn > 0.0 || !self.outages.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_placements_are_read_back() {
        for placement in Placement::ALL {
            assert_eq!(placement.to_string().parse(), Ok(placement));
        }
        assert!("both".parse::<Placement>().is_err());
    }

    #[test]
    fn shares_cover_each_seat_once() {
        let shares: Vec<FleetShare> =
            (1..=3).map(|number| format!("{number}/3").parse().expect("a share")).collect();
        for seat in 0..20 {
            assert_eq!(shares.iter().filter(|share| share.has(seat)).count(), 1);
        }
        for wrong in ["0/3", "4/3", "1", "a/b", "1/0"] {
            assert!(wrong.parse::<FleetShare>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_outage_has_a_node_and_two_times() {
        let outage = "3@1.5-60".parse::<Outage>().expect("an outage");
        assert_eq!((outage.seat, outage.from.as_millis(), outage.to.as_secs()), (2, 1500, 60));
        for wrong in ["0@1-2", "3", "3@2-1", "3@1", "x@1-2", "3@-1-2"] {
            assert!(wrong.parse::<Outage>().is_err(), "{wrong}");
        }
    }
}
