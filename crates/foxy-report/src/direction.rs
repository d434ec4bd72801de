//! Decides from words in names and units whether higher or lower values of a measure or axis are
//! better.

use serde::{Deserialize, Serialize};

/// Whether higher or lower values of a chart are better.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Better {
    /// Unknown, because the code that made the chart did not state it. Words in the titles of chart
    /// and axis then decide.
    #[default]
    Unstated,
    /// Lower values are better.
    Lower,
    /// Higher values are better.
    Higher,
    /// Lower values are better, and the chart is a distribution, so its values lie on the x axis.
    FurtherLeft,
    /// Neither is better, as for a count of requests.
    Neither,
}

/// Words in names of measures for which lower values are better.
const LOWER: [&str; 31] = [
    "latency",
    "response",
    "cpu",
    "errors",
    "wrong",
    "per_hit",
    "written",
    "copied",
    "misses",
    "difference",
    "distance",
    "duration",
    "first_byte",
    "first_requests",
    "late",
    "connect",
    "transfer",
    "time",
    "wait",
    "memory",
    "_per_get",
    "_ms",
    "_us",
    "_ns",
    "bytes_per_object",
    "build_",
    "instructions",
    "modify_writes",
    "seconds",
    "seeks",
    "size:",
];
/// Words in names of measures for which higher values are better.
const HIGHER: [&str; 6] = [
    "per_second",
    "hit_ratio",
    "offered_load",
    "gap_to_belady_closed",
    "verdict_ok",
    "prefetch_useful",
];
/// Words in names of measures that describe the load or the load generator.
const NEITHER: [&str; 4] = ["offered_hit", "offered_byte", "generator", "requests_beside"];

/// Words in the title or the unit of an axis whose higher values are better.
const HIGHER_AXIS: [&str; 6] = ["rate", "answers", "answered", "throughput", "hit", "second"];
/// Words in the title or the unit of an axis whose lower values are better.
const LOWER_AXIS: [&str; 10] =
    ["time", "latency", "minutes", "ms", "µs", "s", "chunks", "long", "errors", "failed"];

impl Better {
    /// Returns whether higher or lower values of a measure are better.
    pub fn of_measure(name: &str) -> Self {
        let name = name.replace(' ', "_");
        let has = |words: &[&str]| words.iter().any(|word| name.contains(word));
        match (has(&NEITHER), has(&HIGHER), has(&LOWER)) {
            (true, ..) => Self::Neither,
            (_, true, _) => Self::Higher,
            (_, _, true) => Self::Lower,
            _ => Self::Neither,
        }
    }

    /// Returns whether higher or lower values of an axis are better. `axis` has the title of the
    /// axis and its unit.
    pub fn of_axis(axis: &str) -> Self {
        let words: Vec<&str> = axis.split(|letter: char| !letter.is_alphanumeric()).collect();
        let has = |known: &[&str]| words.iter().any(|word| known.contains(word));
        let is_rate = axis.contains("/s") || axis.contains("share of reads");
        let is_large_chunk = axis.contains("mean free chunk");
        match (is_rate || is_large_chunk || has(&HIGHER_AXIS), has(&LOWER_AXIS)) {
            (true, _) => Self::Higher,
            (_, true) => Self::Lower,
            _ if axis.contains("fetched bytes") => Self::Lower,
            _ => Self::Neither,
        }
    }

    /// Returns the direction that a title states in words.
    pub fn of_title(title: &str) -> Option<Self> {
        let known = [
            ("lower is better", Self::Lower),
            ("higher is better", Self::Higher),
            ("further left is better", Self::FurtherLeft),
        ];
        known.into_iter().find(|(words, _)| title.contains(words)).map(|(_, better)| better)
    }

    /// Returns the words with which a chart states this direction.
    pub(crate) const fn words(self) -> &'static str {
        match self {
            Self::Lower => "Lower is better",
            Self::Higher => "Higher is better",
            Self::FurtherLeft => "Further left is better",
            Self::Unstated | Self::Neither => "No value is better in itself",
        }
    }

    pub(crate) const fn is_unstated(&self) -> bool {
        matches!(self, Self::Unstated)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_better_values_of_a_measure_follow_from_its_name() {
        let check = |name, better| assert_eq!(Better::of_measure(name), better, "{name}");
        check("peak_requests_per_second", Better::Higher);
        check("latency_p99_us", Better::Lower);
        check("hit ratio", Better::Higher);
        check("instructions: memory hit, 1 KB", Better::Lower);
        check("latency_difference_p50_us_to_a", Better::Lower);
        for neutral in ["fill", "device_reads", "offered_hit_ratio", "generator_late_p99_us"] {
            check(neutral, Better::Neither);
        }
    }

    #[test]
    fn the_better_values_of_an_axis_follow_from_its_words() {
        let check = |axis, better| assert_eq!(Better::of_axis(axis), better, "{axis}");
        check("completion time of the paper's 1,058,206 URL-gets minutes", Better::Lower);
        check("rate of LAZY-READS times that of STREAM-PACKETIZER", Better::Higher);
        check("URL-gets a second", Better::Higher);
        check("mean latency ms; servers wait 3 s / 30", Better::Lower);
        check("fetched bytes, share of the requested bytes", Better::Lower);
        check("ratio times", Better::Neither);
    }
}
