//! Draws the data of each kind of chart: lines with bands, bars, dots and bins, with tooltips.

use super::axis::{Axis, Ruler, Spacing};
use super::draw::no_data;
use super::sheet::{MARGIN, Sheet, WIDTH, colour, mark};
use super::svg::{Anchor, Svg, at, width_of};
use super::ticks::{Ends, Ticks};
use super::{Bars, Bins, Chart, Dots, Line, Look, Value};
use crate::number::readable;
use std::collections::BTreeSet;

/// Largest number of points that a line shows as marks. A line with more points has no marks,
/// because they would hide the line.
const MAX_MARKS: usize = 60;

pub(super) fn lines(svg: &mut Svg, chart: &Chart, lines: &[Line], x: &Ruler, y: &Ruler) {
    let place = |right: f64, up: f64| format!("{} {}", at(x.at(right)), at(y.at(up)));
    for (number, line) in lines.iter().enumerate() {
        if line.points.iter().any(|(_, value)| value.has_interval()) {
            let upper = line.points.iter().map(|(right, value)| place(*right, value.high));
            let lower = line.points.iter().rev().map(|(right, value)| place(*right, value.low));
            let outline: Vec<String> = upper.chain(lower).collect();
            svg.path(
                &format!("fx-band {}", colour(number)),
                &format!("M{}z", outline.join("L")),
                "",
            );
        }
    }
    for (number, line) in lines.iter().enumerate() {
        if line.points.is_empty() {
            continue;
        }
        let outline: Vec<String> =
            line.points.iter().map(|(right, value)| place(*right, value.value)).collect();
        let dashes = if line.look == Look::Dashed { " fx-dashed" } else { "" };
        let thin = if line.points.len() > MAX_MARKS { " fx-thin" } else { "" };
        let class = format!("fx-line {}{dashes}{thin}", colour(number));
        svg.path(&class, &format!("M{}", outline.join("L")), &line.name);
        if line.points.len() <= MAX_MARKS {
            for (right, value) in &line.points {
                let words = format!(
                    "{}{}, {}",
                    said(&line.name),
                    amount(*right, &chart.x.unit),
                    with_interval(*value, &chart.y.unit)
                );
                let outline = mark(number, x.at(*right), y.at(value.value));
                svg.path(&format!("fx-mark {}", colour(number)), &outline, &words);
            }
        }
    }
}

pub(super) fn dots(svg: &mut Svg, dots: &[Dots], x: &Ruler, y: &Ruler) {
    for (number, cloud) in dots.iter().enumerate() {
        let tenths = |place: f64| (place * 10.0).round() as i64;
        let places: BTreeSet<(i64, i64)> = cloud
            .points
            .iter()
            .map(|(right, up)| (tenths(x.at(*right)), tenths(y.at(*up))))
            .collect();
        let outline: String = places
            .into_iter()
            .map(|(right, down)| {
                format!("M{} {}h0", at(right as f64 / 10.0), at(down as f64 / 10.0))
            })
            .collect();
        if !outline.is_empty() {
            svg.path(&format!("fx-dots {}", colour(number)), &outline, &cloud.name);
        }
    }
}

pub(super) fn histogram(svg: &mut Svg, chart: &Chart, series: &[Bins], x: &Ruler, y: &Ruler) {
    let count = series.len().max(1) as f64;
    for (number, bins) in series.iter().enumerate() {
        for bin in &bins.bins {
            let (from, to) = (x.at(bin.from), x.at(bin.to));
            let gap = f64::min(1.5, (to - from) * 0.12);
            let wide = (to - from - gap) / count;
            let left = from + gap / 2.0 + wide * number as f64;
            let outline = standing(left, wide, y.base(), y.at(bin.count));
            let range = format!("{} to {}", readable(bin.from), amount(bin.to, &chart.x.unit));
            let words =
                format!("{}{range}: {}", said(&bins.name), amount(bin.count, &chart.y.unit));
            svg.path(&format!("fx-bar {}", colour(number)), &outline, &words);
        }
    }
}

fn standing(left: f64, wide: f64, base: f64, top: f64) -> String {
    format!("M{} {}h{:.2}V{}h{:.2}z", at(left), at(base), wide, at(top), -wide)
}

/// The heights of one bar and of one group of bars.
struct Rows {
    thick: f64,
    group: f64,
}

/// Draws horizontal bars, with the names of groups at the left and values at the ends.
pub(super) fn lying_bars(
    sheet: &mut Sheet,
    x: &Axis,
    y: &Axis,
    groups: &[String],
    series: &[Bars],
) {
    let shown = series.iter().flat_map(|bars| bars.values.iter().take(groups.len()).flatten());
    let zero = (x.spacing == Spacing::Linear).then_some(0.0);
    let ends = shown.flat_map(|value| [value.value, value.low, value.high]);
    let range = x.range(ends);
    let Some(range) = range.and_then(|range| x.range([range.0, range.1].into_iter().chain(zero)))
    else {
        return no_data(sheet);
    };
    let thick = if series.len() > 1 { 13.0 } else { 18.0 };
    let rows = Rows { thick, group: thick * series.len() as f64 + 12.0 };
    let longest = groups.iter().map(|name| width_of(name, 12.0)).fold(0.0, f64::max);
    let left = MARGIN + longest.min(260.0) + 10.0;
    let top = sheet.next + if y.title.is_empty() { 10.0 } else { 28.0 };
    let bottom = top + rows.group * groups.len() as f64 + 6.0;
    sheet.svg.words("fx-caption", (MARGIN, sheet.next + 14.0), Anchor::Start, &y.caption());
    let ruler = Ruler::new(
        x.spacing,
        Ticks::new(x.spacing, range, 6, Ends::Nice),
        left,
        WIDTH - MARGIN - 46.0,
    );
    for tick in &ruler.ticks {
        let place = ruler.at(tick.value);
        sheet.svg.line("fx-grid", (place, top), (place, bottom));
        sheet.svg.words("fx-tick", (place, bottom + 17.0), Anchor::Middle, &tick.label);
    }
    for (number, name) in groups.iter().enumerate() {
        let middle = top + 6.0 + rows.group * number as f64 + (rows.group - 12.0) / 2.0;
        sheet.svg.words("fx-name", (left - 10.0, middle + 4.2), Anchor::End, name);
        for (which, bars) in series.iter().enumerate() {
            if let Some(value) = bars.values.get(number).copied().flatten() {
                let at = middle + rows.thick * (which as f64 - series.len() as f64 / 2.0);
                let words =
                    format!("{name}: {}{}", said(&bars.name), with_interval(value, &x.unit));
                lying_bar(&mut sheet.svg, &ruler, &colour(which), (at, rows.thick), value, &words);
            }
        }
    }
    sheet.svg.line("fx-axis", (ruler.base(), top), (ruler.base(), bottom));
    sheet.svg.words("fx-caption", (WIDTH - MARGIN, bottom + 37.0), Anchor::End, &x.caption());
    sheet.next = bottom + 42.0;
}

fn lying_bar(
    svg: &mut Svg,
    ruler: &Ruler,
    colour: &str,
    (top, thick): (f64, f64),
    value: Value,
    words: &str,
) {
    let (base, end) = (ruler.base(), ruler.at(value.value));
    let middle = top + thick / 2.0;
    let outline =
        format!("M{} {}H{}v{}H{}z", at(base), at(top + 0.5), at(end), at(thick - 1.0), at(base));
    svg.path(&format!("fx-bar {colour}"), &outline, words);
    let (low, high) = (ruler.at(value.low), ruler.at(value.high));
    if value.has_interval() {
        svg.line("fx-whisker", (low, middle), (high, middle));
    }
    let (place, anchor) = if end < base {
        (low.min(end) - 6.0, Anchor::End)
    } else {
        (high.max(end) + 6.0, Anchor::Start)
    };
    svg.words("fx-value", (place, middle + 4.0), anchor, &readable(value.value));
}

fn said(name: &str) -> String {
    if name.is_empty() { String::new() } else { format!("{name}: ") }
}

fn amount(value: f64, unit: &str) -> String {
    if unit.is_empty() { readable(value) } else { format!("{} {unit}", readable(value)) }
}

fn with_interval(value: Value, unit: &str) -> String {
    let text = amount(value.value, unit);
    if value.has_interval() {
        format!("{text} (95 %: {} to {})", readable(value.low), readable(value.high))
    } else {
        text
    }
}
