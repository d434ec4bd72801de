//! Bars: what a measure must not be. `hit_ratio<0.9` holds when the hit ratio is below 0.9, and then the bar is missed.
//! `foxy/hit_ratio<0.9` is on one subject, `fill/foxy/hit_ratio<0.9` on one under one workload; without them a bar is on all.

use crate::failure::Failure;
use foxy_report::{Measure, Record};
use std::fmt;
use std::str::FromStr;

/// One bar of `--fail-if`.
#[derive(Clone, Debug, PartialEq)]
pub struct Bar {
    name: String,
    below: bool,
    value: f64,
}

impl FromStr for Bar {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let refuse = || format!("{text:?} is not a bar; write one such as hit_ratio<0.9 or errors>0");
        let at = text.find(['<', '>']).ok_or_else(refuse)?;
        let (name, value) = (text[..at].trim(), text[at + 1..].trim());
        let value: f64 = value.parse().map_err(|_| refuse())?;
        if name.is_empty() || name.ends_with(['=', '!']) || value.is_nan() {
            return Err(refuse());
        }
        Ok(Self { name: name.into(), below: text[at..].starts_with('<'), value })
    }
}

impl fmt::Display for Bar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}{}", self.name, if self.below { '<' } else { '>' }, self.value)
    }
}

impl Bar {
    /// Whether it is on this measure: its name is the end of the measure's.
    fn is_on(&self, measure: &Measure) -> bool {
        let named = [measure.workload.as_deref().unwrap_or(""), &measure.subject, &measure.name];
        let given: Vec<&str> = self.name.split('/').collect();
        given.len() <= named.len() && named.ends_with(&given)
    }
}

/// A measure's name as a bar on it alone has it; plain where there are no workloads.
fn full_name(measure: &Measure) -> String {
    match &measure.workload {
        None => measure.name.clone(),
        Some(workload) => format!("{workload}/{}/{}", measure.subject, measure.name),
    }
}

/// Says of each bar that is missed what was measured. A bar on something that was not measured is unusable.
pub fn missed<'a>(
    bars: impl IntoIterator<Item = &'a Bar>,
    records: &[Record],
) -> Result<Vec<String>, Failure> {
    let measures = || {
        records.iter().filter_map(|record| match record {
            Record::Measure(measure) => Some(measure),
            _ => None,
        })
    };
    let mut missed = Vec::new();
    for bar in bars {
        let mut on = measures().filter(|measure| bar.is_on(measure)).peekable();
        if on.peek().is_none() {
            let mut names: Vec<&str> = Vec::new();
            for measure in measures().filter(|measure| measure.repeat.is_none()) {
                if !names.contains(&measure.name.as_str()) {
                    names.push(&measure.name);
                }
            }
            let message = format!("--fail-if {bar}: not measured; there are {}", names.join(", "));
            return Err(Failure::Unusable(message));
        }
        let holds = |measure: &&Measure| {
            if bar.below { measure.value < bar.value } else { measure.value > bar.value }
        };
        missed.extend(
            on.filter(holds)
                .map(|measure| format!("--fail-if {bar}: {} is {}", full_name(measure), measure.value)),
        );
    }
    Ok(missed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_missed_when_they_hold() {
        let records = [Record::Measure(Measure::once("hit_ratio", "x", 0.5, "share"))];
        let check = |bar: &str, expected: usize| {
            let bar: Bar = bar.parse().expect(bar);
            assert_eq!(missed(&[bar], &records).expect("measured").len(), expected);
        };
        check("hit_ratio<0.9", 1);
        check("hit_ratio < 0.5", 0);
        check("hit_ratio>0.4", 1);
        assert!(missed(&["errors>0".parse().expect("a bar")], &records).is_err());
    }

    #[test]
    fn a_bar_may_name_a_subject_and_a_workload() {
        let measured = |workload: &str, subject: &str, value| {
            let measure = Measure::once("hit_ratio", subject, value, "share");
            Record::Measure(Measure { workload: Some(workload.into()), ..measure })
        };
        let records =
            [measured("fill", "foxy", 0.9), measured("fill", "squid", 0.1), measured("zipf", "foxy", 0.2)];
        let check = |bar: &str, expected: &[&str]| {
            let found = missed(&[bar.parse().expect(bar)], &records).expect("measured");
            assert_eq!(found, expected.iter().map(|it| format!("--fail-if {bar}: {it}")).collect::<Vec<_>>());
        };
        check("hit_ratio<0.5", &["fill/squid/hit_ratio is 0.1", "zipf/foxy/hit_ratio is 0.2"]);
        check("foxy/hit_ratio<0.5", &["zipf/foxy/hit_ratio is 0.2"]);
        check("fill/foxy/hit_ratio<0.5", &[]);
        assert!(missed(&["zipf/squid/hit_ratio<0.5".parse().expect("a bar")], &records).is_err());
    }

    #[test]
    fn what_is_no_bar_is_refused() {
        for text in ["errors=>0", "hit_ratio", "<1", "a<b", "a<NaN", ""] {
            assert!(text.parse::<Bar>().is_err(), "{text}");
        }
    }
}
