//! What of a plot can be drawn: finite numbers, positive ones where the axis is logarithmic; the
//! rest is counted.

use super::{Axis, Bars, Bins, Dots, Line, Plot, Value};

/// `plot` without what has no place on the axes, and how many points that were.
pub(super) fn usable(plot: &Plot, x: &Axis, y: &Axis) -> (Plot, usize) {
    let mut skipped = 0;
    let mut count = |keep: bool| {
        skipped += usize::from(!keep);
        keep
    };
    let plot = match plot {
        Plot::Lines(lines) => {
            Plot::Lines(lines.iter().map(|line| line_on(line, x, y, &mut count)).collect())
        }
        Plot::Bars { groups, series } => {
            let bars = |bars: &Bars| Bars {
                name: bars.name.clone(),
                values: bars
                    .values
                    .iter()
                    .map(|value| value.filter(|v| count(x.holds(v.value))))
                    .collect(),
            };
            let series: Vec<Bars> = series.iter().map(bars).collect();
            let series = series.into_iter().map(|bars| Bars {
                values: bars
                    .values
                    .into_iter()
                    .map(|value| value.map(|value| interval(value, x)))
                    .collect(),
                ..bars
            });
            Plot::Bars { groups: groups.clone(), series: series.collect() }
        }
        Plot::Dots(dots) => {
            let mut cloud = |cloud: &Dots| {
                let points = cloud.points.iter().copied();
                let points =
                    points.filter(|(right, up)| count(x.holds(*right) && y.holds(*up))).collect();
                Dots { name: cloud.name.clone(), points }
            };
            Plot::Dots(dots.iter().map(&mut cloud).collect())
        }
        Plot::Histogram(series) => {
            let mut bins = |bins: &Bins| {
                let places =
                    |bin: &super::Bin| x.holds(bin.from) && x.holds(bin.to) && bin.from < bin.to;
                let kept = bins
                    .bins
                    .iter()
                    .copied()
                    .filter(|bin| count(places(bin) && y.holds(bin.count)));
                Bins { name: bins.name.clone(), bins: kept.collect() }
            };
            Plot::Histogram(series.iter().map(&mut bins).collect())
        }
    };
    (plot, skipped)
}

fn line_on(line: &Line, x: &Axis, y: &Axis, count: &mut impl FnMut(bool) -> bool) -> Line {
    let kept =
        line.points.iter().filter(|(right, value)| count(x.holds(*right) && y.holds(value.value)));
    let mut points: Vec<(f64, Value)> =
        kept.map(|&(right, value)| (right, interval(value, y))).collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    Line { name: line.name.clone(), look: line.look, points }
}

/// An end of an interval that has no place on the axis is the value itself.
fn interval(value: Value, axis: &Axis) -> Value {
    let end = |end: f64| if axis.holds(end) { end } else { value.value };
    Value { value: value.value, low: end(value.low), high: end(value.high) }
}
