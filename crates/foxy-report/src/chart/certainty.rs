//! Writes how certain the values of a chart are. The text says what the intervals and dots mean, or
//! that the chart has no intervals.

use super::finding::is_distribution;
use super::{Chart, Look, Plot, Provenance, Spacing, Spread, Value};
use crate::figure::Place;

/// Returns all values of a plot, each with the style of its series. Clouds of dots have no such
/// values.
pub(super) fn values(plot: &Plot) -> Box<dyn Iterator<Item = (Look, &Value)> + '_> {
    match plot {
        Plot::Lines(lines) => Box::new(
            lines.iter().flat_map(|line| line.points.iter().map(|(_, value)| (line.look, value))),
        ),
        Plot::Bars { series, .. } => Box::new(
            series.iter().flat_map(|bars| bars.values.iter().flatten().map(|v| (bars.look, v))),
        ),
        Plot::Dots(_) => Box::new(std::iter::empty()),
    }
}

/// Returns the words of the subtitle that say how sure the values are.
pub(super) fn certainty(chart: &Chart, plot: &Plot) -> String {
    if matches!(plot, Plot::Dots(_)) {
        return format!("each dot is an event of a single {}", chart.provenance.run());
    }
    let (mut with_interval, mut most_runs) = (false, 0);
    for (_, value) in values(plot).filter(|(look, _)| *look != Look::Quoted) {
        with_interval |= value.has_interval();
        most_runs = most_runs.max(value.runs.len());
    }
    let is_line = matches!(plot, Plot::Lines(_));
    let what = if is_line { "band" } else { "whisker" };
    let middle = match chart.x.spacing {
        _ if is_line => "line",
        Spacing::Linear => "bar",
        Spacing::Logarithmic => "mark",
    };
    let runs = runs(&chart.provenance, most_runs);
    match (chart.spread, with_interval, most_runs > 0) {
        (Spread::Confidence, true, true) => {
            format!("{what}: 95 % interval of {runs}, small dots: each")
        }
        (Spread::Confidence, true, false) => format!("{what}: 95 % interval of {runs}"),
        (Spread::Runs, _, true) if has_only_steps(plot) => {
            format!("line: median of {runs}, band: lowest to highest")
        }
        (Spread::Runs, true, true) if is_line => {
            format!("line: median of {runs}, band: lowest to highest, small dots: each")
        }
        (Spread::Runs, _, true) => {
            format!("{middle}: median of {runs}, small dots: each, {what}: lowest to highest")
        }
        (Spread::Range | Spread::Runs, true, _) => {
            format!("{middle}: mean of {runs}, {what}: lowest to highest")
        }
        _ => without_interval(chart, &runs),
    }
}

fn without_interval(chart: &Chart, runs: &str) -> String {
    let Provenance { place, seeds, .. } = chart.provenance;
    let run = chart.provenance.run();
    match seeds {
        _ if place == Place::Derived => "computed from other values: no interval".into(),
        0 | 1 => format!("single {run}, no interval: small differences may be chance"),
        _ if is_distribution(chart) => format!("from {runs}, no interval drawn"),
        _ if chart.spread == Spread::Range => format!("all {runs} gave equal values"),
        _ => format!("from {runs}, no interval recorded"),
    }
}

/// Returns the number of runs in words, such as `3 seeds`. `drawn` is the number of runs that the
/// chart draws as dots for each value; with 0, the number comes from `provenance`.
fn runs(provenance: &Provenance, drawn: usize) -> String {
    let count = if drawn > 0 { drawn } else { provenance.seeds as usize };
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {}{plural}", provenance.run())
}

/// Returns whether all lines except a paper's are staircases, which have no dots.
fn has_only_steps(plot: &Plot) -> bool {
    let Plot::Lines(lines) = plot else { return false };
    lines.iter().all(|line| matches!(line.look, Look::Steps | Look::Quoted))
}

#[cfg(test)]
mod tests {
    use super::super::{Axis, Bars, Better};
    use super::*;

    fn words(spread: Spread, seeds: u32, values: &[Value]) -> String {
        let values = values.iter().cloned().map(Some).collect();
        let series = vec![Bars { name: String::new(), look: Look::Solid, values }];
        let chart = Chart {
            title: String::new(),
            better: Better::Lower,
            provenance: Provenance {
                source: String::new(),
                place: Place::Measured,
                scale: 1.0,
                quick: false,
                seeds,
            },
            spread,
            x: Axis::linear("", ""),
            y: Axis::linear("", ""),
            plot: Plot::Bars { groups: vec![String::new()], series },
        };
        certainty(&chart, &chart.plot)
    }

    #[test]
    fn a_chart_says_what_its_intervals_are_or_that_it_has_none() {
        let (exact, wide) = (Value::exact(1.0), Value::between(1.0, 0.5, 2.0));
        let runs = Value::of_runs(&[1.0, 2.0, 4.0]).expect("runs");
        let check = |spread, seeds, values: &[Value], expected: &str| {
            assert_eq!(words(spread, seeds, values), expected);
        };
        let confidence = Spread::Confidence;
        check(confidence, 3, std::slice::from_ref(&wide), "whisker: 95 % interval of 3 runs");
        let each = Value { runs: vec![0.5, 1.5], ..wide.clone() };
        let text = "whisker: 95 % interval of 2 runs, small dots: each";
        check(confidence, 2, &[each], text);
        check(Spread::Range, 2, &[wide], "bar: mean of 2 runs, whisker: lowest to highest");
        let text = "bar: median of 3 runs, small dots: each, whisker: lowest to highest";
        check(Spread::Runs, 9, &[runs], text);
        let text = "single run, no interval: small differences may be chance";
        check(confidence, 1, std::slice::from_ref(&exact), text);
        check(confidence, 3, std::slice::from_ref(&exact), "from 3 runs, no interval recorded");
        check(Spread::Range, 3, &[exact], "all 3 runs gave equal values");
    }
}
