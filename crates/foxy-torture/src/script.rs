//! Scripts: schedules of requests, disk events, faults and crashes as data. A script has a text
//! form with one step per line. The tests print the text of a script that fails, and `foxy-torture
//! --replay` reads such a text.

use crate::content::RecordName;
use std::fmt;
use std::str::FromStr;

/// A way in which a process ends without closing the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Death {
    /// The process is killed. The writes of the process are in the system's cache and survive.
    Kill,
    /// The power fails. Each write without a sync survives, vanishes, or survives in part.
    Power,
}

/// Probabilities of faults per operation, in thousandths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// The operation fails with an error (EIO, ENOSPC), or moves too few bytes.
    pub errors: u16,
    /// The operation moves all bytes, with one bit flipped.
    pub flips: u16,
}

/// One step of a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Sends a `get` of a key.
    Get(u32),
    /// Looks up a key without a request to the storage scheme, and reads the disk's content. Other
    /// events may happen before, during and after the read. If the result of the look-up is not
    /// certain, the scheme gets a request, or the step has no effect.
    Look(u32),
    /// Sends a `put` of a record.
    Put(RecordName),
    /// Sends a `remove` of a key.
    Remove(u32),
    /// Runs this number of events. An event is a completion of the disk or a deadline of the
    /// storage scheme.
    Run(u32),
    /// Runs events until every request is answered and the device is idle.
    Settle,
    /// Advances virtual time by this number of milliseconds, and runs all events that are due.
    Advance(u32),
    /// Ends the process without closing the store, and opens the store again.
    Crash(Death),
    /// Closes the store normally, and opens it again.
    Reopen,
    /// Sets the probabilities of faults for the following operations.
    Faults(Faults),
}

/// A schedule for one storage scheme.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script {
    /// Name of the storage scheme to test.
    pub scheme: String,
    /// Seed of the disk's latencies, of faults, and of the effects of crashes.
    pub seed: u64,
    /// Steps of the schedule, in order.
    pub steps: Vec<Step>,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Get(key) => write!(f, "get {key}"),
            Self::Look(key) => write!(f, "look {key}"),
            Self::Put(name) => write!(f, "put {} {} {}", name.key, name.version, name.size),
            Self::Remove(key) => write!(f, "remove {key}"),
            Self::Run(count) => write!(f, "run {count}"),
            Self::Settle => f.write_str("settle"),
            Self::Advance(milliseconds) => write!(f, "advance {milliseconds}"),
            Self::Crash(Death::Kill) => f.write_str("crash kill"),
            Self::Crash(Death::Power) => f.write_str("crash power"),
            Self::Reopen => f.write_str("reopen"),
            Self::Faults(faults) => write!(f, "faults {} {}", faults.errors, faults.flips),
        }
    }
}

impl fmt::Display for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "scheme {}\nseed {}", self.scheme, self.seed)?;
        self.steps.iter().try_for_each(|step| writeln!(f, "{step}"))
    }
}

/// The reason why a text is not a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScriptError {
    /// The line `scheme` or `seed` is missing.
    MissingLine(&'static str),
    /// A line of the text is not a known step.
    BadStep {
        /// Number of the line in the text, from 1.
        line: usize,
        /// Text of the line.
        text: String,
    },
}

impl fmt::Display for ScriptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MissingLine(which) => {
                write!(f, "the script has no `{which} …` line; it needs scheme and seed")
            }
            Self::BadStep { line, text } => write!(
                f,
                "line {line}: {text:?} is not a step; steps are get K, look K, put K VERSION SIZE, remove K, run N, settle, \
                 advance MS, crash kill|power, reopen, faults ERRORS FLIPS"
            ),
        }
    }
}

impl std::error::Error for ScriptError {}

impl FromStr for Script {
    type Err = ScriptError;

    fn from_str(text: &str) -> Result<Self, ScriptError> {
        let (mut scheme, mut seed, mut steps) = (None, None, Vec::new());
        for (index, line) in text.lines().enumerate() {
            let bare = line.split('#').next().unwrap_or_default();
            let words: Vec<&str> = bare.split_whitespace().collect();
            let bad = || ScriptError::BadStep { line: index + 1, text: line.into() };
            match words.as_slice() {
                [] => {}
                ["scheme", name] => scheme = Some((*name).into()),
                ["seed", number] => seed = Some(number.parse().map_err(|_| bad())?),
                words => steps.push(step_of(words).ok_or_else(bad)?),
            }
        }
        let scheme = scheme.ok_or(ScriptError::MissingLine("scheme"))?;
        Ok(Self { scheme, seed: seed.ok_or(ScriptError::MissingLine("seed"))?, steps })
    }
}

fn step_of(words: &[&str]) -> Option<Step> {
    let number = |text: &str| text.parse::<u32>().ok();
    let share = |text: &str| text.parse::<u16>().ok().filter(|&share| share <= 1000);
    Some(match *words {
        ["get", key] => Step::Get(number(key)?),
        ["look", key] => Step::Look(number(key)?),
        ["put", key, version, size] => Step::Put(RecordName {
            key: number(key)?,
            version: number(version)?,
            size: number(size)?,
        }),
        ["remove", key] => Step::Remove(number(key)?),
        ["run", count] => Step::Run(number(count)?),
        ["settle"] => Step::Settle,
        ["advance", milliseconds] => Step::Advance(number(milliseconds)?),
        ["crash", "kill"] => Step::Crash(Death::Kill),
        ["crash", "power"] => Step::Crash(Death::Power),
        ["reopen"] => Step::Reopen,
        ["faults", errors, flips] => {
            Step::Faults(Faults { errors: share(errors)?, flips: share(flips)? })
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_step_prints_and_reads_back() {
        let name = RecordName { key: 3, version: 7, size: 5000 };
        let steps = vec![
            Step::Put(name),
            Step::Run(2),
            Step::Get(3),
            Step::Look(4),
            Step::Remove(3),
            Step::Settle,
            Step::Advance(250),
            Step::Crash(Death::Kill),
            Step::Crash(Death::Power),
            Step::Reopen,
            Step::Faults(Faults { errors: 50, flips: 3 }),
        ];
        let script = Script { scheme: "ufs".into(), seed: 99, steps };
        assert_eq!(script.to_string().parse(), Ok(script));
    }

    #[test]
    fn comments_and_blank_lines_are_skipped() {
        let script: Script =
            "# why\n\nscheme null\nseed 1 # first\n get 4\n".parse().expect("a sound script");
        assert_eq!(script.steps, [Step::Get(4)]);
    }

    #[test]
    fn bad_lines_are_named() {
        let error =
            "scheme null\nseed 1\ncrash softly".parse::<Script>().expect_err("no such death");
        assert_eq!(error, ScriptError::BadStep { line: 3, text: "crash softly".into() });
        assert_eq!("seed 1".parse::<Script>(), Err(ScriptError::MissingLine("scheme")));
    }
}
