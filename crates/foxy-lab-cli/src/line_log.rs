//! The Multiplier's and the Collector's logs as files. When a file takes no more, its log stops and
//! what it is the log of goes on.

use foxy_cli::failure::Failure;
use std::fmt::Display;
use std::fs::File;
use std::io::{BufWriter, LineWriter, Write};
use std::path::PathBuf;

/// A log, which may be none.
pub struct Log {
    path: PathBuf,
    file: Option<Box<dyn Write + Send>>,
}

impl Log {
    /// A log in this file, written as its lines fill up; without one, lines go nowhere.
    ///
    /// # Errors
    /// When the file cannot be made.
    pub fn create(path: Option<&PathBuf>) -> Result<Self, Failure> {
        Self::with(path, |file| Box::new(BufWriter::new(file)))
    }

    /// One that is written line by line, so that it can be followed.
    ///
    /// # Errors
    /// When the file cannot be made.
    pub fn create_to_follow(path: Option<&PathBuf>) -> Result<Self, Failure> {
        Self::with(path, |file| Box::new(LineWriter::new(file)))
    }

    fn with(
        path: Option<&PathBuf>,
        writer: fn(File) -> Box<dyn Write + Send>,
    ) -> Result<Self, Failure> {
        let file = path.map(File::create).transpose().map_err(|error| {
            let path = path.map(|path| path.display().to_string()).unwrap_or_default();
            Failure::Unusable(format!("--log {path}: cannot be made: {error}; name another place"))
        })?;
        Ok(Self { path: path.cloned().unwrap_or_default(), file: file.map(writer) })
    }

    /// Writes a line; says why the log stops, if it does now.
    pub fn write(&mut self, line: &impl Display) -> Option<String> {
        let written = writeln!(self.file.as_mut()?, "{line}");
        written.err().map(|error| self.stop(&error))
    }

    /// Writes what is held back; says why the log is not whole, if that cannot be written.
    pub fn finish(&mut self) -> Option<String> {
        let written = self.file.as_mut()?.flush();
        written.err().map(|error| self.stop(&error))
    }

    fn stop(&mut self, error: &std::io::Error) -> String {
        self.file = None;
        format!("{}: the log stops here: {error}", self.path.display())
    }
}
