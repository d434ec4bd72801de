//! The access log's place: opened at start-up, opened anew on SIGHUP.

use super::log_queue::Sink;
use crate::failure::Failure;
use crate::settings::kind::Output;
use crate::terminal::{self, Level};
use std::fs::OpenOptions;
use std::path::Path;

/// Opens the place lines go to; none when the log is off.
///
/// # Errors
/// The file cannot be opened for appending.
pub fn open(output: &Output) -> Result<Option<Sink>, Failure> {
    match output {
        Output::Off => Ok(None),
        Output::Standard => Ok(Some(Box::new(std::io::stdout()))),
        Output::File(path) => append(path).map(Some).map_err(|error| {
            Failure::Unusable(format!(
                "cannot open the access log {} (--access-log): {error}; \
                 name a file this user may write, `-` for standard output, or `off`",
                path.display()
            ))
        }),
    }
}

/// Opens it anew. A failure is reported, and lines go on to where they went before.
pub fn reopen(output: &Output) -> std::io::Result<Sink> {
    match output {
        Output::Off | Output::Standard => Ok(Box::new(std::io::stdout())),
        Output::File(path) => append(path).inspect_err(|error| {
            let text =
                format!("cannot open the access log {} anew: {error}; it stays as it is", path.display());
            terminal::report(Level::Warning, &text);
        }),
    }
}

fn append(path: &Path) -> std::io::Result<Sink> {
    Ok(Box::new(OpenOptions::new().append(true).create(true).open(path)?))
}
