//! Says which values of a measure are better, by words in its name.

/// Words in names of measures for which lower values are better.
const LOWER: [&str; 19] = [
    "latency",
    "response",
    "cpu",
    "errors",
    "wrong",
    "per_hit",
    "written",
    "copied",
    "misses",
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
const HIGHER: [&str; 4] = ["per_second", "hit_ratio", "offered_load", "gap_to_belady_closed"];

/// Returns the remark on which values of a measure are better, or an empty text.
pub(crate) fn better(name: &str) -> &'static str {
    let name = name.replace(' ', "_");
    let has = |words: &[&str]| words.iter().any(|word| name.contains(word));
    match (name.contains("difference"), has(&HIGHER), has(&LOWER)) {
        (false, true, _) => " (higher is better)",
        (false, false, true) => " (lower is better)",
        _ if name.contains("busy") => " (1: the limit)",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_better_direction_follows_from_the_name() {
        let check = |name, words: &str| assert!(better(name).contains(words), "{name}");
        check("peak_requests_per_second", "higher");
        check("latency_p99_us", "lower");
        check("hit ratio", "higher");
        check("instructions: memory hit, 1 KB", "lower");
        for neutral in ["latency_difference_p50_us_to_a", "fill", "device_reads"] {
            assert_eq!(better(neutral), "", "{neutral}");
        }
    }
}
