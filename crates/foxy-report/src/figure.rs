//! Rows that repeat the tables and figures of the papers behind foxy. A row has the value in the
//! paper, our value, and a verdict by fixed rules.

use crate::Summary;
use crate::number::readable;
use crate::table::Table;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::RangeInclusive;

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

/// A row of a repeated table, or a point of a repeated figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FigureRow {
    /// Number of the paper, and its table or figure, such as `001-table2`.
    pub figure: String,
    /// Name of the row or point.
    pub row: String,
    /// Value in the paper, if it gives one.
    pub quoted: Option<f64>,
    /// Mean of our values, if a run obtained any.
    pub ours: Option<f64>,
    /// Lowest value of all runs.
    pub low: Option<f64>,
    /// Highest value of all runs.
    pub high: Option<f64>,
    /// Unit of all values.
    pub unit: String,
    /// `ours` divided by `quoted`.
    pub ratio: Option<f64>,
    /// Result of the comparison.
    pub verdict: Verdict,
    /// The way in which our value was obtained.
    pub place: Place,
    /// Number of random seeds.
    pub seeds: u32,
    /// Scale of trace, memory and disk; 1 is the scale of the paper.
    pub scale: f64,
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

    /// Makes a row that this machine cannot run. `why` is the reason.
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

    /// Sets the scale of trace, memory and disk.
    pub fn at_scale(self, scale: f64) -> Self {
        Self { scale, ..self }
    }

    /// Sets the way in which our value was obtained.
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

/// Formats a scale: `full`, `1/10`, `×4`.
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

/// Formats the scale of a run. A quick run is never `full`.
pub(crate) fn extent_text(scale: f64, quick: bool) -> String {
    match (scale == 1.0, quick) {
        (_, false) => scale_text(scale),
        (true, true) => "quick".into(),
        (false, true) => format!("{}, quick", scale_text(scale)),
    }
}

/// The result of a comparison with the value in the paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Verdict {
    /// The values of all runs are within the tolerance.
    #[serde(rename = "reproduced")]
    Reproduced,
    /// The value differs from the paper, but order and direction agree.
    #[serde(rename = "shape only")]
    ShapeOnly,
    /// Neither value nor order agrees with the paper. The value comes from a simulation.
    #[serde(rename = "differs")]
    Differs,
    /// Neither value nor order agrees with the paper. The value comes from a present-day machine.
    #[serde(rename = "different today")]
    DifferentToday,
    /// The paper gives no value.
    #[serde(rename = "no quote")]
    NoQuote,
    /// A store skipped some of its work, so the values cannot be compared.
    #[serde(rename = "unequal work")]
    UnequalWork,
    /// This machine cannot run the experiment.
    #[serde(rename = "not possible here")]
    NotPossibleHere,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Reproduced => "reproduced",
            Self::ShapeOnly => "shape only",
            Self::Differs => "differs",
            Self::DifferentToday => "different today",
            Self::NoQuote => "no quote",
            Self::UnequalWork => "unequal work",
            Self::NotPossibleHere => "not possible here",
        })
    }
}

/// Returns the default tolerance: 25 % below to 25 % above the quoted value.
pub fn within(quoted: f64) -> RangeInclusive<f64> {
    quoted * 0.75..=quoted * 1.25
}

impl FigureRow {
    /// Compares the row with the quoted value. The row is reproduced if the values of all runs lie
    /// in `band`.
    pub fn against(mut self, quoted: f64, band: RangeInclusive<f64>) -> Self {
        self.quoted = Some(quoted);
        self.ratio = self.ours.filter(|_| quoted != 0.0).map(|ours| ours / quoted);
        self.verdict = match (self.low, self.high) {
            (Some(low), Some(high)) if band.contains(&low) && band.contains(&high) => {
                Verdict::Reproduced
            }
            (Some(_), Some(_)) => self.difference(),
            _ => Verdict::NotPossibleHere,
        };
        self
    }

    const fn difference(&self) -> Verdict {
        match self.place {
            Place::Measured => Verdict::DifferentToday,
            Place::Simulated | Place::Quoted | Place::Derived => Verdict::Differs,
        }
    }

    /// Adjusts the verdict by whether the direction agrees with the paper. A reproduced row stays
    /// reproduced.
    pub fn shape(mut self, holds: bool) -> Self {
        self.verdict = match self.verdict {
            Verdict::Differs | Verdict::DifferentToday | Verdict::NoQuote
                if self.ours.is_some() =>
            {
                if holds {
                    Verdict::ShapeOnly
                } else {
                    self.difference()
                }
            }
            other => other,
        };
        self
    }

    /// Calls [`FigureRow::shape`] for a ratio. The direction agrees if all values lie on the quoted
    /// value's side of 1.
    pub fn gain(self) -> Self {
        let holds = match (self.quoted, self.low, self.high) {
            (Some(quoted), Some(low), _) if quoted > 1.0 => low > 1.0,
            (Some(quoted), _, Some(high)) if quoted < 1.0 => high < 1.0,
            _ => false,
        };
        self.shape(holds)
    }
}

/// Compares the order of the rows with their order in the paper. A row outside its band becomes
/// `shape only` if its order to all other rows agrees. If the order to other rows is reversed, its
/// note names these rows.
pub fn judge_order(rows: &mut [FigureRow]) {
    let values: Vec<_> = rows.iter().map(|row| (row.row.clone(), row.quoted, row.ours)).collect();
    for row in rows {
        let (Some(quoted), Some(ours)) = (row.quoted, row.ours) else { continue };
        let reversed: Vec<&str> = values
            .iter()
            .filter(|(_, other_quoted, other)| match (other_quoted, other) {
                (Some(other_quoted), Some(other)) => {
                    quoted.total_cmp(other_quoted).is_ne()
                        && quoted.total_cmp(other_quoted) != ours.total_cmp(other)
                }
                _ => false,
            })
            .map(|(name, ..)| name.as_str())
            .collect();
        *row = row.clone().shape(reversed.is_empty());
        if !reversed.is_empty() {
            let with = format!("order not as quoted: {}", reversed.join(", "));
            let note = if row.note.is_empty() { with } else { format!("{}; {with}", row.note) };
            row.note = note;
        }
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

    fn row(values: &[f64]) -> FigureRow {
        FigureRow::of("001-table2", "BUDDY", "URL-get/s", values)
    }

    #[test]
    fn the_values_of_all_seeds_must_lie_in_the_band() {
        let check = |values: &[f64], expected| {
            assert_eq!(row(values).against(133.0, 94.5..=189.0).verdict, expected, "{values:?}");
        };
        check(&[120.0, 140.0], Verdict::Reproduced);
        check(&[94.0, 140.0], Verdict::Differs);
        check(&[20.0], Verdict::Differs);
        check(&[], Verdict::NotPossibleHere);
        let measured = row(&[20.0]).from_place(Place::Measured).against(133.0, 94.5..=189.0);
        assert_eq!(measured.verdict, Verdict::DifferentToday);
    }

    #[test]
    fn what_is_quoted_nowhere_has_no_verdict() {
        assert_eq!(row(&[20.0]).verdict, Verdict::NoQuote);
        assert_eq!(row(&[20.0]).shape(true).verdict, Verdict::ShapeOnly);
        assert_eq!(row(&[20.0]).shape(false).verdict, Verdict::Differs);
        assert_eq!(row(&[]).shape(true).verdict, Verdict::NoQuote);
    }

    #[test]
    fn a_gain_keeps_its_shape_on_the_quoted_side_of_one() {
        let check = |values: &[f64], quoted: f64, expected| {
            assert_eq!(
                row(values).against(quoted, quoted..=quoted).gain().verdict,
                expected,
                "{values:?}"
            );
        };
        check(&[1.3, 1.4], 2.0, Verdict::ShapeOnly);
        check(&[0.9, 1.4], 2.0, Verdict::Differs);
        check(&[0.9], 0.5, Verdict::ShapeOnly);
        check(&[1.6], 1.0, Verdict::Differs);
        check(&[2.0], 2.0, Verdict::Reproduced);
    }

    #[test]
    fn rows_in_reverse_order_do_not_have_the_quoted_shape() {
        let quoted = |name: &str, value: f64, quoted: f64| {
            FigureRow::of("001-table2", name, "URL-get/s", &[value])
                .against(quoted, quoted * 0.75..=quoted * 1.25)
        };
        let mut rows = [
            quoted("SINGLE", 32.0, 14.5),
            quoted("SQUID", 23.4, 27.0),
            quoted("MULTIPLE", 28.3, 20.0),
            quoted("BUDDY", 500.0, 133.0),
            row(&[1.0]),
        ];
        judge_order(&mut rows);
        let verdicts: Vec<Verdict> = rows.iter().map(|row| row.verdict).collect();
        use Verdict::{Differs, NoQuote, Reproduced, ShapeOnly};
        assert_eq!(verdicts, [Differs, Reproduced, Differs, ShapeOnly, NoQuote]);
        assert_eq!(rows[1].note, "order not as quoted: SINGLE, MULTIPLE");
        assert_eq!(rows[3].note, "");
    }

    #[test]
    fn the_words_in_records_are_those_in_tables() {
        use Verdict::{
            DifferentToday, Differs, NoQuote, NotPossibleHere, Reproduced, ShapeOnly, UnequalWork,
        };
        for verdict in
            [Reproduced, ShapeOnly, Differs, DifferentToday, NoQuote, UnequalWork, NotPossibleHere]
        {
            assert_eq!(serde_json::to_string(&verdict).expect("text"), format!("\"{verdict}\""));
        }
    }
}
