//! Places the values beside a paper's points, where they cover neither lines nor other values.

use super::axis::Ruler;
use super::marks::corners;
use super::svg::{Anchor, Svg, width_of};
use super::{Line, Look};

const SIZE: f64 = 11.5;
/// Height of a value above its base line, and its depth below.
const TALL: (f64, f64) = (10.0, 3.0);
/// The places that a value may have, from its point to the base line of the text.
const PLACES: [(f64, f64, Anchor); 10] = [
    (8.0, -7.0, Anchor::Start),
    (-8.0, -7.0, Anchor::End),
    (8.0, 16.0, Anchor::Start),
    (-8.0, 16.0, Anchor::End),
    (0.0, -14.0, Anchor::Middle),
    (0.0, 22.0, Anchor::Middle),
    (8.0, -24.0, Anchor::Start),
    (-8.0, -24.0, Anchor::End),
    (8.0, 34.0, Anchor::Start),
    (-8.0, 34.0, Anchor::End),
];
/// Distance in pixels between the points at which a line is compared with a value.
const STEP: f64 = 3.0;
/// Points at a smaller distance in pixels have almost the same place.
const NEAR: f64 = 24.0;
/// The price of a place outside of the chart, and of a place over another value. Each point of a
/// line under a value costs 1.
const OUTSIDE: usize = 10_000;
const OVER_VALUE: usize = 1_000;

type Spot = (f64, f64);

/// A rectangle: its left top and right bottom corner.
#[derive(Clone, Copy, Debug)]
struct Frame(Spot, Spot);

impl Frame {
    fn of((x, y): Spot, anchor: Anchor, words: &str) -> Self {
        let wide = width_of(words, SIZE);
        let left = match anchor {
            Anchor::Start => x,
            Anchor::Middle => x - wide / 2.0,
            Anchor::End => x - wide,
        };
        Self((left, y - TALL.0), (left + wide, y + TALL.1))
    }

    fn holds(&self, (x, y): Spot) -> bool {
        let Self((left, top), (right, bottom)) = *self;
        (left..=right).contains(&x) && (top..=bottom).contains(&y)
    }

    fn touches(&self, other: &Self) -> bool {
        let Self((left, top), (right, bottom)) = *self;
        left < other.1.0 && other.0.0 < right && top < other.1.1 && other.0.1 < bottom
    }
}

/// The texts to write, and what lies below them.
pub(super) struct Labels {
    /// Points along all lines, at most `STEP` apart.
    lines: Vec<Spot>,
    chart: Frame,
    taken: Vec<Frame>,
    /// The values that are written, with their points.
    written: Vec<(Spot, String)>,
}

impl Labels {
    pub(super) fn new(lines: &[Line], x: &Ruler, y: &Ruler) -> Self {
        let (left, right) = x.ends();
        let (top, bottom) = y.ends();
        let points = lines.iter().flat_map(|line| {
            let place = line.points.iter().map(|(right, value)| (x.at(*right), y.at(value.value)));
            along(&if line.look == Look::Steps { corners(place) } else { place.collect() })
        });
        // The frame has room for a mark at the edge.
        let chart = Frame((left - 8.0, top - 4.0), (right + 8.0, bottom));
        Self { lines: points.collect(), chart, taken: Vec::new(), written: Vec::new() }
    }

    /// Writes a value beside the point at `spot`, at the first place that covers the least. Writes
    /// the value of two points with almost the same place once.
    pub(super) fn write(&mut self, svg: &mut Svg, spot: Spot, words: &str) {
        let is_near = |other: &Spot| (other.0 - spot.0).hypot(other.1 - spot.1) < NEAR;
        if self.written.iter().any(|(other, value)| value == words && is_near(other)) {
            return;
        }
        self.written.push((spot, words.to_owned()));
        let frames = PLACES.map(|(right, down, anchor)| {
            let place = (spot.0 + right, spot.1 + down);
            (place, anchor, Frame::of(place, anchor, words))
        });
        let best = frames.into_iter().min_by_key(|(.., frame)| self.price(frame));
        if let Some((place, anchor, frame)) = best {
            self.taken.push(frame);
            svg.words("fx-value fx-halo", place, anchor, words);
        }
    }

    fn price(&self, frame: &Frame) -> usize {
        let is_inside = self.chart.holds(frame.0) && self.chart.holds(frame.1);
        let over = self.taken.iter().filter(|taken| taken.touches(frame)).count();
        let covered = self.lines.iter().filter(|point| frame.holds(**point)).count();
        covered + over * OVER_VALUE + usize::from(!is_inside) * OUTSIDE
    }
}

/// Returns points on the straight lines through `corners`, at most `STEP` apart.
fn along(corners: &[Spot]) -> Vec<Spot> {
    let mut points: Vec<Spot> = corners.iter().take(1).copied().collect();
    for pair in corners.windows(2) {
        let ((x, y), (right, down)) = (pair[0], pair[1]);
        let count = ((right - x).hypot(down - y) / STEP).ceil().max(1.0);
        let at = |number: u32| {
            let share = f64::from(number) / count;
            (x + share * (right - x), y + share * (down - y))
        };
        points.extend((1..=count as u32).map(at));
    }
    points
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(lines: &[Spot]) -> Labels {
        let chart = Frame((0.0, 0.0), (700.0, 300.0));
        Labels { lines: along(lines), chart, taken: Vec::new(), written: Vec::new() }
    }

    fn written(labels: &mut Labels, spot: Spot) -> (f64, f64) {
        labels.write(&mut Svg::default(), spot, "paper: STREAM, 2");
        let Frame((left, top), _) = labels.taken[labels.taken.len() - 1];
        (left, top + TALL.0)
    }

    #[test]
    fn a_value_is_above_its_point_and_below_if_a_line_is_above() {
        assert_eq!(written(&mut labels(&[]), (100.0, 100.0)), (108.0, 93.0));
        let line = [(0.0, 90.0), (700.0, 90.0)];
        assert_eq!(written(&mut labels(&line), (100.0, 100.0)), (108.0, 116.0));
    }

    #[test]
    fn a_value_at_an_edge_is_inside_and_values_of_one_point_are_apart() {
        let place = written(&mut labels(&[]), (690.0, 2.0));
        assert!(place.0 < 600.0 && place.1 == 18.0, "{place:?}");
        let mut all = labels(&[]);
        let places = [0.0, 25.0, 50.0, 75.0].map(|right| written(&mut all, (300.0 + right, 100.0)));
        let frames = &all.taken;
        let touch = |one: usize| frames[..one].iter().any(|other| other.touches(&frames[one]));
        assert!(!(1..4).any(touch), "{places:?}");
    }

    #[test]
    fn points_at_almost_the_same_place_have_one_value() {
        let mut all = labels(&[]);
        for place in [(300.0, 100.0), (310.0, 100.0), (340.0, 100.0)] {
            written(&mut all, place);
        }
        assert_eq!(all.taken.len(), 2);
    }
}
