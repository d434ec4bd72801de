//! Bars: what a measure must not be. `hit_ratio<0.9` holds when the hit ratio is below 0.9, and then the bar is missed.

use crate::failure::Failure;
use foxy_report::Record;
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
        if name.is_empty() || value.is_nan() {
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
        let Some(measure) = measures().find(|measure| measure.name == bar.name) else {
            let names: Vec<_> = measures().map(|measure| measure.name.as_str()).collect();
            let message = format!("--fail-if {bar}: not measured; there are {}", names.join(", "));
            return Err(Failure::Unusable(message));
        };
        if if bar.below { measure.value < bar.value } else { measure.value > bar.value } {
            missed.push(format!("--fail-if {bar}: {} is {}", bar.name, measure.value));
        }
    }
    Ok(missed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use foxy_report::Measure;

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
    fn what_is_no_bar_is_refused() {
        for text in ["hit_ratio", "<1", "a<b", "a<NaN", ""] {
            assert!(text.parse::<Bar>().is_err(), "{text}");
        }
    }
}
