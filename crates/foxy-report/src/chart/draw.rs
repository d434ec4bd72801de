//! Draws a chart: drops points that the axes cannot show, then adds grid, labels and data.

use super::axis::{Axis, Ruler, Spacing};
use super::bars::lying_bars;
use super::certainty::{certainty, values};
use super::finding::{better, finding, is_distribution, labels};
use super::names::end_names;
use super::sheet::{Entry, Key, MARGIN, Sheet, WIDTH, entries};
use super::svg::{Anchor, width_of};
use super::ticks::{Ends, Tick, Ticks};
use super::{Bars, Better, Chart, Dots, Line, Look, Plot, Value, marks};
use crate::number::readable;

const PLOT_HEIGHT: f64 = 300.0;
/// If the lines have points at 3 to 14 different x values, the x axis has a tick at each of these
/// values. Otherwise the axis has ticks at round numbers.
const TICKS_AT_POINTS: std::ops::RangeInclusive<usize> = 3..=14;

/// The rectangle of the chart in which the data are drawn. Axes and labels lie outside.
#[derive(Clone, Copy, Debug)]
struct Area {
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
}

pub(super) fn chart(chart: &Chart) -> String {
    let (plot, skipped) = usable(&chart.plot, &chart.x, &chart.y);
    let up = up_range(&plot, &chart.y);
    let mut subtitle = subtitle(chart, &plot, skipped);
    let is_upright = !matches!(plot, Plot::Bars { .. });
    let is_cut = chart.y.spacing == Spacing::Linear && up.is_some_and(|(low, _)| low > 0.0);
    if is_upright && is_cut {
        subtitle.push_str(" · the vertical axis does not start at 0");
    }
    let mut sheet = Sheet::new(&chart.title, &finding(chart, &plot), &subtitle);
    sheet.legend(&legend(&plot, chart));
    match &plot {
        Plot::Bars { groups, series } => lying_bars(&mut sheet, &chart.x, &chart.y, groups, series),
        upright => upright_plot(&mut sheet, chart, upright, up),
    }
    let height = sheet.next + 22.0;
    sheet.finish(height)
}

/// Returns the subtitle. It says whether higher or lower values are better, and what intervals and
/// small dots mean. It also gives the source of the values, and the number of points left out.
fn subtitle(chart: &Chart, plot: &Plot, skipped: usize) -> String {
    let has_paper = values(plot).any(|(look, _)| look == Look::Quoted);
    let direction = match better(chart) {
        Better::Neither if has_paper => "Nearer to the paper is better",
        better => better.words(),
    };
    let certainty = certainty(chart, plot);
    let mut text = format!("{direction} · {certainty} · {}", chart.provenance.text());
    match skipped {
        0 => {}
        1 => text.push_str(" · 1 point left out: it has no place on the axes"),
        many => {
            text.push_str(&format!(" · {many} points left out: they have no place on the axes"))
        }
    }
    text
}

fn legend(plot: &Plot, chart: &Chart) -> Vec<Entry> {
    let medians = match plot {
        Plot::Lines(lines) if is_distribution(chart) => labels(chart, lines),
        _ => Vec::new(),
    };
    let series: Vec<(Key, Look, &str)> = match plot {
        Plot::Lines(lines) if !medians.is_empty() => {
            let named = lines.iter().zip(&medians);
            named.map(|(line, label)| (Key::of(line), line.look, label.as_str())).collect()
        }
        Plot::Lines(lines) => {
            lines.iter().map(|line| (Key::of(line), line.look, line.name.as_str())).collect()
        }
        Plot::Bars { series, .. } => {
            let key = if chart.x.spacing == Spacing::Linear { Key::Box } else { Key::Mark };
            series.iter().map(|bars| (key, bars.look, bars.name.as_str())).collect()
        }
        Plot::Dots(dots) => {
            dots.iter().map(|cloud| (Key::Dot, Look::Solid, cloud.name.as_str())).collect()
        }
    };
    entries(&series)
}

impl Key {
    fn of(line: &Line) -> Self {
        match line.look {
            Look::Solid if line.points.len() > marks::MAX_MARKS => Self::Steps,
            Look::Solid => Self::Line,
            Look::Dashed => Self::Dashed,
            Look::Steps => Self::Steps,
            Look::Quoted if line.points.len() > 1 => Self::Dashed,
            Look::Quoted => Self::Mark,
        }
    }
}

fn upright_plot(sheet: &mut Sheet, chart: &Chart, plot: &Plot, up: Option<(f64, f64)>) {
    let (Some(across), Some(up)) = (chart.x.range(across(plot)), up) else {
        return no_data(sheet);
    };
    let up = Ticks::new(chart.y.spacing, up, 6, Ends::Nice);
    let widest = up.ticks.iter().map(|tick| width_of(&tick.label, 11.5)).fold(0.0, f64::max);
    sheet.svg.words("fx-caption", (MARGIN, sheet.next + 14.0), Anchor::Start, &chart.y.caption());
    let top = sheet.next + 28.0;
    let left = MARGIN + widest + 8.0;
    let names = end_names(chart, plot);
    let right = WIDTH - MARGIN - 8.0 - names.as_ref().map_or(0.0, |names| names.width);
    let area = Area { left, right, top, bottom: top + PLOT_HEIGHT };
    let mut across = Ticks::new(chart.x.spacing, across, 9, Ends::Exact);
    if let Some(ticks) = ticks_at_points(plot).filter(|_| !is_distribution(chart)) {
        across.ticks = ticks;
    }
    let x = Ruler::new(chart.x.spacing, across, area.left + 10.0, area.right - 10.0);
    let y = Ruler::new(chart.y.spacing, up, area.bottom, area.top);
    grid(sheet, area, &x, &y);
    sheet.svg.tips = (MARGIN, area.bottom + 56.0);
    let caption = (area.right, area.bottom + 40.0);
    sheet.svg.words("fx-caption", caption, Anchor::End, &chart.x.caption());
    match plot {
        Plot::Lines(lines) => {
            marks::lines(&mut sheet.svg, chart, lines, &x, &y);
            if let Some(names) = names {
                names.draw(&mut sheet.svg, lines, &x, &y);
            }
        }
        Plot::Dots(dots) => marks::dots(&mut sheet.svg, dots, &x, &y),
        Plot::Bars { .. } => {}
    }
    sheet.next = area.bottom + 44.0;
}

/// Returns a tick for each x value of the lines' points if [`TICKS_AT_POINTS`] allows this number
/// of ticks.
fn ticks_at_points(plot: &Plot) -> Option<Vec<Tick>> {
    let Plot::Lines(lines) = plot else { return None };
    if lines.iter().any(|line| line.look == Look::Steps) {
        return None;
    }
    let mut values: Vec<f64> = across(plot).collect();
    values.sort_by(f64::total_cmp);
    values.dedup();
    let ticks = values.iter().map(|&value| Tick { value, label: readable(value) });
    TICKS_AT_POINTS.contains(&values.len()).then(|| ticks.collect())
}

pub(super) fn no_data(sheet: &mut Sheet) {
    sheet.svg.words("fx-caption", (WIDTH / 2.0, sheet.next + 60.0), Anchor::Middle, "no data");
    sheet.next += 110.0;
}

fn grid(sheet: &mut Sheet, area: Area, x: &Ruler, y: &Ruler) {
    for tick in &y.ticks {
        let place = y.at(tick.value);
        sheet.svg.line("fx-grid", (area.left, place), (area.right, place));
        sheet.svg.words("fx-tick", (area.left - 8.0, place + 4.0), Anchor::End, &tick.label);
    }
    sheet.svg.line("fx-axis", (area.left, area.bottom), (area.right, area.bottom));
    for (tick, is_labelled) in x.labels(11.5) {
        let place = x.at(tick.value);
        sheet.svg.line("fx-axis", (place, area.bottom), (place, area.bottom + 5.0));
        if is_labelled {
            sheet.svg.words("fx-tick", (place, area.bottom + 19.0), Anchor::Middle, &tick.label);
        }
    }
}

fn across(plot: &Plot) -> Box<dyn Iterator<Item = f64> + '_> {
    match plot {
        Plot::Lines(lines) => {
            Box::new(lines.iter().flat_map(|line| line.points.iter().map(|point| point.0)))
        }
        Plot::Dots(dots) => {
            Box::new(dots.iter().flat_map(|cloud| cloud.points.iter().map(|point| point.0)))
        }
        Plot::Bars { .. } => Box::new(std::iter::empty()),
    }
}

/// Returns the range of the vertical axis. If all values are positive and the lowest is at most
/// half of the highest, the range starts at zero.
fn up_range(plot: &Plot, axis: &Axis) -> Option<(f64, f64)> {
    let range = match plot {
        Plot::Dots(dots) => {
            axis.range(dots.iter().flat_map(|cloud| cloud.points.iter().map(|point| point.1)))
        }
        Plot::Lines(_) | Plot::Bars { .. } => axis.range(ends(plot)),
    };
    let (low, high) = range?;
    let linear = axis.spacing == Spacing::Linear;
    let wants_zero = linear && low > 0.0 && high - low >= high / 2.0;
    Some(if wants_zero { (0.0, high) } else { (low, high) })
}

/// Returns all values of a plot, the ends of their intervals, and the values of single runs. If no
/// value is negative, raises the negative end of an interval to zero.
pub(super) fn ends(plot: &Plot) -> impl Iterator<Item = f64> + '_ {
    let never_negative = values(plot).all(|(_, value)| value.value >= 0.0);
    let least = if never_negative { 0.0 } else { f64::NEG_INFINITY };
    values(plot).flat_map(move |(_, value)| {
        let ends = [value.value, value.low.max(least), value.high];
        ends.into_iter().chain(value.runs.iter().copied())
    })
}

/// Drops points that the axes cannot show. Also returns the number of dropped points.
fn usable(plot: &Plot, x: &Axis, y: &Axis) -> (Plot, usize) {
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
            let mut bars = |bars: &Bars| Bars {
                name: bars.name.clone(),
                look: bars.look,
                values: bars
                    .values
                    .iter()
                    .map(|value| value.as_ref().filter(|v| count(x.holds(v.value))).map(finite))
                    .collect(),
            };
            Plot::Bars { groups: groups.clone(), series: series.iter().map(&mut bars).collect() }
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
    };
    (plot, skipped)
}

fn line_on(line: &Line, x: &Axis, y: &Axis, count: &mut impl FnMut(bool) -> bool) -> Line {
    let kept =
        line.points.iter().filter(|(right, value)| count(x.holds(*right) && y.holds(value.value)));
    let mut points: Vec<(f64, Value)> =
        kept.map(|(right, value)| (*right, finite(value))).collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    Line { name: line.name.clone(), look: line.look, points }
}

/// Replaces each end of an interval that is not finite by the value.
fn finite(value: &Value) -> Value {
    let end = |end: f64| if end.is_finite() { end } else { value.value };
    let (low, high) = (end(value.low), end(value.high));
    Value { value: value.value, low, high, runs: value.runs.clone() }
}
