//! Rows of the seeds' tables and figures: what was quoted, what ours is, and what follows from that (R5).

use crate::table::Table;
use serde::{Deserialize, Serialize};
use std::fmt;

/// What a comparison comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Verdict {
    /// Value or ratio is as quoted, within the tolerance.
    #[serde(rename = "reproduced")]
    Reproduced,
    /// Order and direction are as quoted, the value is not.
    #[serde(rename = "shape only")]
    ShapeOnly,
    /// It does not come out as quoted.
    #[serde(rename = "different today")]
    DifferentToday,
    /// It cannot be run where this was run.
    #[serde(rename = "not possible here")]
    NotPossibleHere,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Reproduced => "reproduced",
            Self::ShapeOnly => "shape only",
            Self::DifferentToday => "different today",
            Self::NotPossibleHere => "not possible here",
        })
    }
}

/// Where a value comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Place {
    /// Real files, real proxies, this machine.
    Measured,
    /// The disk model, virtual time.
    Simulated,
    /// Arithmetic on other values.
    Derived,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Measured => "measured",
            Self::Simulated => "simulated",
            Self::Derived => "derived",
        })
    }
}

/// One row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FigureRow {
    /// Which table or figure: seed and number, as `001-table2`.
    pub figure: String,
    /// Which row or point of it.
    pub row: String,
    /// The seed's value; none where it gives none.
    pub quoted: Option<f64>,
    /// Ours; none where it could not be had.
    pub ours: Option<f64>,
    /// Lowest of all seeds.
    pub low: Option<f64>,
    /// Highest of all seeds.
    pub high: Option<f64>,
    /// Of both.
    pub unit: String,
    /// Ours over quoted.
    pub ratio: Option<f64>,
    /// What that comes to.
    pub verdict: Verdict,
    /// Where ours comes from.
    pub place: Place,
    /// Seeds it was run with.
    pub seeds: u32,
    /// By what factor trace, memory and disk were scaled; 1 is the paper's.
    pub scale: f64,
    /// What is to be said with it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
}

impl FigureRow {
    /// A row from the values of several seeds, without a quoted value yet.
    #[must_use]
    pub fn of(figure: &str, row: &str, unit: &str, values: &[f64]) -> Self {
        let mean = (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64);
        Self {
            figure: figure.into(),
            row: row.into(),
            quoted: None,
            ours: mean,
            low: values.iter().copied().reduce(f64::min),
            high: values.iter().copied().reduce(f64::max),
            unit: unit.into(),
            ratio: None,
            verdict: Verdict::ShapeOnly,
            place: Place::Simulated,
            seeds: u32::try_from(values.len()).unwrap_or(u32::MAX),
            scale: 1.0,
            note: String::new(),
        }
    }

    /// Sets what the seed says, and the band within which our value counts as reproduced; outside, it is `otherwise`.
    #[must_use]
    pub fn against(mut self, quoted: f64, band: std::ops::RangeInclusive<f64>, otherwise: Verdict) -> Self {
        self.quoted = Some(quoted);
        self.ratio = self.ours.filter(|_| quoted != 0.0).map(|ours| ours / quoted);
        self.verdict = match self.ours {
            Some(ours) if band.contains(&ours) => Verdict::Reproduced,
            Some(_) => otherwise,
            None => Verdict::NotPossibleHere,
        };
        self
    }

    /// A row that could not be run, and why.
    #[must_use]
    pub fn impossible(figure: &str, row: &str, unit: &str, quoted: Option<f64>, why: &str) -> Self {
        let row = Self::of(figure, row, unit, &[]);
        Self { quoted, verdict: Verdict::NotPossibleHere, place: Place::Measured, note: why.into(), ..row }
    }

    /// The same row, at another scale.
    #[must_use]
    pub fn at_scale(self, scale: f64) -> Self {
        Self { scale, ..self }
    }

    /// The same row, from another place.
    #[must_use]
    pub fn from_place(self, place: Place) -> Self {
        Self { place, ..self }
    }

    /// The same row, with a remark.
    #[must_use]
    pub fn with_note(self, note: impl Into<String>) -> Self {
        Self { note: note.into(), ..self }
    }

    fn cells(&self) -> Vec<String> {
        let spread = match (self.low, self.high) {
            (Some(low), Some(high)) if self.seeds > 1 => format!("{}–{}", number(low), number(high)),
            _ => String::new(),
        };
        vec![
            self.figure.clone(),
            self.row.clone(),
            self.quoted.map_or_else(String::new, number),
            self.ours.map_or_else(|| "–".into(), number),
            spread,
            self.unit.clone(),
            self.ratio.map_or_else(String::new, |ratio| format!("{ratio:.2}")),
            self.verdict.to_string(),
            self.place.to_string(),
            self.note.clone(),
        ]
    }
}

const HEADS: [&str; 10] =
    ["figure", "row", "quoted", "ours", "seeds' range", "unit", "ratio", "verdict", "place", "note"];

/// The rows as a plain text table.
#[must_use]
pub fn as_text(rows: &[FigureRow]) -> String {
    let mut table = Table::new(&HEADS);
    for row in rows {
        table.row(&row.cells());
    }
    table.render()
}

/// The rows as a Markdown table.
#[must_use]
pub fn as_markdown(rows: &[FigureRow]) -> String {
    let line = |cells: &[String]| {
        let cells: Vec<_> = cells.iter().map(|cell| cell.replace('|', "\\|")).collect();
        format!("| {} |\n", cells.join(" | "))
    };
    let mut text = line(&HEADS.map(String::from)) + &line(&HEADS.map(|_| "---".into()));
    for row in rows {
        text += &line(&row.cells());
    }
    text
}

/// A number with as many digits as say something.
#[must_use]
pub fn number(value: f64) -> String {
    let digits = match value.abs() {
        size if size >= 100.0 || size == 0.0 => 0,
        size if size >= 10.0 => 1,
        size if size >= 0.1 => 2,
        _ => 4,
    };
    format!("{value:.digits$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_band_decides_what_counts_as_reproduced() {
        let check = |values: &[f64], expected| {
            let row = FigureRow::of("001-table2", "BUDDY", "URL-get/s", values);
            assert_eq!(row.against(133.0, 94.5..=189.0, Verdict::DifferentToday).verdict, expected);
        };
        check(&[120.0, 140.0], Verdict::Reproduced);
        check(&[20.0], Verdict::DifferentToday);
        check(&[], Verdict::NotPossibleHere);
    }

    #[test]
    fn a_row_is_a_line_of_a_table_and_of_json() {
        let row = FigureRow::of("001-table2", "SQUID", "URL-get/s", &[26.0, 28.0])
            .against(27.0, 20.0..=40.0, Verdict::ShapeOnly)
            .with_note("a|b");
        assert_eq!(
            as_markdown(std::slice::from_ref(&row)).lines().last(),
            Some(
                "| 001-table2 | SQUID | 27.0 | 27.0 | 26.0–28.0 | URL-get/s | 1.00 | reproduced | simulated | a\\|b |"
            )
        );
        let json = serde_json::to_value(&row).expect("plain values");
        assert_eq!((json["verdict"].as_str(), json["ratio"].as_f64()), (Some("reproduced"), Some(1.0)));
        assert_eq!(serde_json::from_value::<FigureRow>(json).expect("read back"), row);
    }

    #[test]
    fn numbers_keep_about_three_digits() {
        let check = |value, expected: &str| assert_eq!(number(value), expected);
        check(1234.5, "1234");
        check(27.04, "27.0");
        check(0.531, "0.53");
        check(0.0312, "0.0312");
        check(0.0, "0");
    }
}
