//! Output to the terminal: the only place that writes to stdout and stderr. A closed pipe is no
//! error; the first other error of stdout is kept until the end.

use std::io::{self, ErrorKind, Write};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, Ordering};

/// The importance of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Stops foxy.
    Error,
    /// Costs hits or log lines.
    Warning,
    /// Start, stop and actions of the operator.
    Info,
}

impl Level {
    /// The level with this name in the settings.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "error" => Some(Self::Error),
            "warning" => Some(Self::Warning),
            "info" => Some(Self::Info),
            _ => None,
        }
    }
}

static LEAST: AtomicU8 = AtomicU8::new(Level::Info as u8);

/// Suppresses messages below `level`.
pub fn set_level(level: Level) {
    LEAST.store(level as u8, Ordering::Relaxed);
}

static FAILED: OnceLock<String> = OnceLock::new();

/// Writes a line to stdout.
pub fn print(text: &str) {
    if let Err(error) = write_line(&mut std::io::stdout().lock(), text)
        && error.kind() != ErrorKind::BrokenPipe
    {
        FAILED.get_or_init(|| error.to_string());
    }
}

/// The first error of stdout, except a closed pipe.
pub fn failure() -> Option<&'static str> {
    FAILED.get().map(String::as_str)
}

/// Writes a message about foxy to stderr, if its level is enabled.
pub fn report(level: Level, text: &str) {
    if level as u8 <= LEAST.load(Ordering::Relaxed) {
        let _nobody_to_tell = write_line(&mut std::io::stderr().lock(), text);
    }
}

fn write_line(to: &mut impl Write, text: &str) -> io::Result<()> {
    writeln!(to, "{text}")?;
    to.flush()
}
