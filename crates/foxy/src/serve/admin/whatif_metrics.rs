//! Adds the what-if curves to the page `/metrics`.

use super::metrics::{Exposition, FamilyKind};
use crate::serve::whatif::report::{PointReport, WhatIfReport};

/// A metric of the what-if curves: its name, its help, and a function that returns its value at a
/// point of a curve, if the value is known.
type PointMetric = (&'static str, &'static str, fn(&PointReport) -> Option<f64>);

const METRICS: [PointMetric; 4] = [
    (
        "foxy_whatif_hit_ratio",
        "Estimated hit ratio of the tier with another size (factor) or policy.",
        |point| Some(point.hits.value),
    ),
    (
        "foxy_whatif_hit_ratio_margin",
        "Distance of foxy_whatif_hit_ratio from the farther end of its 95 % interval.",
        |point| point.hits.margin(),
    ),
    (
        "foxy_whatif_byte_hit_ratio",
        "Estimated byte hit ratio of the tier with another size (factor) or policy.",
        |point| Some(point.byte_hits.value),
    ),
    (
        "foxy_whatif_byte_hit_ratio_margin",
        "Distance of foxy_whatif_byte_hit_ratio from the farther end of its 95 % interval.",
        |point| point.byte_hits.margin(),
    ),
];

impl Exposition {
    /// Adds the estimates of each tier, size and policy. Adds nothing before the first request.
    pub fn whatif(&mut self, report: &WhatIfReport) {
        if report.requests < 1.0 {
            return;
        }
        let points = report.tiers.iter().flat_map(|tier| {
            tier.points.iter().map(|point| (tier.tier.as_str(), point.factor.to_string(), point))
        });
        let points: Vec<_> = points.collect();
        let labels: Vec<_> = points
            .iter()
            .map(|(tier, factor, point)| {
                [("tier", *tier), ("factor", factor.as_str()), ("policy", point.policy.as_str())]
            })
            .collect();
        for (name, help, value) in METRICS {
            let samples = labels.iter().zip(&points);
            let samples =
                samples.filter_map(|(labels, (.., point))| Some((&labels[..], value(point)?)));
            self.family(name, FamilyKind::Gauge, help, samples);
        }
        let help = "Sampled requests that were not simulated, because there were too many.";
        let name = "foxy_whatif_lost_requests_total";
        self.single(name, FamilyKind::Counter, help, report.lost);
    }
}
