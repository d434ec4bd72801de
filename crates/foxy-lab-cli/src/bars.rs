//! Bars: the bounds on measured values that `--fail-if` sets. A missed bar makes the command fail.
//! The bar `hit_ratio<0.9` is missed if the hit ratio is below 0.9. `foxy/hit_ratio<0.9` also names
//! the proxy, and `fill/foxy/hit_ratio<0.9` also names the workload. The command refuses a bar on a
//! measure that the run cannot produce.

use clap::ArgMatches;
use foxy_cli::failure::Failure;
use foxy_cli::suggestion::nearest;
use foxy_report::{Measurable, Measure, Record};
use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

#[derive(Clone, Debug, PartialEq)]
pub struct Bar {
    name: String,
    below: bool,
    value: f64,
}

impl FromStr for Bar {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let refuse = || {
            format!(
                "{text:?} is not a condition; write a condition such as hit_ratio<0.9 or errors>0"
            )
        };
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
    /// Returns whether the bar (a bound of `--fail-if`) applies to `measure`. The measure's full
    /// name is `WORKLOAD/SUBJECT/NAME`. The bar gives this full name, its last two parts, or only
    /// its last part.
    fn is_on(&self, measure: &Measure) -> bool {
        self.names(measure.workload.as_deref(), &measure.subject, &measure.name)
    }

    fn names(&self, workload: Option<&str>, subject: &str, name: &str) -> bool {
        let named = [workload.unwrap_or(""), subject, name];
        let given: Vec<&str> = self.name.split('/').collect();
        given.len() <= named.len() && named.ends_with(&given)
    }

    fn parts(&self) -> (Option<&str>, &str) {
        self.name.rsplit_once('/').map_or((None, &*self.name), |(of, name)| (Some(of), name))
    }

    fn may_be_on(&self, measurable: &Measurable) -> bool {
        let (of, name) = self.parts();
        // Before the run, the subject (the measured proxy) of some measures is unknown. Such a
        // measure matches a bar (a bound of `--fail-if`) on any subject.
        let any = of.map_or("", |of| of.rsplit('/').next().unwrap_or(of));
        let subject = measurable.subject.as_deref().unwrap_or(any);
        self.names(measurable.workload.as_deref(), subject, name) && measurable.all().contains(name)
    }

    /// Returns whether the bar (a bound of `--fail-if`) applies to an error count such as
    /// `errors_reset`. Reports leave out error counts of zero.
    fn is_on_a_cause(&self) -> bool {
        self.parts().1.starts_with(CAUSE)
    }

    fn holds(&self, value: f64) -> bool {
        if self.below { value < self.value } else { value > self.value }
    }
}

const CAUSE: &str = "errors_";

pub struct Bars<'a> {
    bars: Vec<&'a Bar>,
    measurable: Vec<Measurable>,
}

impl<'a> Bars<'a> {
    pub fn given(matches: &'a ArgMatches) -> impl Iterator<Item = &'a Bar> {
        matches.get_many("fail-if").into_iter().flatten()
    }

    pub fn of(matches: &'a ArgMatches, measurable: Vec<Measurable>) -> Result<Self, Failure> {
        let bars: Vec<&Bar> = Self::given(matches).collect();
        match bars.iter().find(|bar| !measurable.iter().any(|known| bar.may_be_on(known))) {
            Some(bar) => Err(Failure::Unusable(unknown(bar, &measurable))),
            None => Ok(Self { bars, measurable }),
        }
    }

    /// Returns a text for each missed bar of `--fail-if`.
    ///
    /// # Errors
    ///
    /// Returns an error if the run could have produced the measure to which a bar applies, but did
    /// not.
    pub fn missed(&self, records: &[Record]) -> Result<Vec<String>, Failure> {
        for record in records {
            if let Record::Measure(measure) = record {
                let known = self.measurable.iter().any(|known| known.covers(measure));
                debug_assert!(known, "{measure:?} is missing in what can be measured");
            }
        }
        missed(self.bars.iter().copied(), records, &self.measurable)
    }
}

fn unknown(bar: &Bar, measurable: &[Measurable]) -> String {
    let (of, name) = bar.parts();
    let all: BTreeSet<String> = measurable.iter().flat_map(Measurable::all).collect();
    let Some(of) = of.filter(|_| all.contains(name)) else {
        let near = nearest(name, all.iter().map(String::as_str));
        let near = near.map_or_else(String::new, |near| format!("{near}, or another of "));
        return format!(
            "--fail-if {bar}: this run has no measure {name}; use {near}these names:\n{}",
            names(measurable)
        );
    };
    let with = measurable.iter().filter(|known| known.all().contains(name));
    let places: BTreeSet<String> = with
        .map(|known| {
            let workload =
                known.workload.as_ref().map(|workload| format!("{workload}/")).unwrap_or_default();
            format!("{workload}{}", known.subject.as_deref().unwrap_or("a name"))
        })
        .collect();
    let places: Vec<String> = places.into_iter().collect();
    format!(
        "--fail-if {bar}: {name} is not measured for {of}; leave out {of}/, or use one of {}",
        places.join(", ")
    )
}

fn names(measurable: &[Measurable]) -> String {
    let mut names: Vec<&str> = Vec::new();
    let mut choices: Vec<(&str, Vec<&str>)> = Vec::new();
    for known in measurable {
        let new = known.names.iter().map(String::as_str).filter(|name| !names.contains(name));
        names.extend(new.collect::<Vec<_>>());
        for (word, among) in &known.choices {
            let place = choices.iter().position(|(known, _)| known == word).unwrap_or_else(|| {
                choices.push((word, Vec::new()));
                choices.len() - 1
            });
            let known = &mut choices[place].1;
            known.extend(
                among
                    .iter()
                    .map(String::as_str)
                    .filter(|one| !known.contains(one))
                    .collect::<Vec<_>>(),
            );
        }
    }
    let used = |word: &str| names.iter().any(|name| name.contains(&format!("{{{word}}}")));
    let mut text = format!("  {}", names.join(", "));
    for (word, among) in choices.iter().filter(|(word, among)| used(word) && !among.is_empty()) {
        text.push_str(&format!("\n  {{{word}}}: {}", among.join(", ")));
    }
    text
}

fn full_name(measure: &Measure) -> String {
    match &measure.workload {
        None => measure.name.clone(),
        Some(workload) => format!("{workload}/{}/{}", measure.subject, measure.name),
    }
}

/// Returns a text for each missed bar (bound of `--fail-if`). An error count that the records lack
/// is 0.
///
/// # Errors
///
/// Returns an error if the records lack the measure to which a bar applies.
pub fn missed<'a>(
    bars: impl IntoIterator<Item = &'a Bar>,
    records: &[Record],
    measurable: &[Measurable],
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
        if on.peek().is_none()
            && bar.is_on_a_cause()
            && measurable.iter().any(|known| bar.may_be_on(known))
        {
            missed.extend(bar.holds(0.0).then(|| format!("--fail-if {bar}: {} is 0", bar.name)));
            continue;
        }
        if on.peek().is_none() {
            let mut names: Vec<&str> = Vec::new();
            for measure in measures().filter(|measure| measure.repeat.is_none()) {
                if !names.contains(&measure.name.as_str()) {
                    names.push(&measure.name);
                }
            }
            let message =
                format!("--fail-if {bar}: not measured; the measures are {}", names.join(", "));
            return Err(Failure::Unusable(message));
        }
        missed.extend(on.filter(|measure| bar.holds(measure.value)).map(|measure| {
            format!("--fail-if {bar}: {} is {}", full_name(measure), measure.value)
        }));
    }
    Ok(missed)
}

#[cfg(test)]
#[path = "bars_tests.rs"]
mod tests;
