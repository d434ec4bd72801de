//! Writes the names and last values of lines at their right ends, so that readers need not match
//! colours with the legend.

use super::axis::Ruler;
use super::finding::{is_distribution, labels};
use super::sheet::colours;
use super::svg::{Anchor, BOLD, Svg, width_of};
use super::{Chart, Line, Look, Plot};

const SIZE: f64 = 12.0;
/// Height of a name.
const TALL: f64 = 14.0;
/// Width in pixels beyond which a name stands only in the legend.
const MAX_WIDTH: f64 = 260.0;
/// Number of lines beyond which a chart has names only in the legend.
const MAX_LINES: usize = 16;
/// Width of the thin line from the end of a line to its name.
const LEADER: f64 = 18.0;

/// The names at the right of a chart.
#[derive(Clone, Debug)]
pub(super) struct EndNames {
    /// Width of the widest name, with the room before it.
    pub(super) width: f64,
    /// The numbers of the lines that get a name, each with the name.
    lines: Vec<(usize, String)>,
}

/// Returns the names of all lines except a paper's. Returns `None` if they need too much room, and
/// for a distribution, whose lines all end at the same height.
pub(super) fn end_names(chart: &Chart, plot: &Plot) -> Option<EndNames> {
    let Plot::Lines(lines) = plot else { return None };
    if is_distribution(chart) {
        return None;
    }
    let named = labels(chart, lines).into_iter().enumerate();
    let found: Vec<(usize, String)> = named
        .filter(|(number, _)| {
            let line = &lines[*number];
            line.look != Look::Quoted && !line.points.is_empty()
        })
        .collect();
    let width = found.iter().map(|(_, name)| width_of(name, SIZE * BOLD)).fold(0.0, f64::max);
    let is_small = (1..=MAX_LINES).contains(&found.len()) && width <= MAX_WIDTH;
    is_small.then_some(EndNames { width: width + LEADER, lines: found })
}

impl EndNames {
    pub(super) fn draw<'a>(&'a self, svg: &mut Svg, lines: &[Line], x: &Ruler, y: &Ruler) {
        let colours = colours(lines.iter().map(|line| &line.look));
        let end = |(number, name): &'a (usize, String)| {
            let (right, value) = lines[*number].points.last()?;
            Some((&colours[*number], name, (x.at(*right), y.at(value.value))))
        };
        let mut ends: Vec<_> = self.lines.iter().filter_map(end).collect();
        ends.sort_by(|a, b| a.2.1.total_cmp(&b.2.1));
        let (top, bottom) = y.ends();
        let edge = x.ends().1 + LEADER;
        let wanted: Vec<f64> = ends.iter().map(|(_, _, (_, up))| *up).collect();
        for ((colour, name, (right, up)), place) in ends.iter().zip(spread(&wanted, top, bottom)) {
            let (from, to) = ((right + 5.0, *up), (edge - 3.0, place));
            svg.line(&format!("fx-leader {colour}"), from, to);
            svg.words(&format!("fx-end {colour}"), (edge, place + 4.0), Anchor::Start, name);
        }
    }
}

/// Moves sorted heights apart, so that names of the height `TALL` do not touch. All places lie
/// between `top` and `bottom` if there is room.
fn spread(wanted: &[f64], top: f64, bottom: f64) -> Vec<f64> {
    let mut places: Vec<f64> = Vec::new();
    for &want in wanted {
        let above = places.last().map_or(top, |above| above + TALL);
        places.push(want.max(above));
    }
    let mut limit = bottom;
    for place in places.iter_mut().rev() {
        *place = place.min(limit);
        limit = *place - TALL;
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chart::{Axis, Better, Place, Provenance, Spread, Value};

    #[test]
    fn names_never_touch_and_stay_inside() {
        let places = spread(&[100.0, 101.0, 399.0, 400.0], 99.0, 400.0);
        assert_eq!(places, [100.0, 114.0, 386.0, 400.0]);
    }

    #[test]
    fn our_lines_have_names_at_their_ends_and_quoted_lines_have_none() {
        let line = |name: &str, look, points: &[(f64, f64)]| Line {
            name: name.into(),
            look,
            points: points.iter().map(|&(x, y)| (x, Value::exact(y))).collect(),
        };
        let lines = vec![
            line("foxy", Look::Solid, &[(0.0, 1.0), (1.0, 2.0)]),
            line("early", Look::Solid, &[(0.0, 3.0)]),
            line("paper", Look::Quoted, &[(0.0, 1.0)]),
            line("empty", Look::Solid, &[]),
        ];
        let chart = |lines: Vec<Line>| Chart {
            title: String::new(),
            better: Better::Higher,
            provenance: Provenance {
                source: String::new(),
                place: Place::Measured,
                scale: 1.0,
                quick: false,
                seeds: 1,
            },
            spread: Spread::Runs,
            x: Axis::linear("", ""),
            y: Axis::linear("", ""),
            plot: Plot::Lines(lines),
        };
        let names = |lines| {
            let chart = chart(lines);
            end_names(&chart, &chart.plot).map(|found| found.lines)
        };
        let expected = vec![(0, "foxy, 2".to_owned()), (1, "early, 3".to_owned())];
        assert_eq!(names(lines.clone()), Some(expected));
        assert_eq!(names(lines[2..].to_vec()), None);
        assert_eq!(names(vec![lines[0].clone(); MAX_LINES + 1]), None);
    }
}
