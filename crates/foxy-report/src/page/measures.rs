//! Draws measures of several subjects (proxies, schemes or engines) as bars. If the names of the
//! subjects give sizes of the cache, draws the measures over these sizes.

use super::grouping::grouped;
use super::words::spoken;
use crate::chart::{Axis, Bars, Better, Chart, Line, Look, Plot, Provenance, Spread, Value};
use crate::record::Measure;

/// A page draws at most this number of measures.
const MAX_MEASURES: usize = 12;

/// Returns charts of the first `MAX_MEASURES` measures that at least two subjects have with
/// different values. A measure has one chart, or for policies over cache sizes, one for each trace.
/// Leaves out measures of a workload or of a single repeat. Also leaves out counts, because runs of
/// different lengths have different counts.
pub(super) fn charts(measures: &[&Measure], provenance: &Provenance) -> Vec<Chart> {
    let is_shown =
        |one: &&&Measure| one.workload.is_none() && one.repeat.is_none() && one.unit != "count";
    let whole = measures.iter().copied().filter(|one| is_shown(&one));
    let named = whole.map(|measure| (measure.name.as_str(), measure)).collect();
    let groups = grouped(named).into_iter().filter(|(_, group)| {
        let differ = group.iter().any(|measure| measure.value != group[0].value);
        differ && group.iter().any(|measure| measure.subject != group[0].subject)
    });
    let draw = |(name, group): (&str, Vec<&Measure>)| {
        let curves = over_sizes(name, &group, provenance);
        if curves.is_empty() { vec![bars(name, &group, provenance)] } else { curves }
    };
    groups.take(MAX_MEASURES).flat_map(draw).collect()
}

/// Returns the unit of a measure. A script may give it only at the end of the measure's name.
fn unit(measure: &Measure) -> &str {
    let last = measure.name.rsplit('_').next().unwrap_or_default();
    let is_unit = measure.unit.is_empty() && ["us", "ms", "ns"].contains(&last);
    if is_unit { last } else { &measure.unit }
}

/// Returns the value of a measure: over several runs their median, for one run its value with its
/// interval.
fn value(runs: &[&Measure]) -> Option<Value> {
    match runs {
        [one] => Some(Value::between(one.value, one.low, one.high)),
        _ => Value::of_runs(&runs.iter().map(|one| one.value).collect::<Vec<_>>()),
    }
}

fn spread(of_subjects: &[(&str, Vec<&Measure>)]) -> Spread {
    let is_repeated = of_subjects.iter().any(|(_, runs)| runs.len() > 1);
    if is_repeated { Spread::Runs } else { Spread::Confidence }
}

/// Sets the number of runs to that of the subject (proxy, scheme or engine) with the most runs.
fn of_runs(provenance: &Provenance, of_subjects: &[(&str, Vec<&Measure>)]) -> Provenance {
    let repeats = |runs: &[&Measure]| runs.iter().map(|one| one.repeats.max(1)).sum();
    let seeds = of_subjects.iter().map(|(_, runs)| repeats(runs)).max().unwrap_or(1);
    Provenance { seeds, ..provenance.clone() }
}

fn by_subject<'a>(group: &[&'a Measure]) -> Vec<(&'a str, Vec<&'a Measure>)> {
    grouped(group.iter().map(|one| (one.subject.as_str(), *one)).collect())
}

fn bars(name: &str, group: &[&Measure], provenance: &Provenance) -> Chart {
    let of_subjects = by_subject(group);
    let values: Vec<Option<Value>> = of_subjects.iter().map(|(_, runs)| value(runs)).collect();
    let all = values.iter().flatten().map(|value| value.value).collect::<Vec<_>>();
    Chart {
        title: spoken(name),
        better: Better::of_measure(name),
        provenance: of_runs(provenance, &of_subjects),
        spread: spread(&of_subjects),
        x: Axis::fitting(&format!("{}, {}", spoken(name), unit(group[0])), all.into_iter()),
        y: Axis::linear("", ""),
        plot: Plot::Bars {
            groups: of_subjects.iter().map(|(subject, _)| (*subject).to_owned()).collect(),
            series: vec![Bars { name: spoken(name), look: Look::Solid, values }],
        },
    }
}

/// A policy at a cache size, as the name of a subject: `lru@1% of bu95`.
struct SizedPolicy<'a> {
    policy: &'a str,
    percent: f64,
    trace: &'a str,
}

impl<'a> SizedPolicy<'a> {
    fn of(subject: &'a str) -> Option<Self> {
        let (policy, rest) = subject.split_once('@')?;
        let (size, trace) = rest.split_once(" of ").unwrap_or((rest, ""));
        let percent = size.strip_suffix('%')?.parse().ok()?;
        Some(Self { policy, percent, trace })
    }
}

/// Each point of a line: its policy, the size of the cache in percent, and the value.
type PolicyPoints<'a> = Vec<(&'a str, (f64, Value))>;

/// Draws a line for each policy over the cache sizes, in a chart for each trace.
fn over_sizes(name: &str, group: &[&Measure], provenance: &Provenance) -> Vec<Chart> {
    let of_subjects = by_subject(group);
    let sized = of_subjects.iter().filter_map(|(subject, runs)| {
        let sized = SizedPolicy::of(subject)?;
        Some((sized.trace, (sized.policy, (sized.percent, value(runs)?))))
    });
    let chart = |(trace, policies): (&str, PolicyPoints<'_>)| {
        let lines: Vec<Line> = grouped(policies)
            .into_iter()
            .map(|(policy, points)| Line { name: policy.into(), look: Look::Solid, points })
            .collect();
        let on = if trace.is_empty() { String::new() } else { format!(", {trace}") };
        let has_sizes = lines.iter().any(|line| line.points.len() > 1);
        has_sizes.then(|| Chart {
            title: format!("{} over the size of the cache{on}", spoken(name)),
            better: Better::of_measure(name),
            provenance: of_runs(provenance, &of_subjects),
            spread: spread(&of_subjects),
            x: Axis::logarithmic("size of the cache, share of the requested bytes", "%"),
            y: Axis::linear(&spoken(name), unit(group[0])),
            plot: Plot::Lines(lines),
        })
    };
    grouped(sized.collect()).into_iter().filter_map(chart).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::Place;

    fn provenance() -> Provenance {
        let place = Place::Measured;
        Provenance { source: String::new(), place, scale: 1.0, quick: false, seeds: 1 }
    }

    fn drawn(subjects: &[(&str, f64)], name: &str) -> Vec<Chart> {
        let measures: Vec<Measure> = subjects
            .iter()
            .map(|&(subject, value)| Measure::once(name, subject, value, "share"))
            .collect();
        charts(&measures.iter().collect::<Vec<_>>(), &provenance())
    }

    #[test]
    fn policies_at_several_sizes_are_lines_for_each_trace() {
        let charts = drawn(
            &[
                ("lru@1% of a", 0.1),
                ("lru@5% of a", 0.2),
                ("lru@1% of b", 0.3),
                ("lru@5% of b", 1.0),
            ],
            "hit_ratio",
        );
        assert_eq!(charts.len(), 2);
        assert_eq!(charts[0].title, "hit ratio over the size of the cache, a");
        let Plot::Lines(lines) = &charts[0].plot else { panic!("{charts:?}") };
        assert_eq!((lines[0].name.as_str(), lines[0].points.len()), ("lru", 2));
    }

    #[test]
    fn the_unit_at_the_end_of_a_name_counts_if_there_is_no_other() {
        let unit_of = |name, given| unit(&Measure::once(name, "a", 1.0, given)).to_owned();
        assert_eq!(unit_of("p999_us", ""), "us");
        assert_eq!(unit_of("p999_us", "ms"), "ms");
        assert_eq!(unit_of("hit_ratio", ""), "");
    }

    #[test]
    fn runs_of_a_subject_share_a_bar() {
        let charts = drawn(&[("a", 1.0), ("b", 2.0), ("a", 3.0)], "latency_p50_us");
        let Plot::Bars { groups, series } = &charts[0].plot else { panic!("{charts:?}") };
        assert_eq!((groups.len(), charts[0].spread), (2, Spread::Runs));
        assert_eq!(series[0].values[0].as_ref().map(|value| value.value), Some(2.0));
    }
}
