//! What a figure shows, as data; drawing it is the business of whoever has a page.

/// A named line of points.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// What it shows.
    pub name: String,
    /// Its points, `(x, y)`.
    pub points: Vec<(f64, f64)>,
}

/// How points are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Points joined by lines.
    Lines,
    /// Points alone.
    Dots,
    /// Columns.
    Bars,
}

/// The slots of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreMap {
    /// What it shows.
    pub name: String,
    /// How many slots there are.
    pub slots: u32,
    /// First slot and length of each free run, in order.
    pub free_runs: Vec<(u32, u32)>,
}

/// A picture.
#[derive(Clone, Debug, PartialEq)]
pub enum Picture {
    /// Values over values.
    Plot {
        /// What is to be seen.
        title: String,
        /// The axis across, with its unit.
        x: String,
        /// The axis upwards, with its unit.
        y: String,
        /// How points are shown.
        style: Style,
        /// What is shown.
        series: Vec<Series>,
    },
    /// Which slots of a store are free.
    Map {
        /// What is to be seen.
        title: String,
        /// The stores, side by side.
        stores: Vec<StoreMap>,
    },
}

impl Picture {
    /// Its data as comma-separated values, a line a point or free run.
    #[must_use]
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
    fn data_are_lines_with_quoted_names() {
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
