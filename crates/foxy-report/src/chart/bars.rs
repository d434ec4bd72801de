//! Draws horizontal bars. The name of each group is at the left, the value at the end of each bar.
//! A logarithmic axis has no zero, so a mark takes the place of each bar.

use super::axis::{Axis, Ruler, Spacing};
use super::draw::{ends, no_data};
use super::marks::{said, whisker, with_interval};
use super::sheet::{MARGIN, Sheet, WIDTH, colours, mark};
use super::svg::{Anchor, Svg, at, width_of, wrapped};
use super::ticks::{Ends, Ticks};
use super::{Bars, Look, Plot, Value};
use crate::number::readable;

/// Greatest width of the names of groups. Longer names continue on the next line.
const NAMES: f64 = 250.0;
const LINE: f64 = 15.0;
const GAP: f64 = 12.0;

/// The text of a group: lines of its name, and of its remark.
struct Label {
    name: Vec<String>,
    remark: Vec<String>,
}

impl Label {
    fn of(group: &str) -> Self {
        let (name, remark) = group.split_once('\n').unwrap_or((group, ""));
        Self { name: wrapped(name, 12.0, NAMES), remark: wrapped(remark, 11.0, NAMES) }
    }

    fn height(&self) -> f64 {
        LINE * (self.name.len() + self.remark.len()) as f64
    }

    fn width(&self) -> f64 {
        let name = self.name.iter().map(|line| width_of(line, 12.0));
        name.chain(self.remark.iter().map(|line| width_of(line, 11.0))).fold(0.0, f64::max)
    }

    fn draw(&self, svg: &mut Svg, right: f64, middle: f64) {
        let mut y = middle - self.height() / 2.0 + 11.0;
        for (class, lines) in [("fx-name", &self.name), ("fx-note", &self.remark)] {
            for line in lines {
                svg.words(class, (right, y), Anchor::End, line);
                y += LINE;
            }
        }
    }
}

pub(super) fn lying_bars(
    sheet: &mut Sheet,
    x: &Axis,
    y: &Axis,
    groups: &[String],
    series: &[Bars],
) {
    let cut = series.iter().map(|bars| Bars {
        values: bars.values.iter().take(groups.len()).cloned().collect(),
        ..bars.clone()
    });
    let plot = Plot::Bars { groups: groups.to_vec(), series: cut.collect() };
    let zero = (x.spacing == Spacing::Linear).then_some(0.0);
    let range = x.range(ends(&plot));
    let Some(range) = range.and_then(|range| x.range([range.0, range.1].into_iter().chain(zero)))
    else {
        return no_data(sheet);
    };
    let thick = if series.len() > 1 { 13.0 } else { 18.0 };
    let labels: Vec<Label> = groups.iter().map(|group| Label::of(group)).collect();
    let height = |label: &Label| label.height().max(thick * series.len() as f64) + GAP;
    let left = MARGIN + labels.iter().map(Label::width).fold(0.0, f64::max) + 10.0;
    let top = sheet.next + if y.title.is_empty() { 10.0 } else { 28.0 };
    let bottom = top + labels.iter().map(height).sum::<f64>() + 6.0;
    sheet.svg.words("fx-caption", (MARGIN, sheet.next + 14.0), Anchor::Start, &y.caption());
    let ticks = Ticks::new(x.spacing, range, 6, Ends::Nice);
    let (before, after) = room(x.spacing, series);
    let ruler = Ruler::new(x.spacing, ticks, left + before, WIDTH - MARGIN - after);
    for (tick, is_labelled) in ruler.labels(11.5) {
        let place = ruler.at(tick.value);
        sheet.svg.line("fx-grid", (place, top), (place, bottom));
        if is_labelled {
            sheet.svg.words("fx-tick", (place, bottom + 17.0), Anchor::Middle, &tick.label);
        }
    }
    sheet.svg.tips = (MARGIN, bottom + 54.0);
    if x.spacing != Spacing::Linear {
        for &value in x.shown.iter().filter(|value| x.holds(**value)) {
            sheet.svg.line("fx-axis", (ruler.at(value), top), (ruler.at(value), bottom));
        }
    }
    let colours = colours(series.iter().map(|bars| &bars.look));
    let mut start = top + 6.0;
    for (number, (label, name)) in labels.iter().zip(groups).enumerate() {
        let middle = start + (height(label) - GAP) / 2.0;
        label.draw(&mut sheet.svg, left - 10.0, middle);
        for (which, (bars, colour)) in series.iter().zip(&colours).enumerate() {
            if let Some(value) = bars.values.get(number).and_then(Option::as_ref) {
                let at = middle + thick * (which as f64 - series.len() as f64 / 2.0);
                let name = name.lines().next().unwrap_or_default();
                let words =
                    format!("{name}: {}{}", said(&bars.name), with_interval(value, &x.unit));
                let is_quoted = bars.look == Look::Quoted;
                let bar = Bar { ruler: &ruler, colour, which, is_quoted, top: at, thick };
                bar.draw(&mut sheet.svg, x.spacing, value, &words);
            }
        }
        start += height(label);
    }
    if x.spacing == Spacing::Linear {
        sheet.svg.line("fx-axis", (ruler.base(), top), (ruler.base(), bottom));
    }
    sheet.svg.words("fx-caption", (WIDTH - MARGIN, bottom + 37.0), Anchor::End, &x.caption());
    sheet.next = bottom + 42.0;
}

/// Returns the room for the values at the left ends of bars below zero, and at the right ends of
/// all other bars.
fn room(spacing: Spacing, series: &[Bars]) -> (f64, f64) {
    let (mut before, mut after) = (0.0, 0.0);
    for bars in series {
        for value in bars.values.iter().flatten() {
            let is_below = spacing == Spacing::Linear && value.value < 0.0;
            let room = if is_below { &mut before } else { &mut after };
            let words = value_words(value, bars.look == Look::Quoted);
            *room = f64::max(*room, width_of(&words, 11.5) + 8.0);
        }
    }
    (before, after)
}

/// Returns the text at the end of a bar: its value, or both ends of a range that a paper gives.
fn value_words(value: &Value, is_quoted: bool) -> String {
    if is_quoted && value.has_interval() {
        format!("{}–{}", readable(value.low), readable(value.high))
    } else {
        readable(value.value)
    }
}

/// The place and colour of a single bar.
struct Bar<'a> {
    ruler: &'a Ruler,
    colour: &'a str,
    which: usize,
    is_quoted: bool,
    top: f64,
    thick: f64,
}

impl Bar<'_> {
    fn draw(&self, svg: &mut Svg, spacing: Spacing, value: &Value, words: &str) {
        let (ruler, colour) = (self.ruler, self.colour);
        let (base, end) = (ruler.base(), ruler.at(value.value));
        let middle = self.top + self.thick / 2.0;
        if spacing == Spacing::Linear {
            let (start, tall) = (at(self.top + 0.5), at(self.thick - 1.0));
            let outline = format!("M{} {start}H{}v{tall}H{}z", at(base), at(end), at(base));
            svg.tip(&format!("fx-bar {colour}"), &outline, words);
        }
        if value.has_interval() {
            whisker(svg, ruler, value, middle);
        }
        if spacing != Spacing::Linear {
            let class = if self.is_quoted { "fx-quote" } else { "fx-mark" };
            svg.tip(&format!("{class} {colour}"), &mark(self.which, end, middle), words);
        }
        for &run in &value.runs {
            svg.dot("fx-run", (ruler.at(run), middle));
        }
        let (low, high) = (ruler.at(value.low), ruler.at(value.high));
        let (place, anchor) = if end < base {
            (low.min(end) - 6.0, Anchor::End)
        } else {
            (high.max(end) + 8.0, Anchor::Start)
        };
        svg.words("fx-value", (place, middle + 4.0), anchor, &value_words(value, self.is_quoted));
    }
}
