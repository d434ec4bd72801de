//! Writing to the terminal: the only place that touches stdout and stderr. A reader that went away
//! is no error; what it would have read is dropped. That stdout took no more for another reason is
//! kept until the end.

use std::io::{self, ErrorKind, Write};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, Ordering};

/// How much a message matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Stops foxy.
    Error,
    /// Costs hits or lines of the log.
    Warning,
    /// Start, stop and what an operator does.
    Info,
}

impl Level {
    /// The level of that name in the table of settings.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "error" => Some(Self::Error),
            "warning" => Some(Self::Warning),
            "info" => Some(Self::Info),
            _ => None,
        }
    }
}

/// The least important level that is written.
static LEAST: AtomicU8 = AtomicU8::new(Level::Info as u8);

/// Leaves out messages that matter less than `level`.
pub fn set_level(level: Level) {
    LEAST.store(level as u8, Ordering::Relaxed);
}

/// Why what was printed did not all arrive.
static FAILED: OnceLock<String> = OnceLock::new();

/// Writes `text` to stdout, followed by a line end.
pub fn print(text: &str) {
    if let Err(error) = write_line(&mut std::io::stdout().lock(), text)
        && error.kind() != ErrorKind::BrokenPipe
    {
        FAILED.get_or_init(|| error.to_string());
    }
}

/// Why stdout did not take all that was printed, if so.
pub fn failure() -> Option<&'static str> {
    FAILED.get().map(String::as_str)
}

/// Writes a message about foxy itself to stderr, followed by a line end, if its level is wanted.
pub fn report(level: Level, text: &str) {
    if level as u8 <= LEAST.load(Ordering::Relaxed) {
        let _nobody_to_tell = write_line(&mut std::io::stderr().lock(), text);
    }
}

fn write_line(to: &mut impl Write, text: &str) -> io::Result<()> {
    writeln!(to, "{text}")?;
    to.flush()
}
