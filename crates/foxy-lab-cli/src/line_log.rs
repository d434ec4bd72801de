//! Log files of the Multiplier and the Collector. A write error stops the log, not the run.

use foxy_cli::failure::Failure;
use std::fmt::Display;
use std::fs::File;
use std::io::{BufWriter, LineWriter, Write};
use std::path::PathBuf;

pub struct Log {
    path: PathBuf,
    file: Option<Box<dyn Write + Send>>,
}

impl Log {
    pub fn create(path: Option<&PathBuf>) -> Result<Self, Failure> {
        Self::with(path, |file| Box::new(BufWriter::new(file)))
    }

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

    /// Returns the error that stops the log.
    pub fn write(&mut self, line: &impl Display) -> Option<String> {
        let written = writeln!(self.file.as_mut()?, "{line}");
        written.err().map(|error| self.stop(&error))
    }

    /// Flushes. Returns the error that truncates the log.
    pub fn finish(&mut self) -> Option<String> {
        let written = self.file.as_mut()?.flush();
        written.err().map(|error| self.stop(&error))
    }

    fn stop(&mut self, error: &std::io::Error) -> String {
        self.file = None;
        format!("{}: the log stops here: {error}", self.path.display())
    }
}
