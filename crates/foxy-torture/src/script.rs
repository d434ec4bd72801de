//! A schedule as data: what is asked, when disk work finishes, when the machine dies. It has a text
//! form of one step a line, printed with every failure and read back by `replay`. It runs nothing.

use crate::content::RecordName;
use std::fmt;
use std::str::FromStr;

/// How a process ends without saying goodbye.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Death {
    /// The process is killed: what it wrote is in the system's hands and survives.
    Kill,
    /// The power fails: writes that were not synced survive, vanish or tear, each by itself.
    Power,
}

/// How likely operations are to go wrong, in thousandths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// Fails with an error (EIO, ENOSPC) or moves fewer bytes than asked.
    pub errors: u16,
    /// Moves all bytes, with one bit flipped.
    pub flips: u16,
}

/// One step of a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Asks for a key.
    Get(u32),
    /// Looks a key up past the scheme, and reads from disk what is there at that moment; nothing
    /// follows from a look in vain.
    Look(u32),
    /// Puts a record.
    Put(RecordName),
    /// Removes a key.
    Remove(u32),
    /// Lets that many things happen: a completion reaches the scheme, or its deadline passes.
    Run(u32),
    /// Lets things happen until every request is answered and the device is idle.
    Settle,
    /// Lets virtual time pass, in milliseconds, with all that happens in it.
    Advance(u32),
    /// Ends the process where it stands and opens the store again.
    Crash(Death),
    /// Closes the store in order and opens it again.
    Reopen,
    /// From here on, operations go wrong that often.
    Faults(Faults),
}

/// A schedule for one scheme.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script {
    /// Name of the scheme it is for.
    pub scheme: String,
    /// Decides latencies, faults and what a crash does to unsynced writes.
    pub seed: u64,
    /// What happens, in order.
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

/// Why a text is not a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScriptError {
    /// The `scheme` or `seed` line is not there.
    MissingLine(&'static str),
    /// This line (counted from 1) is none of the known steps.
    BadStep {
        /// Which line.
        line: usize,
        /// Its text.
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
                "line {line}: {text:?} is no step; steps are get K, look K, put K VERSION SIZE, remove K, run N, settle, \
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
