//! Rows that compare tables and figures of the papers behind foxy with foxy's runs. A row has the
//! value in the paper, the value of the runs, and a verdict by fixed rules.

pub mod conditions;
mod number_words;
mod picture;
pub mod quotes;
mod verdict;

pub use conditions::{Condition, NoVerdictReason};
pub use picture::charts;
pub use quotes::QuoteKind;
pub use verdict::{Verdict, judge_order, within};

use crate::Summary;
use crate::number::{readable, significant};
use crate::table::Table;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The way in which a value was obtained.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Place {
    /// Measured with real files and proxies on this machine.
    Measured,
    /// Simulated on the disk model in virtual time.
    Simulated,
    /// Quoted from a paper.
    Quoted,
    /// Computed from other values.
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

/// A row of a table, or a point of a figure, in a paper: the paper's value beside the runs' value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FigureRow {
    /// Number of the paper, and its table or figure, such as `001-table2`.
    pub figure: String,
    /// Name of the row or point.
    pub row: String,
    /// Value in the paper, if the paper gives a value.
    pub quoted: Option<f64>,
    /// How the quoted value was obtained from the text of the paper.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quote: Option<QuoteKind>,
    /// The quoted range, if the paper gives a range. `quoted` is its middle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range: Option<(f64, f64)>,
    /// Mean of the runs' values, if a run obtained any.
    pub ours: Option<f64>,
    /// Lowest value of all runs.
    pub low: Option<f64>,
    /// Highest value of all runs.
    pub high: Option<f64>,
    /// Value of each run, if there are several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub runs: Vec<f64>,
    /// Unit of all values.
    pub unit: String,
    /// `ours` divided by `quoted`.
    pub ratio: Option<f64>,
    /// Result of the comparison of the runs' values with the quoted value.
    pub verdict: Verdict,
    /// The reasons why the row has no verdict (agreement with the paper).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<NoVerdictReason>,
    /// The conditions that the verdict (agreement with the paper) needs, such as a filled cache.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// The way in which the runs' value was obtained.
    pub place: Place,
    /// Number of random seeds, or of runs on a real machine.
    pub seeds: u32,
    /// Scale of trace, memory and disk; 1 is the scale of the paper.
    pub scale: f64,
    /// Name of the trace, or empty for the synthetic trace.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub trace: String,
    /// A remark for readers.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
}

impl FigureRow {
    /// Makes a row from the simulated values of several runs, without a quoted value. Drops values
    /// that are not finite.
    pub fn of(figure: &str, row: &str, unit: &str, values: &[f64]) -> Self {
        let values: Vec<f64> = values.iter().copied().filter(|value| value.is_finite()).collect();
        let mean = Summary::of(&values).map(|summary| summary.mean);
        Self {
            figure: figure.into(),
            row: row.into(),
            quoted: None,
            quote: None,
            range: None,
            ours: mean,
            low: values.iter().copied().reduce(f64::min),
            high: values.iter().copied().reduce(f64::max),
            runs: if values.len() > 1 { values.clone() } else { Vec::new() },
            unit: unit.into(),
            ratio: None,
            verdict: Verdict::NoQuote,
            reasons: Vec::new(),
            conditions: Vec::new(),
            place: Place::Simulated,
            seeds: u32::try_from(values.len()).unwrap_or(u32::MAX),
            scale: 1.0,
            trace: String::new(),
            note: String::new(),
        }
    }

    /// Makes a row without values, because this machine cannot run the row's measurement. `why` is
    /// the reason.
    pub fn impossible(figure: &str, row: &str, unit: &str, why: &str) -> Self {
        let row = Self::of(figure, row, unit, &[]).judged();
        Self { verdict: Verdict::NotPossibleHere, place: Place::Measured, note: why.into(), ..row }
    }

    /// Sets the scale of trace, memory and disk.
    pub fn at_scale(self, scale: f64) -> Self {
        Self { scale, ..self }
    }

    /// Sets the way in which the runs' value was obtained, such as measured or simulated.
    pub fn from_place(self, place: Place) -> Self {
        Self { place, ..self }
    }

    /// Sets the remark.
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
            self.quoted_text(),
            self.ours.map_or_else(|| "–".into(), readable),
            spread,
            self.unit.clone(),
            self.ratio.map_or_else(String::new, ratio_text),
            self.verdict_text(),
            self.place.to_string(),
            scale_text(self.scale),
            self.seeds.to_string(),
            self.remarks(),
        ]
    }

    /// Returns the quoted value or range as text. In brackets it says how the value was obtained,
    /// unless the paper states the number.
    fn quoted_text(&self) -> String {
        let value = match (self.range, self.quoted) {
            (Some((low, high)), _) => format!("{}–{}", readable(low), readable(high)),
            (None, Some(quoted)) => readable(quoted),
            (None, None) => String::new(),
        };
        match self.quote {
            None | Some(QuoteKind::Stated) => value,
            Some(kind) => format!("{value} ({kind})").trim_start().into(),
        }
    }

    fn remarks(&self) -> String {
        let trace = (!self.trace.is_empty()).then(|| format!("trace {}", self.trace));
        let note = (!self.note.is_empty()).then(|| self.note.clone());
        let conditions = self.conditions.iter().map(ToString::to_string);
        trace.into_iter().chain(note).chain(conditions).collect::<Vec<_>>().join("; ")
    }
}

/// Formats a ratio with two decimals, or a small ratio with two significant digits.
fn ratio_text(ratio: f64) -> String {
    if ratio < 0.1 { significant(ratio, 2) } else { format!("{ratio:.2}") }
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

/// Returns the rows as a table.
pub fn figure_table(rows: &[FigureRow]) -> Table {
    let mut table = Table::new(&HEADS);
    for row in rows {
        table.row(&row.cells());
    }
    table
}

/// Returns the rows as a plain text table.
pub fn as_text(rows: &[FigureRow]) -> String {
    figure_table(rows).render()
}

/// Returns the rows as a Markdown table.
pub fn as_markdown(rows: &[FigureRow]) -> String {
    figure_table(rows).markdown()
}

/// Returns the rows as CSV. Numbers keep their full precision.
pub fn as_csv(rows: &[FigureRow]) -> String {
    let quoted = |text: &str| format!("\"{}\"", text.replace('"', "\"\""));
    let number = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
    let mut text = String::from(
        "figure,row,quoted,ours,low,high,unit,ratio,verdict,place,scale,seeds,note,quote\n",
    );
    for row in rows {
        let numbers = [row.quoted, row.ours, row.low, row.high].map(number).join(",");
        let FigureRow { place, scale, seeds, .. } = row;
        let (name, unit, note) = (quoted(&row.row), quoted(&row.unit), quoted(&row.remarks()));
        let verdict = quoted(&row.verdict_text());
        let kind = row.quote.map_or_else(String::new, |kind| kind.to_string());
        let ratio = number(row.ratio);
        text += &format!(
            "{},{name},{numbers},{unit},{ratio},{verdict},{place},{scale},{seeds},{note},{kind}\n",
            row.figure
        );
    }
    text
}

/// Formats a scale as text: `full` for 1, `1/10` for 0.1, `×4` for 4.
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

/// Formats the scale of a run. The text for a run with `--quick` never says `full`.
pub(crate) fn extent_text(scale: f64, quick: bool) -> String {
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
                "001-fig2,\"create, \"\"empty\"\"\",20,13,12.5,13.5,\"ms\",0.65,\"differs\",simulated,1,2,\"\","
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
    fn a_small_ratio_is_not_zero() {
        let texts = [0.000_438, 0.994, 1.0, 12.345].map(ratio_text);
        assert_eq!(texts, ["0.00044", "0.99", "1.00", "12.35"]);
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
