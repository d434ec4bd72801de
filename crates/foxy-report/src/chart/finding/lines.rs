//! Computes the finding of a chart of lines, which is the sentences under the title. The finding
//! ranks the lines at both ends of the x axis, or by their means or percentiles. It also compares a
//! paper's points with the run's lines.

use super::super::{Axis, Spacing};
use super::{Better, Chart, Item, Line, Look, Value, better, quantity, ranking, ratio, times};
use crate::number::significant;

pub(super) fn finding(chart: &Chart, lines: &[Line]) -> String {
    let ours: Vec<&Line> = ours(lines).collect();
    let better = better(chart);
    let unit = chart.y.unit.as_str();
    let own = if is_distribution(chart) {
        of_shares(&ours, &chart.x.unit)
    } else if has_means(chart, lines) {
        let items = ours.iter().filter_map(|line| {
            Some(Item { name: &line.name, value: mean_over(line, common_range(&ours)?)? })
        });
        let text = ranking(items.collect(), better, unit);
        if text.is_empty() { text } else { format!("Mean over the chart: {text}") }
    } else if are_unlike(&ours) {
        ours.iter().map(|line| change(chart, line)).collect::<Vec<_>>().join("\n")
    } else {
        of_ends(chart, &ours, better)
    };
    let paper = beside_paper(chart, lines);
    [own, paper].join("\n").trim().to_owned()
}

fn ours(lines: &[Line]) -> impl Iterator<Item = &Line> {
    lines.iter().filter(|line| line.look != Look::Quoted && !line.points.is_empty())
}

/// Returns whether some lines count bytes and others requests, such as two kinds of hit ratios. The
/// finding then ranks no line.
fn are_unlike(lines: &[&Line]) -> bool {
    let counts_bytes = |line: &&&Line| line.name.contains("byte");
    let count = lines.iter().filter(counts_bytes).count();
    (1..lines.len()).contains(&count)
}

/// Returns whether the lines show the share of the values up to each value of the x axis.
pub(in super::super) fn is_distribution(chart: &Chart) -> bool {
    chart.y.title == Chart::SHARE
}

/// Returns whether the finding (the sentences under the title) compares the means of the lines. It
/// does so for staircases on linear axes, because their single steps are noisy.
fn has_means(chart: &Chart, lines: &[Line]) -> bool {
    (chart.x.spacing, chart.y.spacing) == (Spacing::Linear, Spacing::Linear)
        && ours(lines).all(|line| line.look == Look::Steps)
        && ours(lines).next().is_some()
}

/// Returns the name of each line, for the end of the line or the legend. A value follows, except
/// for a paper's line. The value is the median of a distribution, the mean of a staircase on linear
/// axes, otherwise the last value.
pub(in super::super) fn labels(chart: &Chart, lines: &[Line]) -> Vec<String> {
    let range = common_range(&ours(lines).collect::<Vec<_>>());
    let label = |line: &Line| {
        let value = if is_distribution(chart) {
            let median = at_share(line, 0.5)?;
            format!("median {}", quantity(median, &chart.x.unit))
        } else if has_means(chart, lines) {
            format!("mean {}", significant(mean_over(line, range?)?.value, 3))
        } else {
            significant(line.points.last()?.1.value, 3)
        };
        let gap = if line.name.is_empty() { "" } else { ", " };
        Some(format!("{}{gap}{value}", line.name))
    };
    let name = |line: &Line| match line.look {
        Look::Quoted => line.name.clone(),
        _ => label(line).unwrap_or_else(|| line.name.clone()),
    };
    lines.iter().map(name).collect()
}

/// Returns the smallest x value of a distribution at which the line reaches a share.
fn at_share(line: &Line, share: f64) -> Option<f64> {
    line.points.iter().find(|(_, value)| value.value >= share - 1e-9).map(|(right, _)| *right)
}

fn of_shares(ours: &[&Line], unit: &str) -> String {
    let at = |share: f64, words: &str| {
        let item = |line: &&'_ Line| Some((line.name.clone(), at_share(line, share)?));
        let found: Vec<(String, f64)> = ours.iter().filter_map(item).collect();
        let items = found.iter().map(|(name, right)| Item { name, value: Value::exact(*right) });
        let text = ranking(items.collect(), Better::Lower, unit);
        if text.is_empty() { text } else { format!("{words}: {text}") }
    };
    [at(0.5, "Median"), at(0.99, "99 %")].join("\n").trim().to_owned()
}

/// Returns the range of x that all lines cover.
fn common_range(lines: &[&Line]) -> Option<(f64, f64)> {
    let ends = |line: &&Line| Some((line.points.first()?.0, line.points.last()?.0));
    let ends: Vec<(f64, f64)> = lines.iter().filter_map(ends).collect();
    let low = ends.iter().map(|end| end.0).fold(f64::NEG_INFINITY, f64::max);
    let high = ends.iter().map(|end| end.1).fold(f64::INFINITY, f64::min);
    (low < high).then_some((low, high))
}

/// Returns the mean of a staircase over a range of x. Each value counts by the width of its step.
fn mean_over(line: &Line, (low, high): (f64, f64)) -> Option<Value> {
    let next = line.points.iter().skip(1).map(|point| point.0).chain([high]);
    let steps = line
        .points
        .iter()
        .zip(next)
        .map(|((start, value), end)| ((end.min(high) - start.max(low)).max(0.0), value));
    let steps: Vec<(f64, &Value)> = steps.collect();
    let width: f64 = steps.iter().map(|step| step.0).sum();
    let mean = |of: fn(&Value) -> f64| {
        steps.iter().map(|(width, value)| width * of(value)).sum::<f64>() / width
    };
    (width > 0.0).then(|| {
        Value::between(mean(|value| value.value), mean(|value| value.low), mean(|value| value.high))
    })
}

/// Ranks the lines at the first and at the last x value that most lines have.
fn of_ends(chart: &Chart, ours: &[&Line], better: Better) -> String {
    if let [only] = ours {
        return change(chart, only);
    }
    let at = |right: f64| -> Vec<Item> {
        let item = |line: &&'_ Line| {
            let found = line.points.iter().find(|point| point.0 == right)?;
            Some(found.1.clone())
        };
        let named =
            ours.iter().filter_map(|line| Some(Item { name: &line.name, value: item(line)? }));
        named.collect()
    };
    let mut places: Vec<f64> =
        ours.iter().flat_map(|line| line.points.iter().map(|point| point.0)).collect();
    places.sort_by(f64::total_cmp);
    places.dedup();
    let most = places.iter().map(|place| at(*place).len()).max().unwrap_or(0);
    if most == 1 {
        let last = |line: &&'_ Line| line.points.last().map(|point| point.1.clone());
        let items =
            ours.iter().filter_map(|line| Some(Item { name: &line.name, value: last(line)? }));
        let ranked = ranking(items.collect(), better, &chart.y.unit);
        return format!("At the end of each line: {ranked}");
    }
    places.retain(|place| at(*place).len() == most);
    let text = |place: f64| {
        let ranked = ranking(at(place), better, &chart.y.unit);
        format!("At {}: {ranked}", place_words(place, &chart.x))
    };
    match places[..] {
        [] => String::new(),
        [only] => text(only),
        [first, .., last] => format!("{}\n{}", text(first), text(last)),
    }
}

/// Describes how a single line changes from its first to its last point.
fn change(chart: &Chart, line: &Line) -> String {
    let unit = &chart.y.unit;
    let point = |(right, value): &(f64, Value)| {
        let place = place_words(*right, &chart.x);
        format!("{}{} at {place}", quantity(value.value, unit), super::interval(value))
    };
    match &line.points[..] {
        [] => String::new(),
        [only] => format!("{}: {}.", line.name, point(only)),
        [first, .., last] => {
            let by = ratio(&last.1, &first.1)
                .map(|ratio| format!(": {}", times(&ratio, "as much")))
                .unwrap_or_default();
            format!("{}: from {} to {}{by}.", line.name, point(first), point(last))
        }
    }
}

fn place_words(place: f64, axis: &Axis) -> String {
    if axis.unit.is_empty() {
        format!("{} {}", significant(place, 4), axis.title)
    } else {
        quantity(place, &axis.unit)
    }
}

/// Compares each quoted point with the value of the run's line of the same name. If the run has a
/// single line, each quoted point belongs to it.
fn beside_paper(chart: &Chart, lines: &[Line]) -> String {
    let plain = |name: &str| {
        let name = name.strip_prefix("paper: ").or(name.strip_prefix("foxy: ")).unwrap_or(name);
        name.strip_prefix("foxy's model: ").unwrap_or(name).to_owned()
    };
    let ours: Vec<&Line> = ours(lines).collect();
    let sentence = |line: &Line| {
        let own = match &ours[..] {
            [only] => Some(*only),
            _ => ours.iter().find(|own| plain(&own.name) == plain(&line.name)).copied(),
        };
        let (right, quoted) = line.points.last()?;
        let place = place_words(*right, &chart.x);
        let paper = quantity(quoted.value, &chart.y.unit);
        let name = plain(&line.name);
        let beside = own.and_then(|own| {
            let value = at(own, *right)?;
            let ours = quantity(value.value, &chart.y.unit);
            Some(format!(", foxy {ours}: {}", times(&ratio(&value, quoted)?, "the paper's")))
        });
        let of = if name == "the paper" { String::new() } else { format!(", {name}") };
        Some(format!("Paper{of} at {place}: {paper}{}.", beside.unwrap_or_default()))
    };
    let quoted = lines.iter().filter(|line| line.look == Look::Quoted);
    quoted.filter_map(sentence).collect::<Vec<_>>().join("\n")
}

/// Returns the value of a line at x, between two points on the straight line through them.
fn at(line: &Line, right: f64) -> Option<Value> {
    if let Some((_, value)) = line.points.iter().find(|point| point.0 == right) {
        return Some(value.clone());
    }
    let pair = line.points.windows(2).find(|pair| pair[0].0 < right && right < pair[1].0)?;
    let [(start, from), (end, to)] = pair else { return None };
    let share = (right - start) / (end - start);
    Some(Value::exact(from.value + share * (to.value - from.value)))
}

#[cfg(test)]
mod tests {
    use super::super::super::{Plot, Provenance, Spread};
    use super::*;
    use crate::figure::Place;

    fn line(name: &str, look: Look, points: &[(f64, f64)]) -> Line {
        let points = points.iter().map(|&(x, y)| (x, Value::exact(y))).collect();
        Line { name: name.into(), look, points }
    }

    fn chart(y: Axis, lines: Vec<Line>) -> Chart {
        let place = Place::Measured;
        let provenance =
            Provenance { source: String::new(), place, scale: 1.0, quick: false, seeds: 1 };
        Chart {
            title: String::new(),
            better: Better::Unstated,
            provenance,
            spread: Spread::Confidence,
            x: Axis::linear("clients", ""),
            y,
            plot: Plot::Lines(lines),
        }
    }

    fn found(y: Axis, lines: &[Line]) -> String {
        finding(&chart(y, lines.to_vec()), lines)
    }

    #[test]
    fn lines_are_ranked_at_both_ends_and_beside_the_paper() {
        let lines = [
            line("a", Look::Solid, &[(8.0, 1.0), (96.0, 6.0)]),
            line("b", Look::Solid, &[(8.0, 2.0), (96.0, 3.0)]),
            line("paper: a", Look::Quoted, &[(52.0, 7.0)]),
        ];
        assert_eq!(
            found(Axis::linear("latency", "ms"), &lines),
            "At 8 clients: Best: a, 1 ms. Worst: b, 2 ms: 2 × a.\nAt 96 clients: Best: b, 3 ms. \
             Worst: a, 6 ms: 2 × b.\nPaper, a at 52 clients: 7 ms, foxy 3.5 ms: 0.5 × the paper's."
        );
    }

    #[test]
    fn lines_without_a_common_place_are_ranked_at_their_ends() {
        let lines = [
            line("a", Look::Solid, &[(1.0, 1.0), (2.0, 4.0)]),
            line("b", Look::Solid, &[(3.0, 2.0)]),
        ];
        let text = "At the end of each line: Best: b, 2 s. Worst: a, 4 s: 2 × b.";
        assert_eq!(found(Axis::linear("time to open", "s"), &lines), text);
    }

    #[test]
    fn a_single_line_is_described_by_its_change() {
        let lines = [line("a", Look::Solid, &[(1.0, 2.0), (2.0, 9.0), (4.0, 3.0)])];
        assert_eq!(
            found(Axis::linear("rate", "1/s"), &lines),
            "a: from 2/s at 1 clients to 3/s at 4 clients: 1.5 × as much."
        );
    }

    #[test]
    fn ratios_of_requests_and_of_bytes_are_not_ranked() {
        let lines = [
            line("hit ratio", Look::Solid, &[(8.0, 20.0), (96.0, 10.0)]),
            line("byte hit ratio", Look::Solid, &[(8.0, 16.0), (96.0, 4.0)]),
        ];
        assert_eq!(
            found(Axis::linear("hit ratio", "%"), &lines),
            "hit ratio: from 20 % at 8 clients to 10 % at 96 clients: 0.5 × as much.\nbyte hit \
             ratio: from 16 % at 8 clients to 4 % at 96 clients: 0.25 × as much."
        );
    }

    #[test]
    fn staircases_are_ranked_by_their_means_over_the_range_of_all() {
        let lines = [
            line("a", Look::Steps, &[(0.0, 100.0), (1.0, 1.0), (2.0, 3.0), (3.0, 3.0)]),
            line("b", Look::Steps, &[(1.0, 4.0), (3.0, 4.0)]),
        ];
        assert_eq!(
            found(Axis::linear("requests", "1/s"), &lines),
            "Mean over the chart: Best: b, 4/s. Worst: a, 2/s: 0.5 × b."
        );
        assert_eq!(labels(&chart(Axis::linear("", ""), lines.to_vec()), &lines)[0], "a, mean 2");
    }

    #[test]
    fn distributions_are_ranked_by_their_percentiles() {
        let lines = vec![
            line("a", Look::Steps, &[(1.0, 0.0), (4.0, 0.5), (9.0, 1.0)]),
            line("b", Look::Steps, &[(1.0, 0.0), (5.0, 0.5), (6.0, 1.0)]),
        ];
        let Chart { provenance, .. } = chart(Axis::linear("", ""), Vec::new());
        let chart = Chart::distribution("t".into(), "latency", provenance, lines.clone());
        assert_eq!(
            finding(&chart, &lines),
            "Median: Best: a, 4 µs. Worst: b, 5 µs: 1.25 × a.\n99 %: Best: b, 6 µs. Worst: a, 9 \
             µs: 1.5 × b."
        );
        assert_eq!(labels(&chart, &lines)[1], "b, median 5 µs");
    }
}
