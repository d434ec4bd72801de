//! Writes the names of lines at their right ends, so that readers need not match colours with the
//! legend.

use super::axis::Ruler;
use super::sheet::colours;
use super::svg::{Anchor, Svg, width_of};
use super::{Line, Look, Plot};

const SIZE: f64 = 12.0;
/// Height of a name.
const TALL: f64 = 14.0;
/// Width in pixels beyond which a name stands only in the legend.
const MAX_WIDTH: f64 = 180.0;
/// Number of lines beyond which a chart has names only in the legend.
const MAX_LINES: usize = 16;
/// Width of the thin line from the end of a line to its name.
const LEADER: f64 = 18.0;

/// The names at the right of a chart.
#[derive(Clone, Debug)]
pub(super) struct EndNames {
    /// Width of the widest name, with the room before it.
    pub(super) width: f64,
    /// The numbers of the lines that get a name.
    lines: Vec<usize>,
}

/// Returns the names of our own lines that reach the right end of the chart, if there are at least
/// two and they end at different heights.
pub(super) fn end_names(plot: &Plot) -> Option<EndNames> {
    let Plot::Lines(lines) = plot else { return None };
    let points = lines.iter().flat_map(|line| &line.points);
    let end = points.map(|point| point.0).fold(f64::NEG_INFINITY, f64::max);
    let last = |line: &Line| line.points.last().map(|(right, value)| (*right, value.value));
    let found: Vec<usize> = (0..lines.len())
        .filter(|&number| {
            let line = &lines[number];
            line.look != Look::Quoted && last(line).is_some_and(|(right, _)| right == end)
        })
        .collect();
    let heights = || found.iter().filter_map(|&number| last(&lines[number])).map(|(_, up)| up);
    let differ = heights().any(|up| heights().next() != Some(up));
    let width = found.iter().map(|&number| width_of(&lines[number].name, SIZE)).fold(0.0, f64::max);
    let is_small = (2..=MAX_LINES).contains(&found.len()) && width <= MAX_WIDTH;
    (differ && is_small).then_some(EndNames { width: width + LEADER, lines: found })
}

impl EndNames {
    pub(super) fn draw(&self, svg: &mut Svg, lines: &[Line], x: &Ruler, y: &Ruler) {
        let colours = colours(lines.iter().map(|line| &line.look));
        let mut ends: Vec<(usize, (f64, f64))> = self
            .lines
            .iter()
            .filter_map(|&number| {
                let (right, value) = lines[number].points.last()?;
                Some((number, (x.at(*right), y.at(value.value))))
            })
            .collect();
        ends.sort_by(|a, b| a.1.1.total_cmp(&b.1.1));
        let (top, bottom) = y.ends();
        let wanted: Vec<f64> = ends.iter().map(|(_, (_, up))| *up).collect();
        for ((number, (right, up)), place) in ends.iter().zip(spread(&wanted, top, bottom)) {
            let colour = &colours[*number];
            let (from, to) = ((right + 5.0, *up), (right + LEADER - 3.0, place));
            svg.line(&format!("fx-leader {colour}"), from, to);
            let class = format!("fx-end {colour}");
            svg.words(&class, (right + LEADER, place + 4.0), Anchor::Start, &lines[*number].name);
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
    use crate::chart::Value;

    #[test]
    fn names_never_touch_and_stay_inside() {
        let places = spread(&[100.0, 101.0, 399.0, 400.0], 99.0, 400.0);
        assert_eq!(places, [100.0, 114.0, 386.0, 400.0]);
    }

    #[test]
    fn lines_that_end_together_or_early_have_no_names() {
        let line = |name: &str, points: &[(f64, f64)]| Line {
            name: name.into(),
            look: Look::Solid,
            points: points.iter().map(|&(x, y)| (x, Value::exact(y))).collect(),
        };
        let names = |lines: &[Line]| end_names(&Plot::Lines(lines.to_vec())).map(|it| it.lines);
        let (a, b) = (line("a", &[(0.0, 1.0), (1.0, 2.0)]), line("b", &[(0.0, 1.0), (1.0, 3.0)]));
        assert_eq!(names(&[a.clone(), b.clone()]), Some(vec![0, 1]));
        assert_eq!(names(&[a.clone(), a.clone()]), None);
        assert_eq!(names(&[a, line("early", &[(0.5, 9.0)])]), None);
    }
}
