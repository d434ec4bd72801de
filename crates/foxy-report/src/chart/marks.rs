//! Draws the data of upright charts: lines with bands, points of papers, and dots, with tooltips.

use super::axis::Ruler;
use super::labels::Labels;
use super::sheet::{colour, colours, mark};
use super::svg::{Svg, at};
use super::{Chart, Dots, Line, Look, Value};
use crate::number::readable;
use std::collections::BTreeSet;

/// Largest number of points that a line shows as marks. A line with more points has no marks,
/// because they would hide the line.
pub(super) const MAX_MARKS: usize = 60;
/// If a chart has more quoted points than this number, only tooltips give the values of the points.
const MAX_QUOTED_WORDS: usize = 8;

pub(super) fn lines(svg: &mut Svg, chart: &Chart, lines: &[Line], x: &Ruler, y: &Ruler) {
    let colours = colours(lines.iter().map(|line| &line.look));
    let place = |right: f64, up: f64| format!("{} {}", at(x.at(right)), at(y.at(up)));
    for (line, colour) in lines.iter().zip(&colours) {
        let is_band = line.look != Look::Quoted;
        if is_band && line.points.iter().any(|(_, value)| value.has_interval()) {
            let end = |of: fn(&Value) -> f64| {
                let ends = line.points.iter().map(move |(right, value)| (*right, of(value)));
                if line.look == Look::Steps { corners(ends) } else { ends.collect() }
            };
            let (upper, mut lower) = (end(|value| value.high), end(|value| value.low));
            lower.reverse();
            let corners = upper.into_iter().chain(lower).map(|(right, up)| place(right, up));
            let outline: Vec<String> = corners.collect();
            svg.path(&format!("fx-band {colour}"), &format!("M{}z", outline.join("L")), "");
        }
    }
    let quoted = lines.iter().filter(|line| line.look == Look::Quoted);
    let with_words = quoted.map(|line| line.points.len()).sum::<usize>() <= MAX_QUOTED_WORDS;
    for (number, (line, colour)) in lines.iter().zip(&colours).enumerate() {
        if line.points.is_empty() {
            continue;
        }
        let is_quoted = line.look == Look::Quoted;
        let dashes =
            if matches!(line.look, Look::Dashed | Look::Quoted) { " fx-dashed" } else { "" };
        let thin = if is_quoted || line.points.len() > MAX_MARKS { " fx-thin" } else { "" };
        let outline = outline(line, x, y);
        let class = format!("fx-line {colour}{dashes}{thin}");
        if line.look == Look::Steps || line.points.len() > MAX_MARKS {
            svg.tip(&class, &outline, &in_words(line, chart));
            continue;
        }
        if line.look != Look::Quoted || line.points.len() > 1 {
            svg.path(&class, &outline, &line.name);
        }
        for (right, value) in &line.points {
            let place = (x.at(*right), y.at(value.value));
            for &run in &value.runs {
                svg.dot(&format!("fx-run {colour}"), (place.0, y.at(run)));
            }
            if is_quoted && value.has_interval() {
                svg.line("fx-whisker", (place.0, y.at(value.low)), (place.0, y.at(value.high)));
            }
            if y.cuts(value.low) {
                svg.path(&format!("fx-cut {colour}"), &downward(place.0, y.at(value.low)), "");
            }
            let words = format!(
                "{}{}, {}",
                said(&line.name),
                amount(*right, &chart.x.unit),
                with_interval(value, &chart.y.unit)
            );
            let class = if is_quoted { "fx-quote" } else { "fx-mark" };
            svg.tip(&format!("{class} {colour}"), &mark(number, place.0, place.1), &words);
        }
    }
    if with_words {
        values_of_papers(svg, lines, x, y);
    }
}

/// Writes the values of a paper's points over all lines.
fn values_of_papers(svg: &mut Svg, lines: &[Line], x: &Ruler, y: &Ruler) {
    let mut labels = Labels::new(lines, x, y);
    for line in lines.iter().filter(|line| line.look == Look::Quoted) {
        for (right, value) in &line.points {
            let text = format!("{}, {}", line.name, quoted_text(value));
            labels.write(svg, (x.at(*right), y.at(value.value)), &text);
        }
    }
}

/// Returns the corners of a staircase: each value continues to the right until the next point.
pub(super) fn corners(points: impl Iterator<Item = (f64, f64)>) -> Vec<(f64, f64)> {
    let mut corners: Vec<(f64, f64)> = Vec::new();
    for (right, up) in points {
        corners.extend(corners.last().map(|&(_, before)| (right, before)));
        corners.push((right, up));
    }
    corners
}

/// Returns the tooltip of a line without marks: a few of its points.
fn in_words(line: &Line, chart: &Chart) -> String {
    let last = line.points.len() - 1;
    let mut numbers: Vec<usize> = (0..=4).map(|quarter| last * quarter / 4).collect();
    numbers.dedup();
    let point = |number: usize| {
        let (right, value) = &line.points[number];
        format!("{}, {}", amount(*right, &chart.x.unit), amount(value.value, &chart.y.unit))
    };
    let points: Vec<String> = numbers.into_iter().map(point).collect();
    format!("{}{}", said(&line.name), points.join("; "))
}

fn quoted_text(value: &Value) -> String {
    if value.has_interval() {
        format!("{}–{}", readable(value.low), readable(value.high))
    } else {
        readable(value.value)
    }
}

/// Returns the SVG path of a line. A line of the style [`Look::Steps`] is a staircase.
fn outline(line: &Line, x: &Ruler, y: &Ruler) -> String {
    let mut outline = String::new();
    for (number, (right, value)) in line.points.iter().enumerate() {
        let (right, up) = (at(x.at(*right)), at(y.at(value.value)));
        match (number, line.look) {
            (0, _) => outline = format!("M{right} {up}"),
            (_, Look::Steps) => outline.push_str(&format!("H{right}V{up}")),
            _ => outline.push_str(&format!("L{right} {up}")),
        }
    }
    outline
}

fn downward(x: f64, y: f64) -> String {
    format!("M{} {}L{} {}L{} {}z", at(x - 4.0), at(y - 6.0), at(x + 4.0), at(y - 6.0), at(x), at(y))
}

/// Draws the interval of a horizontal bar. An arrow shows that the interval continues beyond the
/// low end of the axis.
pub(super) fn whisker(svg: &mut Svg, ruler: &Ruler, value: &Value, middle: f64) {
    let (low, high) = (ruler.at(value.low), ruler.at(value.high));
    svg.line("fx-whisker", (low, middle), (high, middle));
    for end in [low, high] {
        if end > low || !ruler.cuts(value.low) {
            svg.line("fx-whisker", (end, middle - 3.0), (end, middle + 3.0));
        }
    }
    if ruler.cuts(value.low) {
        let (tip, back) = (at(low), at(low + 6.0));
        let outline = format!(
            "M{back} {}L{back} {}L{tip} {}z",
            at(middle - 4.0),
            at(middle + 4.0),
            at(middle)
        );
        svg.path("fx-cut", &outline, "");
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
            let words = format!("{}{} points", said(&cloud.name), cloud.points.len());
            svg.tip(&format!("fx-dots {}", colour(number)), &outline, &words);
        }
    }
}

pub(super) fn said(name: &str) -> String {
    if name.is_empty() { String::new() } else { format!("{name}: ") }
}

fn amount(value: f64, unit: &str) -> String {
    if unit.is_empty() { readable(value) } else { format!("{} {unit}", readable(value)) }
}

pub(super) fn with_interval(value: &Value, unit: &str) -> String {
    let text = amount(value.value, unit);
    if value.has_interval() {
        format!("{text} ({} to {})", readable(value.low), readable(value.high))
    } else {
        text
    }
}
