//! The pictures of a figure: their data, and the chart or map that shows the data.

use foxy_report::chart::map::{Content, Map, MapState, Shading};
use foxy_report::chart::{Axis, Bars, Bin, Bins, Chart, Dots, Line, Look, Plot, Provenance, Value};
use foxy_store::layout::SLOT;

#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    pub name: String,
    /// The points as pairs `(x, y)`.
    pub points: Vec<(f64, f64)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    Lines,
    Dots,
    /// One bar for each series, as high as the y of its first point.
    Bars,
    /// Columns side by side. The x of a point is the left edge of its column, and a column is 1
    /// wide.
    Histogram,
}

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

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreMap {
    pub name: String,
    pub slots: u32,
    /// The first slot and the length of each run of free slots, in order.
    pub free_runs: Vec<(u32, u32)>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Picture {
    /// A chart with axes. The title of an axis ends with its unit.
    Plot {
        title: String,
        x: String,
        y: String,
        style: Style,
        series: Vec<Series>,
    },
    Map {
        title: String,
        stores: Vec<StoreMap>,
    },
}

fn axis(text: &str) -> Axis {
    let (title, unit) = text.rsplit_once(", ").unwrap_or((text, ""));
    Axis::linear(title, unit)
}

fn plot(style: Style, unit: &str, series: &[Series]) -> Plot {
    match style {
        Style::Lines => Plot::Lines(series.iter().map(Series::line).collect()),
        Style::Dots => {
            let dots =
                |series: &Series| Dots { name: series.name.clone(), points: series.points.clone() };
            Plot::Dots(series.iter().map(dots).collect())
        }
        Style::Bars => Plot::Bars {
            groups: series.iter().map(|series| series.name.clone()).collect(),
            series: vec![Bars {
                name: unit.into(),
                values: series
                    .iter()
                    .map(|series| series.points.first().map(|p| Value::exact(p.1)))
                    .collect(),
            }],
        },
        Style::Histogram => {
            let bin = |&(from, count): &(f64, f64)| Bin { from, to: from + 1.0, count };
            let bins = |series: &Series| Bins {
                name: series.name.clone(),
                bins: series.points.iter().map(bin).collect(),
            };
            Plot::Histogram(series.iter().map(bins).collect())
        }
    }
}

impl Series {
    pub fn new(name: &str, points: Vec<(f64, f64)>) -> Self {
        Self { name: name.into(), points }
    }

    fn line(&self) -> Line {
        let points = self.points.iter().map(|&(x, y)| (x, Value::exact(y))).collect();
        Line { name: self.name.clone(), look: Look::Solid, points }
    }
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
    /// Creates a plot with one named bar for each value. A bar without a value stays empty.
    pub fn bars(titles: [&str; 3], bars: Vec<(String, Option<f64>)>) -> Self {
        let series = bars.into_iter().zip(0..).map(|((name, value), position)| Series {
            name,
            points: value.map(|value| (f64::from(position), value)).into_iter().collect(),
        });
        Self::plot(Style::Bars, titles, series.collect())
    }

    /// Creates a plot. `titles` are the titles of the picture, of the x axis and of the y axis.
    pub fn plot(style: Style, titles: [&str; 3], series: Vec<Series>) -> Self {
        let [title, x, y] = titles.map(Into::into);
        Self::Plot { title, x, y, style, series }
    }

    pub fn drawing(&self, provenance: Provenance) -> Drawing {
        match self {
            Self::Plot { title, x, y, style, series } => {
                let (across, upwards) = if *style == Style::Bars { (y, x) } else { (x, y) };
                Drawing::Chart(Chart {
                    title: title.clone(),
                    provenance,
                    x: axis(across),
                    y: axis(upwards).showing(0.0),
                    plot: plot(*style, y, series),
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

    /// Returns the data as comma-separated values, with one line for each point or free run.
    pub fn as_csv(&self) -> String {
        let quoted = |text: &str| format!("\"{}\"", text.replace('"', "\"\""));
        let mut text;
        match self {
            Self::Plot { x, y, series, .. } => {
                text = format!("series,{},{}\n", quoted(x), quoted(y));
                for Series { name, points } in series {
                    for (x, y) in points {
                        text += &format!("{},{x},{y}\n", quoted(name));
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
    fn csv_quotes_names() {
        let series = vec![Series { name: "a \"b\"".into(), points: vec![(1.0, 2.5)] }];
        let plot = Picture::Plot {
            title: "t".into(),
            x: "time, s".into(),
            y: "rate".into(),
            style: Style::Lines,
            series,
        };
        assert_eq!(plot.as_csv(), "series,\"time, s\",\"rate\"\n\"a \"\"b\"\"\",1,2.5\n");
        let map = Picture::Map {
            title: "t".into(),
            stores: vec![StoreMap { name: "s".into(), slots: 10, free_runs: vec![(3, 4)] }],
        };
        assert_eq!(map.as_csv(), "store,first free slot,slots\n\"s\",3,4\n");
    }
}
