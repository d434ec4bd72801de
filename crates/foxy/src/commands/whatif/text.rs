//! Prints the what-if curves for people, at most 80 columns wide.

use crate::commands::figures::{end_of, share};
use crate::serve::whatif::report::{HostReport, PointReport, Share, TierReport, WhatIfReport};
use foxy_base::ByteSize;
use foxy_report::Table;

const HOST_WIDTH: usize = 20;

/// The requests from which the curves come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CurveSource {
    /// All requests of a log.
    Finished,
    /// The requests so far of a running foxy.
    Running,
}

impl CurveSource {
    /// Returns the meaning of the mark of a cache that was never full.
    const fn remark(self) -> &'static str {
        match self {
            Self::Finished => "* never full: no object of this log had to leave\n",
            Self::Running => "* not full yet: the value will still rise\n",
        }
    }
}

pub fn of(report: &WhatIfReport, source: CurveSource) -> String {
    let WhatIfReport { requests, bytes, lost, tiers } = report;
    if tiers.is_empty() {
        return "foxy makes no estimates, because what-if is off; set what-if = \"on\"".to_owned();
    }
    let mut text =
        format!("estimates for {requests:.0} cacheable requests, {}\n", size(*bytes as u64));
    if *lost > 0 {
        text.push_str(&format!(
            "foxy dropped {lost} sampled requests, because there were too many\n"
        ));
    }
    let tiers = tiers.iter().map(|it| tier(it, source)).collect::<Vec<_>>();
    text.push('\n');
    text.push_str(&tiers.join("\n"));
    text.trim_end().to_owned()
}

/// The margin of a value whose uncertainty the sample does not show.
const UNKNOWN: &str = "±?";

fn tier(tier: &TierReport, source: CurveSource) -> String {
    let mut text = format!(
        "{} cache of {} with {} (sample: 1 of {:.0} keys)\n",
        tier.tier,
        size(tier.capacity),
        tier.policy,
        1.0 / tier.sampled
    );
    let mut table = Table::new(&["size", "", "hit ratio", "", "byte hit ratio", ""]);
    for point in tier.curve() {
        let name = format!("{}×{}", point.factor, if point.was_full { "" } else { " *" });
        table.row(&cells(&name, &size(point.capacity), point));
    }
    text.push_str(&table.render());
    if tier.curve().any(|point| !point.was_full) {
        text.push_str(source.remark());
    }
    if text.contains(UNKNOWN) {
        text.push_str(&format!("{UNKNOWN} the sample does not show how uncertain the value is\n"));
    }
    let others: Vec<_> = tier.points.iter().filter(|point| point.policy != tier.policy).collect();
    if !others.is_empty() {
        let mut table = Table::new(&["policy", "", "hit ratio", "", "byte hit ratio", ""]);
        others.iter().for_each(|point| table.row(&cells(&point.policy, "", point)));
        text.push_str(&format!("\n{}", table.render()));
    }
    if !tier.hosts.is_empty() {
        text.push_str(&format!("\n{}", hosts(tier)));
    }
    text
}

fn cells(name: &str, capacity: &str, point: &PointReport) -> [String; 6] {
    let PointReport { hits, byte_hits, .. } = point;
    [
        name.into(),
        capacity.into(),
        share(Some(hits.value)),
        margin(hits),
        share(Some(byte_hits.value)),
        margin(byte_hits),
    ]
}

/// Lists the hits of the busiest hosts, for each cache size.
fn hosts(tier: &TierReport) -> String {
    let factors = tier.curve().map(|point| format!("{}×", point.factor));
    let head: Vec<String> = ["host".into(), "requests".into()].into_iter().chain(factors).collect();
    let mut table = Table::new(&head.iter().map(String::as_str).collect::<Vec<_>>());
    for HostReport { host, requests, points, .. } in &tier.hosts {
        let hits = points.iter().map(|(hits, _)| share(Some(hits.value)));
        let row = [end_of(host, HOST_WIDTH), format!("{requests:.0}")].into_iter().chain(hits);
        table.row(&row.collect::<Vec<_>>());
    }
    table.render()
}

fn size(bytes: u64) -> String {
    ByteSize(bytes).to_string()
}

/// Returns the distance to the farther end of the 95 % interval, in percentage points. Returns
/// nothing if the value is exact, and [`UNKNOWN`] if the distance is not known.
fn margin(share: &Share) -> String {
    match share.margin().map(|distance| distance * 100.0) {
        None => UNKNOWN.into(),
        Some(distance) if distance < 0.005 => String::new(),
        Some(distance) => format!("±{distance:.1}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn within(value: f64, half: f64) -> Share {
        Share { value, low: Some(value - half), high: Some(value + half) }
    }

    #[test]
    fn the_screen_shows_sizes_policies_hosts_and_margins() {
        let point = |factor: f64, policy: &str, was_full| PointReport {
            factor,
            policy: policy.into(),
            capacity: (factor * 1e9) as u64,
            hits: within(0.5, 0.012),
            byte_hits: Share { value: 0.25, low: None, high: None },
            keys: 7,
            was_full,
        };
        let tier = TierReport {
            tier: "disk".into(),
            capacity: 1 << 30,
            policy: "lru".into(),
            sampled: 1.0 / 64.0,
            points: vec![
                point(0.5, "lru", true),
                point(2.0, "lru", false),
                point(1.0, "sieve", true),
            ],
            hosts: vec![HostReport {
                host: "a-host-with-a-very-long-name.test".into(),
                requests: 1e6,
                bytes: 1e9,
                points: vec![(within(0.1, 0.0), within(0.2, 0.0)); 2],
            }],
        };
        let none = WhatIfReport { requests: 0.0, bytes: 0.0, lost: 0, tiers: Vec::new() };
        assert!(of(&none, CurveSource::Running).contains("what-if = \"on\""));
        let report = WhatIfReport { requests: 2e6, bytes: 3e12, lost: 5, tiers: vec![tier] };
        let text = of(&report, CurveSource::Running);
        for part in [
            "2000000 cacheable requests",
            "dropped 5 sampled requests",
            "disk cache of 1 GiB with lru (sample: 1 of 64 keys)",
            "0.5×",
            "2× *",
            "* not full yet",
            "50.0 %",
            "±1.2",
            "±?",
            "sieve",
            "…",
        ] {
            assert!(text.contains(part), "no {part} in\n{text}");
        }
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        let finished = of(&report, CurveSource::Finished);
        assert!(
            finished.contains("* never full: no object of this log had to leave"),
            "{finished}"
        );
        assert!(!finished.contains("still rise"), "{finished}");
    }
}
