//! The only module that writes to stdout and stderr. It ignores the error of a closed pipe. It
//! remembers the first other error of a write to stdout, so that the command can report this error
//! at its end.

use std::io::{self, ErrorKind, Write};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, Ordering};

/// The severity of a message to the operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// The severity of a problem that stops foxy.
    Error,
    /// The severity of a problem that reduces the hit ratio or loses log lines.
    Warning,
    /// The severity of messages about start, stop, and actions that the operator requested.
    Info,
}

impl Level {
    /// Returns the level with this name in the settings.
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

/// Suppresses all messages less severe than `level`.
pub fn set_level(level: Level) {
    LEAST.store(level as u8, Ordering::Relaxed);
}

static FAILED: OnceLock<String> = OnceLock::new();

/// Returns whether commands may use colours. The user forbids colours by a non-empty environment
/// variable `NO_COLOR`.
pub fn may_use_colours() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// Writes `text` and a line break to stdout.
pub fn print(text: &str) {
    if let Err(error) = write_line(&mut std::io::stdout().lock(), text)
        && error.kind() != ErrorKind::BrokenPipe
    {
        FAILED.get_or_init(|| error.to_string());
    }
}

/// Returns the first error of a write to stdout. A closed pipe does not count as an error.
pub fn failure() -> Option<&'static str> {
    FAILED.get().map(String::as_str)
}

/// A function that receives the messages to the operator.
pub type Listener = Box<dyn Fn(Level, &str) + Send + Sync>;

static LISTENER: OnceLock<Listener> = OnceLock::new();

/// Passes each later message of an enabled level to `listener` too. Only the first call of this
/// function has an effect.
pub fn pass_on(listener: Listener) {
    LISTENER.get_or_init(|| listener);
}

/// Writes a message to stderr and passes it to the listener, but only if the message's level is
/// enabled.
pub fn report(level: Level, text: &str) {
    if level as u8 <= LEAST.load(Ordering::Relaxed) {
        if let Some(listener) = LISTENER.get() {
            listener(level, text);
        }
        let _nobody_to_tell = write_line(&mut std::io::stderr().lock(), text);
    }
}

fn write_line(to: &mut impl Write, text: &str) -> io::Result<()> {
    writeln!(to, "{text}")?;
    to.flush()
}
