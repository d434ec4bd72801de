//! Reads the knobs (settings) of a workload file one by one. Each knob must be set, valid, and
//! known to the model.

use foxy_base::ByteSize;
use std::fmt;
use std::time::Duration;
use toml::{Table, Value};

/// An error in a workload file. `right` describes a correct value, and `known` lists the model's
/// knobs.
#[expect(missing_docs, reason = "the names and `Display` explain the fields")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WorkloadError {
    /// The text is not TOML.
    NotToml { file: String, line: usize, what: String },
    /// A required knob (a setting in a workload file) is not set.
    Missing { file: String, knob: &'static str, right: String },
    /// A knob has an invalid value.
    Wrong { file: String, knob: &'static str, found: String, right: String },
    /// The model does not have the knob.
    Unknown { file: String, knob: String, known: Vec<&'static str> },
}

impl fmt::Display for WorkloadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotToml { file, line, what } => {
                write!(
                    f,
                    "{file}: line {line} is not TOML: {what}; write lines such as objects = 1000"
                )
            }
            Self::Missing { file, knob, right } => {
                write!(f, "{file}: {knob} is not set; set {right}")
            }
            Self::Wrong { file, knob, found, right } => {
                write!(f, "{file}: {knob} = {found} is not allowed; set {right}")
            }
            Self::Unknown { file, knob, known } => {
                write!(
                    f,
                    "{file}: {knob} is not a setting of this model; its settings are {}",
                    known.join(", ")
                )
            }
        }
    }
}

impl std::error::Error for WorkloadError {}

/// The knobs of a file that no call has read yet.
#[derive(Debug)]
pub(crate) struct Knobs {
    file: String,
    table: Table,
    known: Vec<&'static str>,
}

impl Knobs {
    pub fn parse(file: &str, text: &str) -> Result<Self, WorkloadError> {
        let table = text.parse::<Table>().map_err(|error| {
            let before = &text[..error.span().map_or(0, |span| span.start).min(text.len())];
            let line = before.matches('\n').count() + 1;
            WorkloadError::NotToml { file: file.into(), line, what: error.message().to_owned() }
        })?;
        Ok(Self { file: file.into(), table, known: Vec::new() })
    }

    /// Reads a required knob. `read` returns `None` for an invalid value. `right` describes valid
    /// values.
    fn take<T>(
        &mut self,
        knob: &'static str,
        right: &str,
        read: impl FnOnce(&Value) -> Option<T>,
    ) -> Result<T, WorkloadError> {
        self.known.push(knob);
        let (file, right) = (self.file.clone(), right.to_owned());
        let Some(value) = self.table.remove(knob) else {
            return Err(WorkloadError::Missing { file, knob, right });
        };
        let found = value.to_string();
        read(&value).ok_or(WorkloadError::Wrong { file, knob, found, right })
    }

    pub fn text(&mut self, knob: &'static str) -> Result<String, WorkloadError> {
        let right = format!("a text, such as {knob} = \"…\"");
        self.take(knob, &right, |value| value.as_str().map(str::to_owned))
    }

    /// Reads a knob whose value is a name from `choices`.
    pub fn choice<T: Copy>(
        &mut self,
        knob: &'static str,
        choices: &[(&str, T)],
    ) -> Result<T, WorkloadError> {
        let names: Vec<String> = choices.iter().map(|(name, _)| format!("{name:?}")).collect();
        let right = format!("{knob} to {}", names.join(" or "));
        self.take(knob, &right, |value| {
            let name = value.as_str()?;
            choices.iter().find(|(known, _)| *known == name).map(|&(_, choice)| choice)
        })
    }

    /// Reads a number of at least 1.
    pub fn count(&mut self, knob: &'static str) -> Result<u64, WorkloadError> {
        let right = format!("a number from 1 on, such as {knob} = 1000");
        self.take(knob, &right, |value| {
            u64::try_from(value.as_integer()?).ok().filter(|&count| count > 0)
        })
    }

    /// Reads a number from 1 to 65,535.
    pub fn small_count(&mut self, knob: &'static str) -> Result<u32, WorkloadError> {
        let right = format!("a number from 1 to 65535, such as {knob} = 4");
        self.take(knob, &right, |value| {
            u16::try_from(value.as_integer()?).ok().filter(|&count| count > 0)
        })
        .map(u32::from)
    }

    /// Reads a number above 0.
    #[expect(clippy::cast_precision_loss, reason = "what people write is far below 2^53")]
    pub fn number(&mut self, knob: &'static str) -> Result<f64, WorkloadError> {
        let right = format!("a number above 0, such as {knob} = 1.5");
        self.take(knob, &right, |value| {
            let number =
                value.as_float().or_else(|| value.as_integer().map(|number| number as f64))?;
            (number > 0.0 && number.is_finite()).then_some(number)
        })
    }

    /// Reads a size: a number of bytes, or a text with a unit.
    pub fn size(&mut self, knob: &'static str) -> Result<u64, WorkloadError> {
        let right = format!("a size, such as {knob} = \"8K\" or {knob} = 8192");
        self.take(knob, &right, |value| match value {
            Value::Integer(bytes) => u64::try_from(*bytes).ok(),
            value => Some(value.as_str()?.parse::<ByteSize>().ok()?.0),
        })
    }

    pub fn flag(&mut self, knob: &'static str) -> Result<bool, WorkloadError> {
        self.take(knob, &format!("{knob} = true or {knob} = false"), Value::as_bool)
    }

    pub fn time(&mut self, knob: &'static str) -> Result<Duration, WorkloadError> {
        let right = format!("a time, such as {knob} = \"2.5 s\"; units are ms, s, min, h and d");
        self.take(knob, &right, |value| time(value.as_str()?))
    }

    /// Makes the error for a knob whose value contradicts other knobs.
    pub(crate) fn refusal(
        &self,
        knob: &'static str,
        found: impl fmt::Display,
        right: &str,
    ) -> WorkloadError {
        let (file, found) = (self.file.clone(), found.to_string());
        WorkloadError::Wrong { file, knob, found, right: right.into() }
    }

    /// Returns an error if the file sets a knob that no call has read, because the model does not
    /// have such a knob.
    pub fn finish(self) -> Result<(), WorkloadError> {
        match self.table.keys().next() {
            None => Ok(()),
            Some(knob) => Err(WorkloadError::Unknown {
                file: self.file,
                knob: knob.clone(),
                known: self.known,
            }),
        }
    }
}

fn time(text: &str) -> Option<Duration> {
    let text = text.trim();
    let at = text.find(|c: char| !(c.is_ascii_digit() || c == '.'))?;
    let number: f64 = text[..at].parse().ok()?;
    let seconds = match text[at..].trim() {
        "ms" => 0.001,
        "s" => 1.0,
        "min" => 60.0,
        "h" => 3600.0,
        "d" => 86_400.0,
        _ => return None,
    };
    Duration::try_from_secs_f64(number * seconds).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        for (text, milliseconds) in [("2.5 s", 2500), ("40ms", 40), ("4 h", 14_400_000), ("0 s", 0)]
        {
            assert_eq!(time(text), Some(Duration::from_millis(milliseconds)), "{text}");
        }
        for text in ["5", "s", "1 week", "-1 s", "1.2.3 s"] {
            assert_eq!(time(text), None, "{text}");
        }
    }
}
