//! The conditions under which a row of a figure gets a verdict. A verdict is a word, such as
//! *reproduced*, that says how well the run's value agrees with the paper's value. A row whose run
//! does not meet the conditions has no verdict, and its table shows the reasons instead.
//!
//! "The cache is filled once" means that a run has written as many bytes as the cache can hold.

use super::quotes::quote;
use super::{FigureRow, Verdict};
use crate::number::readable;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Number of times that a run must fill the cache before the cache is in a steady state. Before
/// that, the cache stores objects but removes hardly any.
pub const STEADY_FILLS: f64 = 1.5;
/// Number of seeds, or of runs on a real machine, that a verdict (agreement with the paper) needs.
pub const SEEDS: u32 = 3;

/// A condition of a row's verdict (agreement with the paper). Contains the run's values that show
/// whether the run meets the condition.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "condition", rename_all = "kebab-case")]
pub enum Condition {
    /// The run filled the cache at least 1.5 times.
    Fills {
        /// Bytes written to the cache, divided by the size of the cache. If there are several runs,
        /// this is the smallest quotient.
        reached: f64,
    },
    /// At the greatest load that the proxy can carry, its response time lies between two limits.
    ResponseTime {
        /// Measured response time in seconds.
        seconds: f64,
        /// Shortest allowed response time in seconds.
        low: f64,
        /// Longest allowed response time in seconds.
        high: f64,
    },
    /// The paper names a cause for its value, and counts of the run show the same cause.
    Cause {
        /// The cause in the paper's terms, such as fewer disk seeks.
        named: String,
        /// The run's counts that show the cause, or the reason why the run does not count it.
        ours: String,
        /// Whether the run's counts show this cause.
        shown: bool,
    },
    /// The verdict (agreement with the paper) does not change if the experiment runs at another
    /// scale (size of trace, memory and disk).
    TwoScales {
        /// The other scale and the verdict (agreement with the paper) at that scale. `None` if the
        /// experiment ran at one scale only.
        other: Option<(f64, Verdict)>,
    },
    /// An input of the run was fitted to the paper's value, so the agreement of the run's value
    /// proves nothing. A row with this condition never gets a verdict (agreement with the paper).
    Fitted,
}

/// The reason why a row has no verdict (agreement with the paper).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NoVerdictReason {
    /// There are fewer than three seeds or runs.
    FewSeeds,
    /// The run filled the cache fewer than 1.5 times.
    BeforeSteadyState,
    /// The response time lies outside its allowed range.
    OutsideWindow,
    /// The run's counts do not show the cause that the paper names.
    CauseNotShown,
    /// The experiment ran at only one scale (size of trace, memory and disk).
    OneScale,
    /// Two scales of the experiment (sizes of trace, memory and disk) have different verdicts
    /// (agreement with the paper).
    ScalesDisagree,
    /// An input of the experiment was fitted to the paper's value. So the run's value agrees in any
    /// case, which proves nothing.
    FittedToQuote,
    /// The table of quotes (`quotes.tsv`) has no entry for the row.
    NotInQuotes,
}

impl fmt::Display for NoVerdictReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::FewSeeds => "fewer than 3 seeds",
            Self::BeforeSteadyState => "fewer than 1.5 fills",
            Self::OutsideWindow => "response time outside its allowed range",
            Self::CauseNotShown => "cause not shown",
            Self::OneScale => "one scale",
            Self::ScalesDisagree => "another verdict at the second scale",
            Self::FittedToQuote => "input fitted to the quoted value",
            Self::NotInQuotes => "the table of quotes from papers has no entry for this row",
        })
    }
}

impl Condition {
    /// Returns the reason for no verdict (agreement with the paper) if the condition fails.
    /// `verdict` is the verdict of the row so far.
    pub fn failure(&self, verdict: Verdict) -> Option<NoVerdictReason> {
        match self {
            Self::Fills { reached } => {
                (!reached.ge(&STEADY_FILLS)).then_some(NoVerdictReason::BeforeSteadyState)
            }
            Self::ResponseTime { seconds, low, high } => {
                let within = (low..=high).contains(&seconds);
                (!within).then_some(NoVerdictReason::OutsideWindow)
            }
            Self::Cause { shown, .. } => (!shown).then_some(NoVerdictReason::CauseNotShown),
            Self::TwoScales { other: None } => Some(NoVerdictReason::OneScale),
            Self::TwoScales { other: Some((_, there)) } => {
                (*there != verdict).then_some(NoVerdictReason::ScalesDisagree)
            }
            Self::Fitted => Some(NoVerdictReason::FittedToQuote),
        }
    }

    /// Makes the condition that the run's counts show the cause which the paper names. The
    /// condition is met if each value in `low` is below each value in `high`.
    pub fn smaller(named: &str, count: &str, low: &[f64], high: &[f64]) -> Self {
        let most = low.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let least = high.iter().copied().fold(f64::INFINITY, f64::min);
        let mean = |values: &[f64]| readable(crate::statistics::mean(values));
        Self::Cause {
            named: named.into(),
            ours: format!("{count}: {} against {}", mean(low), mean(high)),
            shown: most < least && !low.is_empty() && !high.is_empty(),
        }
    }

    /// Makes the condition for a cause that the run does not count. A row with this condition never
    /// gets a verdict (agreement with the paper). `why` is the reason why the run does not count
    /// the cause.
    pub fn unmeasured(named: &str, why: &str) -> Self {
        Self::Cause { named: named.into(), ours: why.into(), shown: false }
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fills { reached } => write!(f, "{} fills", readable(*reached)),
            Self::ResponseTime { seconds, low, high } => write!(
                f,
                "response time {} ms, allowed: {} to {} ms",
                readable(seconds * 1e3),
                readable(low * 1e3),
                readable(high * 1e3)
            ),
            Self::Cause { named, ours, shown } => {
                let word = if *shown { "shown" } else { "not shown" };
                write!(f, "cause \"{named}\" {word}: {ours}")
            }
            Self::TwoScales { other: None } => f.write_str("one scale"),
            Self::TwoScales { other: Some((scale, verdict)) } => {
                write!(f, "verdict at scale {}: {verdict}", super::scale_text(*scale))
            }
            Self::Fitted => f.write_str("fitted input"),
        }
    }
}

impl FigureRow {
    /// Adds a condition that the verdict (agreement with the paper) needs.
    pub fn under(mut self, condition: Condition) -> Self {
        self.conditions.push(condition);
        self
    }

    /// Fills in the verdict (agreement with the paper) of the same row at another scale.
    pub fn at_second_scale(&mut self, other: Option<&Self>) {
        for condition in &mut self.conditions {
            if let Condition::TwoScales { other: found } = condition {
                *found = other.map(|other| (other.scale, other.verdict));
            }
        }
    }

    /// Replaces the verdict (agreement with the paper) by "no verdict" if a condition fails. Does
    /// the same after too few seeds, or without an entry in the table of quotes. Call this function
    /// last, because the functions that compare scales need the verdict.
    pub fn settle(&mut self) {
        use Verdict::{DifferentToday, Differs, Reproduced, ShapeOnly};
        if !matches!(self.verdict, Reproduced | ShapeOnly | Differs | DifferentToday) {
            return;
        }
        let few = (self.seeds < SEEDS).then_some(NoVerdictReason::FewSeeds);
        let unknown =
            quote(&self.figure, &self.row).is_none().then_some(NoVerdictReason::NotInQuotes);
        let failed = self.conditions.iter().filter_map(|condition| condition.failure(self.verdict));
        self.reasons = failed.chain(few).chain(unknown).collect();
        self.reasons.sort_unstable();
        self.reasons.dedup();
        if !self.reasons.is_empty() {
            self.verdict = Verdict::NoVerdict;
        }
    }

    /// Returns the verdict as text. After "no verdict", the text gives the reasons.
    pub fn verdict_text(&self) -> String {
        let reasons: Vec<String> = self.reasons.iter().map(ToString::to_string).collect();
        match (self.verdict, reasons.is_empty()) {
            (Verdict::NoVerdict, false) => format!("no verdict: {}", reasons.join(", ")),
            (verdict, _) => verdict.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(values: &[f64]) -> FigureRow {
        FigureRow::of("001-table2", "BUDDY", "URL-get/s", values).judged()
    }

    fn reasons(row: FigureRow) -> Vec<NoVerdictReason> {
        let mut row = row;
        row.settle();
        assert_eq!(row.verdict == Verdict::NoVerdict, !row.reasons.is_empty());
        row.reasons
    }

    #[test]
    fn each_condition_that_fails_withholds_the_verdict_and_is_named() {
        use NoVerdictReason::*;
        let three = || row(&[130.0, 133.0, 140.0]);
        let check = |condition, expected: &[NoVerdictReason]| {
            assert_eq!(reasons(three().under(condition)), expected);
        };
        assert_eq!(reasons(three()), []);
        assert_eq!(reasons(row(&[133.0])), [FewSeeds]);
        check(Condition::Fills { reached: 1.5 }, &[]);
        check(Condition::Fills { reached: 1.4 }, &[BeforeSteadyState]);
        check(Condition::Fills { reached: f64::NAN }, &[BeforeSteadyState]);
        let window = |seconds| Condition::ResponseTime { seconds, low: 0.050, high: 0.058 };
        check(window(0.055), &[]);
        check(window(0.0858), &[OutsideWindow]);
        check(Condition::smaller("c", "n", &[1.0, 2.0], &[3.0]), &[]);
        check(Condition::smaller("c", "n", &[1.0, 4.0], &[3.0]), &[CauseNotShown]);
        check(Condition::smaller("c", "n", &[], &[3.0]), &[CauseNotShown]);
        check(Condition::TwoScales { other: None }, &[OneScale]);
        check(Condition::TwoScales { other: Some((0.2, Verdict::Reproduced)) }, &[]);
        check(Condition::TwoScales { other: Some((0.2, Verdict::Differs)) }, &[ScalesDisagree]);
        check(Condition::Fitted, &[FittedToQuote]);
    }

    #[test]
    fn a_row_without_an_entry_has_no_verdict_and_a_row_without_a_quote_stays() {
        let unknown = FigureRow::of("001-table2", "nothing", "1", &[1.0, 1.0, 1.0]);
        let against = unknown.clone().against(1.0, 0.5..=1.5);
        assert_eq!(reasons(against), [NoVerdictReason::NotInQuotes]);
        assert_eq!(reasons(unknown), []);
    }

    #[test]
    fn the_reasons_stand_beside_the_verdict() {
        let mut row = row(&[133.0]).under(Condition::TwoScales { other: None });
        row.settle();
        assert_eq!(row.verdict_text(), "no verdict: fewer than 3 seeds, one scale");
        let json = serde_json::to_value(&row).expect("plain values");
        assert_eq!(json["verdict"], "no verdict");
        assert_eq!(json["reasons"], serde_json::json!(["few-seeds", "one-scale"]));
    }
}
