//! Compares the runs' value with the value in the paper (the quote), and gives the verdict by fixed
//! rules.
//!
//! The runs' value reproduces the paper's value if it lies within a tolerance (the band). Outside
//! the band, still the shape may agree: the order of the rows, or the direction of a change.

use super::quotes::quote;
use super::{FigureRow, Place, QuoteKind};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::RangeInclusive;

/// The result of a comparison with the value in the paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Verdict {
    /// The values of all runs lie within the band (the tolerance around the paper's value).
    #[serde(rename = "reproduced")]
    Reproduced,
    /// The runs' value lies outside the band (the tolerance around the paper's value). But the
    /// order of the rows or the direction of the change is as in the paper.
    #[serde(rename = "shape only")]
    ShapeOnly,
    /// Neither value nor shape (order or direction) agrees with the paper. The runs' value comes
    /// from a simulation.
    #[serde(rename = "differs")]
    Differs,
    /// Neither value nor shape (order or direction) agrees with the paper. The runs' value was
    /// measured on a present-day machine.
    #[serde(rename = "different today")]
    DifferentToday,
    /// The paper gives no value to compare with.
    #[serde(rename = "no quote")]
    NoQuote,
    /// A simulated store skipped some of its work, so its value cannot be compared with the other
    /// stores.
    #[serde(rename = "unequal work")]
    UnequalWork,
    /// A condition of the verdict (agreement with the paper) fails, see
    /// [`Condition`](super::Condition). The row names the reasons.
    #[serde(rename = "no verdict")]
    NoVerdict,
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
            Self::NoVerdict => "no verdict",
            Self::NotPossibleHere => "not possible here",
        })
    }
}

/// Returns the default band (tolerance): 25 % below to 25 % above the quoted value.
pub fn within(quoted: f64) -> RangeInclusive<f64> {
    quoted * 0.75..=quoted * 1.25
}

impl FigureRow {
    /// Compares the row with its entry in the table of quotes. Leaves the verdict (agreement with
    /// the paper) of a row without a quoted value unchanged.
    pub fn judged(self) -> Self {
        let Some(quote) = quote(&self.figure, &self.row) else { return self };
        let row = Self { quote: Some(quote.kind), ..self };
        let (Some(middle), Some(band)) = (quote.middle(), quote.band.clone()) else { return row };
        let ends = quote.value.as_ref().map(|range| (*range.start(), *range.end()));
        let row = Self { range: ends.filter(|(low, high)| low < high), ..row };
        let row = row.against(middle, band);
        // A quote of the kind `Words` gives only a direction in words. So a run's value cannot
        // reproduce its number.
        match (row.verdict, row.quote) {
            (Verdict::Reproduced, Some(QuoteKind::Words)) => row.only_shape(),
            _ => row,
        }
    }

    fn only_shape(self) -> Self {
        Self { verdict: Verdict::ShapeOnly, ..self }
    }

    /// Compares the row with the quoted value. The verdict is `reproduced` if the values of all
    /// runs lie in `band`.
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

    /// Sets the verdict (agreement with the paper) of a row that is not reproduced. `holds` tells
    /// whether the row's order or direction agrees with the paper.
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

    /// Sets the verdict of a ratio, such as a gain. The direction agrees with the paper if the
    /// values of all runs lie on the same side of 1 as the quoted ratio.
    pub fn gain(self) -> Self {
        let holds = match (self.quoted, self.low, self.high) {
            (Some(quoted), Some(low), _) if quoted > 1.0 => low > 1.0,
            (Some(quoted), _, Some(high)) if quoted < 1.0 => high < 1.0,
            _ => false,
        };
        self.shape(holds)
    }
}

/// Compares the order of the rows by the runs' values with their order by the quoted values. A row
/// outside its band (the tolerance around the paper's value) becomes `shape only` if it is in the
/// right order to all other rows. Otherwise its note names the rows to which its order is reversed.
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
            DifferentToday, Differs, NoQuote, NoVerdict, NotPossibleHere, Reproduced, ShapeOnly,
            UnequalWork,
        };
        for verdict in [
            Reproduced,
            ShapeOnly,
            Differs,
            DifferentToday,
            NoQuote,
            UnequalWork,
            NoVerdict,
            NotPossibleHere,
        ] {
            assert_eq!(serde_json::to_string(&verdict).expect("text"), format!("\"{verdict}\""));
        }
    }
}
