//! The pictures of a figure: their data, and the chart or map that shows the data. Each point has
//! the values of all seeds. Points of the paper come from the table of quotes.

use foxy_report::chart::map::{Content, Map, MapState, Shading};
use foxy_report::chart::{
    Axis, Bars, Better, Chart, Dots, Line, Look, Plot, Provenance, Spacing, Spread, Value,
};
use foxy_report::figure::quotes::in_chart;
use foxy_store::layout::SLOT;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq)]
pub enum Drawing {
    Chart(Chart),
    Map(Map),
}

impl Drawing {
    pub fn svg(&self) -> String {
        match self {
            Self::Chart(chart) => chart.svg(),
            Self::Map(map) => map.svg(),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoreMap {
    pub name: String,
    pub slots: u32,
    /// The free space of the store: the first slot and the length of each row of neighbouring free
    /// slots, in order.
    pub free_runs: Vec<(u32, u32)>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Picture {
    /// A chart with axes. The title of an axis ends with its unit.
    Plot {
        title: String,
        x: String,
        y: String,
        plot: Plot,
    },
    Map {
        title: String,
        stores: Vec<StoreMap>,
    },
}

/// Makes a line. Each point has the values of all seeds. Drops points without a finite value.
pub fn line(name: &str, points: impl IntoIterator<Item = (f64, Vec<f64>)>) -> Line {
    let points = points.into_iter().filter_map(|(x, runs)| Some((x, Value::of_runs(&runs)?)));
    Line { name: name.into(), look: Look::Solid, points: points.collect() }
}

/// Makes a line that keeps each value until the next point.
pub fn steps(name: &str, points: impl IntoIterator<Item = (f64, Vec<f64>)>) -> Line {
    Line { look: Look::Steps, ..line(name, points) }
}

/// Makes the points of a paper. Drops points that the paper does not have.
pub fn paper(name: &str, points: impl IntoIterator<Item = (f64, Option<Value>)>) -> Line {
    let points = points.into_iter().filter_map(|(x, value)| Some((x, value?)));
    Line { name: format!("paper: {name}"), look: Look::Quoted, points: points.collect() }
}

/// Makes the point of a paper at `x`, which has the quoted value of a row.
pub fn quoted(name: &str, x: f64, figure: &str, row: &str) -> Line {
    paper(name, [(x, in_chart(figure, row))])
}

/// Applies the function `of` to a quoted value and to both ends of its interval. If `of` decreases,
/// the ends change places.
pub fn changed(value: Option<Value>, of: impl Fn(f64) -> f64) -> Option<Value> {
    let value = value?;
    let (one, other) = (of(value.low), of(value.high));
    Some(Value::between(of(value.value), one.min(other), one.max(other)))
}

/// Makes bars with the values of all seeds, one bar for each group.
pub fn bars(name: &str, values: impl IntoIterator<Item = Vec<f64>>) -> Bars {
    let values = values.into_iter().map(|runs| Value::of_runs(&runs)).collect();
    Bars { name: name.into(), look: Look::Solid, values }
}

/// Makes bars with quoted values.
pub fn quoted_bars(values: impl IntoIterator<Item = Option<Value>>) -> Bars {
    Bars { name: "the paper".into(), look: Look::Quoted, values: values.into_iter().collect() }
}

/// If the title of an axis contains these words, the axis shows ratios. The range of such an axis
/// includes the ratio 1, which means no gain.
const TIMES: &str = "times that";

fn ends(plot: &Plot) -> [Vec<f64>; 2] {
    let of = |value: &Value| [value.value, value.low, value.high];
    match plot {
        Plot::Lines(lines) => {
            let points = || lines.iter().flat_map(|line| &line.points);
            [
                points().map(|point| point.0).collect(),
                points().flat_map(|point| of(&point.1)).collect(),
            ]
        }
        Plot::Bars { series, .. } => {
            let values = series.iter().flat_map(|bars| bars.values.iter().flatten());
            [values.flat_map(of).collect(), Vec::new()]
        }
        Plot::Dots(_) => [Vec::new(), Vec::new()],
    }
}

/// If the paper's points are this many times above all simulated points, a linear axis would
/// flatten the simulated lines.
const FAR: f64 = 3.0;

/// Returns whether the paper's points of a chart would flatten the simulated lines on a linear
/// axis. A logarithmic axis must be able to show all points.
fn flattens(plot: &Plot) -> bool {
    let Plot::Lines(lines) = plot else { return false };
    let highest = |is_quoted: bool| {
        let lines = lines.iter().filter(|line| (line.look == Look::Quoted) == is_quoted);
        let values = lines.flat_map(|line| line.points.iter().map(|(_, value)| value.high));
        values.fold(0.0, f64::max)
    };
    let mut all = lines.iter().flat_map(|line| line.points.iter().map(|(_, value)| value.low));
    highest(true) > FAR * highest(false) && all.all(|low| low > 0.0)
}

impl StoreMap {
    fn state(&self) -> MapState {
        let mut state = MapState::new(&self.name);
        let mut end = 0;
        for &(first, slots) in &self.free_runs {
            state.push(u64::from(first.saturating_sub(end)), Content::Live(1));
            state.push(u64::from(slots), Content::Free);
            end = first + slots;
        }
        state.push(u64::from(self.slots.saturating_sub(end)), Content::Live(1));
        state
    }
}

impl Picture {
    /// Creates a chart of lines. `titles` are the titles of the picture, of the x axis and of the y
    /// axis. Leaves out lines without points.
    pub fn lines(titles: [&str; 3], lines: Vec<Line>) -> Self {
        let lines = lines.into_iter().filter(|line| !line.points.is_empty()).collect();
        Self::plot(titles, Plot::Lines(lines))
    }

    /// Creates a chart of bars. `titles` are the titles of the picture, of the values, and of the
    /// groups.
    pub fn bars(titles: [&str; 3], groups: Vec<String>, series: Vec<Bars>) -> Self {
        Self::plot(titles, Plot::Bars { groups, series })
    }

    pub fn dots(titles: [&str; 3], dots: Vec<Dots>) -> Self {
        Self::plot(titles, Plot::Dots(dots))
    }

    fn plot(titles: [&str; 3], plot: Plot) -> Self {
        let [title, x, y] = titles.map(Into::into);
        Self::Plot { title, x, y, plot }
    }

    pub fn drawing(&self, provenance: Provenance) -> Drawing {
        match self {
            Self::Plot { title, x, y, plot } => {
                let [across, up] = ends(plot);
                let mut up = Axis::fitting(y, up.into_iter());
                if flattens(plot) {
                    up.spacing = Spacing::Logarithmic;
                }
                if y.contains(TIMES) {
                    up = up.showing(1.0);
                }
                Drawing::Chart(Chart {
                    title: title.clone(),
                    better: Better::Unstated,
                    provenance,
                    spread: Spread::Runs,
                    x: Axis::fitting(x, across.into_iter()),
                    y: up,
                    plot: plot.clone(),
                })
            }
            Self::Map { title, stores } => Drawing::Map(Map {
                title: title.clone(),
                provenance,
                shading: Shading::Fullness,
                slot_bytes: SLOT as u64,
                states: stores.iter().map(StoreMap::state).collect(),
            }),
        }
    }

    /// Returns the data as comma-separated values, with one line for each value or free run.
    pub fn as_csv(&self) -> String {
        let quoted = |text: &str| format!("\"{}\"", text.replace('"', "\"\""));
        let values = |value: &Value| {
            if value.runs.is_empty() { vec![value.value] } else { value.runs.clone() }
        };
        let mut text;
        match self {
            Self::Plot { x, y, plot, .. } => {
                text = format!("series,{},{}\n", quoted(x), quoted(y));
                let mut add = |name: &str, x: &str, y: f64| {
                    text += &format!("{},{x},{y}\n", quoted(name));
                };
                match plot {
                    Plot::Lines(lines) => {
                        for (line, (x, value)) in lines
                            .iter()
                            .flat_map(|line| line.points.iter().map(move |point| (line, point)))
                        {
                            values(value)
                                .into_iter()
                                .for_each(|y| add(&line.name, &x.to_string(), y));
                        }
                    }
                    Plot::Bars { groups, series } => {
                        for bars in series {
                            for (group, value) in groups.iter().zip(&bars.values) {
                                let runs = value.as_ref().map(values).unwrap_or_default();
                                runs.into_iter().for_each(|y| add(&bars.name, &quoted(group), y));
                            }
                        }
                    }
                    Plot::Dots(clouds) => {
                        for Dots { name, points } in clouds {
                            points.iter().for_each(|(x, y)| add(name, &x.to_string(), *y));
                        }
                    }
                }
            }
            Self::Map { stores, .. } => {
                text = "store,first free slot,slots\n".into();
                for StoreMap { name, free_runs, .. } in stores {
                    for (first, slots) in free_runs {
                        text += &format!("{},{first},{slots}\n", quoted(name));
                    }
                }
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn csv_quotes_names_and_has_each_seed() {
        let lines = vec![line("a \"b\"", [(1.0, vec![2.5, 3.5])])];
        let plot = Picture::lines(["t", "time, s", "rate"], lines);
        assert_eq!(
            plot.as_csv(),
            "series,\"time, s\",\"rate\"\n\"a \"\"b\"\"\",1,2.5\n\"a \"\"b\"\"\",1,3.5\n"
        );
        let map = Picture::Map {
            title: "t".into(),
            stores: vec![StoreMap { name: "s".into(), slots: 10, free_runs: vec![(3, 4)] }],
        };
        assert_eq!(map.as_csv(), "store,first free slot,slots\n\"s\",3,4\n");
    }

    #[test]
    fn a_point_of_the_paper_far_above_ours_makes_the_axis_logarithmic() {
        let of = |quoted: f64| {
            let paper = paper("a", [(2.0, Some(Value::exact(quoted)))]);
            Plot::Lines(vec![line("ours", [(1.0, vec![50.0]), (2.0, vec![160.0])]), paper])
        };
        assert!(flattens(&of(1000.0)) && !flattens(&of(300.0)));
    }

    #[test]
    fn a_point_of_the_paper_comes_from_its_quote() {
        let line = quoted("BUDDY", 70.0, "001-table2", "BUDDY");
        assert_eq!((line.look, line.points[0].1.value), (Look::Quoted, 133.0));
        assert!(quoted("BUDDY", 70.0, "001-fig8", "no such row").points.is_empty());
        let minutes = changed(Some(Value::between(2.0, 1.0, 4.0)), |rate| 8.0 / rate);
        assert_eq!(minutes, Some(Value::between(4.0, 2.0, 8.0)));
    }
}
