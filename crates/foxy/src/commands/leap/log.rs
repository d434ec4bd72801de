//! The Multiplier's log as a file. When it takes no more, the log stops and the replay goes on.

use crate::failure::Failure;
use foxy_lab::leap::Line;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// A log, which may be none.
pub struct Log {
    path: PathBuf,
    file: Option<BufWriter<File>>,
    stopped: Option<String>,
}

impl Log {
    /// A log in this file; without one, lines go nowhere.
    ///
    /// # Errors
    /// When the file cannot be made.
    pub fn create(path: Option<&PathBuf>) -> Result<Self, Failure> {
        let file = path.map(File::create).transpose().map_err(|error| {
            let path = path.map(|path| path.display().to_string()).unwrap_or_default();
            Failure::Unusable(format!("--log {path}: cannot be made: {error}; name another place"))
        })?;
        let path = path.map(PathBuf::as_path).unwrap_or(Path::new("")).to_owned();
        Ok(Self { path, file: file.map(BufWriter::new), stopped: None })
    }

    /// Writes a line.
    pub fn write(&mut self, line: &Line) {
        if let Some(file) = &mut self.file
            && let Err(error) = writeln!(file, "{line}")
        {
            self.stop(&error);
        }
    }

    fn stop(&mut self, error: &std::io::Error) {
        // What is still held back cannot be written either.
        if let Some(file) = self.file.take() {
            let (_file, _lost) = file.into_parts();
        }
        self.stopped = Some(format!("{}: the log stops here: {error}", self.path.display()));
    }

    /// Writes what is held back; says why the log is not whole, if so.
    pub fn finish(mut self) -> Option<String> {
        if let Some(Err(error)) = self.file.as_mut().map(Write::flush) {
            self.stop(&error);
        }
        self.stopped
    }
}
