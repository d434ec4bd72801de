//! Changes the system's date and time as foxy sees them (the wall clock) while foxy runs. Uses the
//! library of Debian's package `faketime`. Without the library, the clock stays right.

use crate::support::black_box::variable;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Folder in which the library is searched, in a subfolder for each machine type.
const LIBRARIES: &str = "/usr/lib";

/// A clock that successive foxy processes see.
pub struct MovedClock {
    library: PathBuf,
    file: PathBuf,
    /// Number of seconds by which the clock is ahead of the true time now.
    offset: i64,
    /// Largest number of seconds by which the clock has been ahead.
    most: i64,
}

impl MovedClock {
    /// Creates a clock that at first shows the true time. A file in `folder` controls the clock.
    /// Returns `None` if the library `faketime` is not installed.
    pub fn new(folder: &Path) -> Option<Self> {
        let library = variable("FOXY_FAKETIME").map(PathBuf::from).or_else(library)?;
        let clock = Self { library, file: folder.join("clock"), offset: 0, most: 0 };
        clock.write();
        Some(clock)
    }

    /// Makes a command see this clock. The command's monotonic clock stays unchanged.
    pub fn show_to(&self, command: &mut Command) {
        command.env("LD_PRELOAD", &self.library).env("FAKETIME_TIMESTAMP_FILE", &self.file);
        for name in [
            "FAKETIME_NO_CACHE",
            "FAKETIME_DONT_FAKE_MONOTONIC",
            "DONT_FAKE_MONOTONIC",
            "NO_FAKE_STAT",
        ] {
            command.env(name, "1");
        }
    }

    pub fn set(&mut self, offset: i64) {
        (self.offset, self.most) = (offset, self.most.max(offset));
        self.write();
    }

    /// Whether the clock was set back: it is less far ahead than at an earlier time.
    pub const fn is_behind(&self) -> bool {
        self.offset < self.most
    }

    fn write(&self) {
        let new = self.file.with_extension("new");
        std::fs::write(&new, format!("{:+}\n", self.offset)).expect("writable");
        std::fs::rename(&new, &self.file).expect("renamed");
    }
}

fn library() -> Option<PathBuf> {
    let folders = std::fs::read_dir(LIBRARIES).ok()?.filter_map(Result::ok);
    let files = folders.map(|folder| folder.path().join("faketime/libfaketimeMT.so.1"));
    files.filter(|file| file.exists()).min()
}
