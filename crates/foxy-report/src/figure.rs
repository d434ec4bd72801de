//! Rows of the seeds' tables and figures: what was quoted, what ours is, and what follows from that
//! (R5).

use crate::Summary;
use crate::number::readable;
use crate::table::Table;
pub use crate::verdict::{Verdict, judge_order, within};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Where a value comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Place {
    /// Real files, real proxies, this machine.
    Measured,
    /// The disk model, virtual time.
    Simulated,
    /// A seed's own figure.
    Quoted,
    /// Arithmetic on other values.
    Derived,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Measured => "measured",
            Self::Simulated => "simulated",
            Self::Quoted => "quoted",
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
    /// A row from the values of several seeds, without a quoted value yet. Values that are not
    /// finite are left out.
    pub fn of(figure: &str, row: &str, unit: &str, values: &[f64]) -> Self {
        let values: Vec<f64> = values.iter().copied().filter(|value| value.is_finite()).collect();
        let mean = Summary::of(&values).map(|summary| summary.mean);
        Self {
            figure: figure.into(),
            row: row.into(),
            quoted: None,
            ours: mean,
            low: values.iter().copied().reduce(f64::min),
            high: values.iter().copied().reduce(f64::max),
            unit: unit.into(),
            ratio: None,
            verdict: Verdict::NoQuote,
            place: Place::Simulated,
            seeds: u32::try_from(values.len()).unwrap_or(u32::MAX),
            scale: 1.0,
            note: String::new(),
        }
    }

    /// A row that could not be run, and why.
    pub fn impossible(figure: &str, row: &str, unit: &str, quoted: Option<f64>, why: &str) -> Self {
        let row = Self::of(figure, row, unit, &[]);
        Self {
            quoted,
            verdict: Verdict::NotPossibleHere,
            place: Place::Measured,
            note: why.into(),
            ..row
        }
    }

    /// The same row, at another scale.
    pub fn at_scale(self, scale: f64) -> Self {
        Self { scale, ..self }
    }

    /// The same row, from another place.
    pub fn from_place(self, place: Place) -> Self {
        Self { place, ..self }
    }

    /// The same row, with a remark.
    pub fn with_note(self, note: impl Into<String>) -> Self {
        Self { note: note.into(), ..self }
    }

    fn cells(&self) -> Vec<String> {
        let spread = match (self.low, self.high) {
            (Some(low), Some(high)) if self.seeds > 1 => {
                format!("{}–{}", readable(low), readable(high))
            }
            _ => String::new(),
        };
        vec![
            self.figure.clone(),
            self.row.clone(),
            self.quoted.map_or_else(String::new, readable),
            self.ours.map_or_else(|| "–".into(), readable),
            spread,
            self.unit.clone(),
            self.ratio.map_or_else(String::new, |ratio| format!("{ratio:.2}")),
            self.verdict.to_string(),
            self.place.to_string(),
            scale_text(self.scale),
            self.seeds.to_string(),
            self.note.clone(),
        ]
    }
}

const HEADS: [&str; 12] = [
    "figure",
    "row",
    "quoted",
    "ours",
    "seeds' range",
    "unit",
    "ratio",
    "verdict",
    "place",
    "scale",
    "seeds",
    "note",
];

/// The rows as a table: *quoted · ours · ratio · verdict*, with place, scale and seeds (R5).
pub fn figure_table(rows: &[FigureRow]) -> Table {
    let mut table = Table::new(&HEADS);
    for row in rows {
        table.row(&row.cells());
    }
    table
}

/// The rows as a plain text table.
pub fn as_text(rows: &[FigureRow]) -> String {
    figure_table(rows).render()
}

/// The rows as a Markdown table.
pub fn as_markdown(rows: &[FigureRow]) -> String {
    figure_table(rows).markdown()
}

/// The rows as CSV, with full precision.
pub fn as_csv(rows: &[FigureRow]) -> String {
    let quoted = |text: &str| format!("\"{}\"", text.replace('"', "\"\""));
    let number = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
    let mut text =
        String::from("figure,row,quoted,ours,low,high,unit,ratio,verdict,place,scale,seeds,note\n");
    for row in rows {
        let numbers = [row.quoted, row.ours, row.low, row.high].map(number).join(",");
        let FigureRow { verdict, place, scale, seeds, .. } = row;
        let (name, unit, note) = (quoted(&row.row), quoted(&row.unit), quoted(&row.note));
        let ratio = number(row.ratio);
        text += &format!(
            "{},{name},{numbers},{unit},{ratio},{verdict},{place},{scale},{seeds},{note}\n",
            row.figure
        );
    }
    text
}

/// A scale as people say it: `full`, `1/10`, `×4`.
pub fn scale_text(scale: f64) -> String {
    let parts = 1.0 / scale;
    if scale == 1.0 {
        "full".into()
    } else if scale > 1.0 {
        format!("×{}", readable(scale))
    } else if parts.is_finite() && (parts - parts.round()).abs() < 1e-6 * parts {
        format!("1/{}", readable(parts.round()))
    } else {
        readable(scale)
    }
}

/// The scale of a run as people say it. A quick run does less than the full work, so its scale is
/// never `full`.
pub fn extent_text(scale: f64, quick: bool) -> String {
    match (scale == 1.0, quick) {
        (_, false) => scale_text(scale),
        (true, true) => "quick".into(),
        (false, true) => format!("{}, quick", scale_text(scale)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_a_line_of_a_table_and_of_json() {
        let row = FigureRow::of("001-table2", "SQUID", "URL-get/s", &[26.0, 28.0])
            .against(27.0, 20.0..=40.0)
            .with_note("a|b");
        assert_eq!(
            as_markdown(std::slice::from_ref(&row)).lines().last(),
            Some(
                "| 001-table2 | SQUID | 27 | 27 | 26–28 | URL-get/s | 1.00 | reproduced | simulated | full | 2 | a\\|b |"
            )
        );
        let json = serde_json::to_value(&row).expect("plain values");
        assert_eq!(
            (json["verdict"].as_str(), json["ratio"].as_f64()),
            (Some("reproduced"), Some(1.0))
        );
        assert_eq!(serde_json::from_value::<FigureRow>(json).expect("read back"), row);
    }

    #[test]
    fn a_row_is_a_line_of_comma_separated_values() {
        let row = FigureRow::of("001-fig2", "create, \"empty\"", "ms", &[12.5, 13.5])
            .against(20.0, 15.0..=25.0);
        assert_eq!(
            as_csv(&[row]).lines().last(),
            Some(
                "001-fig2,\"create, \"\"empty\"\"\",20,13,12.5,13.5,\"ms\",0.65,differs,simulated,1,2,\"\""
            )
        );
    }

    #[test]
    fn a_value_that_is_not_finite_counts_as_none() {
        let row = FigureRow::of("001-fig2", "create", "ms", &[f64::NAN, 20.0]);
        assert_eq!((row.ours, row.seeds), (Some(20.0), 1));
        assert_eq!(FigureRow::of("001-fig2", "create", "ms", &[f64::INFINITY]).ours, None);
    }

    #[test]
    fn scripts_rely_on_the_record_s_keys_and_their_order() {
        let row = FigureRow::of("001-table2", "BUDDY", "URL-get/s", &[133.0]);
        let record = crate::Record::FigureRow(row.against(133.0, 120.0..=146.0));
        let text = serde_json::to_string(&record).expect("plain values");
        assert!(
            text.starts_with(
                r#"{"kind":"figure-row","figure":"001-table2","row":"BUDDY","quoted":133.0,"#
            ),
            "{text}"
        );
        assert_eq!(serde_json::from_str::<crate::Record>(&text).expect("a record"), record);
    }

    #[test]
    fn the_places_in_records_are_those_in_tables() {
        for place in [Place::Measured, Place::Simulated, Place::Quoted, Place::Derived] {
            assert_eq!(serde_json::to_string(&place).expect("text"), format!("\"{place}\""));
        }
    }

    #[test]
    fn scales_read_as_people_say_them() {
        let check = |scale: f64, expected: &str| assert_eq!(scale_text(scale), expected);
        check(1.0, "full");
        check(0.1, "1/10");
        check(1.0 / 3.0, "1/3");
        check(4.0, "×4");
        check(0.37, "0.37");
    }
}
