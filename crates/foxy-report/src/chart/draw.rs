//! Draws a chart: drops points that the axes cannot show, then adds grid, labels and data.

use super::axis::{Axis, Ruler, Spacing};
use super::sheet::{Entry, Key, MARGIN, Sheet, WIDTH, entries};
use super::svg::{Anchor, width_of};
use super::ticks::{Ends, Ticks};
use super::{Bars, Bin, Bins, Chart, Dots, Line, Look, Plot, Value, marks};

const PLOT_HEIGHT: f64 = 300.0;

/// The rectangle of the data, inside axes and labels.
#[derive(Clone, Copy, Debug)]
pub(super) struct Area {
    pub(super) left: f64,
    pub(super) right: f64,
    pub(super) top: f64,
    pub(super) bottom: f64,
}

pub(super) fn chart(chart: &Chart) -> String {
    let (plot, skipped) = usable(&chart.plot, &chart.x, &chart.y);
    let mut sheet = Sheet::new(&chart.title, &subtitle(chart, skipped));
    sheet.legend(&legend(&plot));
    match &plot {
        Plot::Bars { groups, series } => {
            marks::lying_bars(&mut sheet, &chart.x, &chart.y, groups, series)
        }
        upright => upright_plot(&mut sheet, chart, upright),
    }
    let height = sheet.next + 18.0;
    sheet.finish(height)
}

fn subtitle(chart: &Chart, skipped: usize) -> String {
    let text = chart.provenance.text();
    let with_intervals = match &chart.plot {
        Plot::Lines(lines) => {
            lines.iter().flat_map(|line| &line.points).any(|(_, v)| v.has_interval())
        }
        Plot::Bars { series, .. } => {
            series.iter().flat_map(|bars| &bars.values).flatten().any(|value| value.has_interval())
        }
        Plot::Dots(_) | Plot::Histogram(_) => false,
    };
    let intervals = if with_intervals { " · 95 % intervals" } else { "" };
    match skipped {
        0 => format!("{text}{intervals}"),
        1 => format!("{text}{intervals} · 1 point left out: it has no place on the axes"),
        many => {
            format!("{text}{intervals} · {many} points left out: they have no place on the axes")
        }
    }
}

fn legend(plot: &Plot) -> Vec<Entry> {
    match plot {
        Plot::Lines(lines) => entries(lines.iter().map(|line| match line.look {
            Look::Solid => (Key::Line, line.name.as_str()),
            Look::Dashed => (Key::Dashed, line.name.as_str()),
        })),
        Plot::Bars { series, .. } => {
            entries(series.iter().map(|bars| (Key::Box, bars.name.as_str())))
        }
        Plot::Dots(dots) => entries(dots.iter().map(|cloud| (Key::Dot, cloud.name.as_str()))),
        Plot::Histogram(series) => {
            entries(series.iter().map(|bins| (Key::Box, bins.name.as_str())))
        }
    }
}

fn upright_plot(sheet: &mut Sheet, chart: &Chart, plot: &Plot) {
    let (Some(across), Some(up)) = (chart.x.range(across(plot)), chart.y.range(up(plot))) else {
        return no_data(sheet);
    };
    let up = if wants_zero(plot, &chart.y, up) { (up.0.min(0.0), up.1.max(0.0)) } else { up };
    let up = Ticks::new(chart.y.spacing, up, 6, Ends::Nice);
    let widest = up.ticks.iter().map(|tick| width_of(&tick.label, 11.5)).fold(0.0, f64::max);
    sheet.svg.words("fx-caption", (MARGIN, sheet.next + 14.0), Anchor::Start, &chart.y.caption());
    let top = sheet.next + 28.0;
    let left = MARGIN + widest + 8.0;
    let area = Area { left, right: WIDTH - MARGIN - 8.0, top, bottom: top + PLOT_HEIGHT };
    let inset = if matches!(plot, Plot::Lines(_) | Plot::Dots(_)) { 10.0 } else { 0.0 };
    let across = Ticks::new(chart.x.spacing, across, 9, Ends::Exact);
    let x = Ruler::new(chart.x.spacing, across, area.left + inset, area.right - inset);
    let y = Ruler::new(chart.y.spacing, up, area.bottom, area.top);
    grid(sheet, area, &x, &y);
    let caption = (area.right, area.bottom + 40.0);
    sheet.svg.words("fx-caption", caption, Anchor::End, &chart.x.caption());
    match plot {
        Plot::Lines(lines) => marks::lines(&mut sheet.svg, chart, lines, &x, &y),
        Plot::Dots(dots) => marks::dots(&mut sheet.svg, dots, &x, &y),
        Plot::Histogram(series) => marks::histogram(&mut sheet.svg, chart, series, &x, &y),
        Plot::Bars { .. } => {}
    }
    sheet.next = area.bottom + 44.0;
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
    for tick in &x.ticks {
        let place = x.at(tick.value);
        sheet.svg.line("fx-axis", (place, area.bottom), (place, area.bottom + 5.0));
        sheet.svg.words("fx-tick", (place, area.bottom + 19.0), Anchor::Middle, &tick.label);
    }
}

/// Returns whether the axis must include zero. Zero is necessary for a histogram. It is also
/// necessary for positive values that spread over at least a quarter of the largest value.
fn wants_zero(plot: &Plot, axis: &Axis, (low, high): (f64, f64)) -> bool {
    let linear = axis.spacing == Spacing::Linear;
    linear && (matches!(plot, Plot::Histogram(_)) || (low > 0.0 && high - low >= high / 4.0))
}

fn across(plot: &Plot) -> Box<dyn Iterator<Item = f64> + '_> {
    match plot {
        Plot::Lines(lines) => {
            Box::new(lines.iter().flat_map(|line| line.points.iter().map(|point| point.0)))
        }
        Plot::Dots(dots) => {
            Box::new(dots.iter().flat_map(|cloud| cloud.points.iter().map(|point| point.0)))
        }
        Plot::Histogram(series) => Box::new(
            series.iter().flat_map(|bins| bins.bins.iter().flat_map(|bin| [bin.from, bin.to])),
        ),
        Plot::Bars { series, .. } => {
            let values = series.iter().flat_map(|bars| bars.values.iter().flatten());
            Box::new(values.flat_map(|value| [value.value, value.low, value.high]))
        }
    }
}

fn up(plot: &Plot) -> Box<dyn Iterator<Item = f64> + '_> {
    match plot {
        Plot::Lines(lines) => {
            let values = lines.iter().flat_map(|line| line.points.iter().map(|point| point.1));
            Box::new(values.flat_map(|value| [value.value, value.low, value.high]))
        }
        Plot::Dots(dots) => {
            Box::new(dots.iter().flat_map(|cloud| cloud.points.iter().map(|point| point.1)))
        }
        Plot::Histogram(series) => {
            Box::new(series.iter().flat_map(|bins| bins.bins.iter().map(|bin| bin.count)))
        }
        Plot::Bars { .. } => Box::new(std::iter::empty()),
    }
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
                let places = |bin: &Bin| x.holds(bin.from) && x.holds(bin.to) && bin.from < bin.to;
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

/// Replaces each end of an interval that the axis cannot show by the value.
fn interval(value: Value, axis: &Axis) -> Value {
    let end = |end: f64| if axis.holds(end) { end } else { value.value };
    Value { value: value.value, low: end(value.low), high: end(value.high) }
}
