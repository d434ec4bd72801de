//! Computes the what-if curves of an access log: how many hits other cache sizes and policies would
//! have.

use crate::failure::Failure;
use crate::progress::Progress;
use crate::serve::whatif::report::{TierReport, WhatIfReport};
use crate::terminal::{self, Level};
use clap::ArgMatches;
use foxy_base::ByteSize;
use foxy_schemes::PolicyName;
use foxy_schemes::policy::POLICIES;
use foxy_store::Key;
use foxy_whatif::{Estimator, SampledRequest, Tier, Totals};
use foxy_workload::Trace;
use foxy_workload::trace::{self, Format, ReadReport};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Memory in bytes for all simulated caches together. Up to a few million stored objects, this
/// memory suffices for a sample with all keys.
const MEMORY_LIMIT: usize = 1 << 30;

/// Salt of the hash that selects the sampled keys. It makes this hash independent of other hashes
/// of the keys.
const SALT: u64 = 1;

pub fn report(matches: &ArgMatches, path: &Path) -> Result<WhatIfReport, Failure> {
    let size = matches.get_one::<ByteSize>("size").ok_or_else(|| {
        let text = "a log does not tell the size of the cache; give it with --size, such as \
                    --size 10G";
        Failure::Unusable(text.into())
    })?;
    let limit = matches.get_one::<ByteSize>("object-limit").map_or(u64::MAX, |limit| limit.0);
    let policy = matches.get_one::<PolicyName>("policy").copied().unwrap_or(PolicyName::Webcosm);
    let (trace, read) = read(matches, path)?;
    let unread = read.lines - read.gets;
    if unread > 0 {
        let text = format!(
            "foxy: {} of {} lines do not count: they are not answered GETs of whole objects",
            unread, read.lines
        );
        terminal::report(Level::Info, &text);
    }
    Ok(simulated(&trace, Tier { capacity: size.0, policy, object_limit: limit, shards: 1 }))
}

fn read(matches: &ArgMatches, path: &Path) -> Result<(Trace, ReadReport), Failure> {
    let unreadable =
        |error: &dyn std::fmt::Display| Failure::Unusable(format!("{}: {error}", path.display()));
    let input: Box<dyn Read> = if path == Path::new("-") {
        Box::new(io::stdin().lock())
    } else {
        Box::new(File::open(path).map_err(|error| unreadable(&error))?)
    };
    let format = matches.get_one::<Format>("format").copied();
    let mut progress = Progress::new("lines", None);
    trace::read(input, format, &mut |lines| progress.update(lines))
        .map_err(|error| unreadable(&error))
}

/// Simulates the requests of a trace in caches of several sizes and policies.
fn simulated(trace: &Trace, tier: Tier) -> WhatIfReport {
    let others: Vec<_> = POLICIES.iter().map(|row| row.name).collect();
    let mut estimator = Estimator::new(tier, &others, MEMORY_LIMIT);
    let mut totals = Totals::default();
    let mut progress = Progress::new("requests", Some(trace.gets.len() as u64));
    for (number, get) in trace.gets.iter().enumerate() {
        totals.requests += 1.0;
        totals.bytes += get.size as f64;
        let url = trace.url_text(get.url);
        estimator.add(&SampledRequest {
            key_hash: Key::of(url.as_bytes()).hash(SALT),
            host: host(&url),
            size: get.size,
            sent: get.size,
            may_hit: true,
            may_store: true,
        });
        progress.update(number as u64);
    }
    let tier = TierReport::new("disk", tier, &estimator, &totals);
    WhatIfReport { requests: totals.requests, bytes: totals.bytes, lost: 0, tiers: vec![tier] }
}

/// Returns the host of a URL. A path without a host has the host `-`.
fn host(url: &str) -> &str {
    let rest = url.split_once("://").map(|(_, rest)| rest);
    rest.and_then(|rest| rest.split(['/', '?', '#']).next()).unwrap_or("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_gives_a_point_for_each_size_and_policy() {
        let lines: String = (0..40)
            .map(|number| {
                let host = ["a.test", "b.test"][number % 2];
                let path = number % 4;
                format!(
                    "{}.000 1 10.0.0.7 TCP_MISS/200 1000 GET http://{host}/{path} - D/- -\n",
                    1000 + number
                )
            })
            .collect();
        let (trace, _) = trace::read(lines.as_bytes(), None, &mut |_| {}).expect("a log");
        let tier =
            Tier { capacity: 2000, policy: PolicyName::Lru, object_limit: u64::MAX, shards: 1 };
        let report = simulated(&trace, tier);
        assert_eq!((report.requests, report.bytes), (40.0, 40_000.0));
        let hits: Vec<_> = report.tiers[0].curve().map(|point| point.hits.value).collect();
        assert_eq!(hits, [0.0, 0.0, 0.0, 0.9, 0.9, 0.9]);
        assert_eq!(report.tiers[0].points.len(), 6 + POLICIES.len() - 1);
        let hosts: Vec<_> = report.tiers[0].hosts.iter().map(|host| &*host.host).collect();
        assert_eq!(hosts, ["a.test", "b.test"]);
    }
}
