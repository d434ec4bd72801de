//! The civil clock as foxy sees it, moved while foxy runs. Debian's `faketime` does that; without
//! it the clock stays.

use crate::support::black_box::variable;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where Debian has the library, by machine.
const LIBRARIES: &str = "/usr/lib";

/// A clock for one process after another.
pub struct MovedClock {
    library: PathBuf,
    file: PathBuf,
    /// How far it is ahead of the true time now, in seconds.
    offset: i64,
    /// How far it was at most since it was made.
    most: i64,
}

impl MovedClock {
    /// A clock that shows the true time; it is set by a file in `folder`. `None` without the
    /// library.
    pub fn new(folder: &Path) -> Option<Self> {
        let library = variable("FOXY_FAKETIME").map(PathBuf::from).or_else(library)?;
        let clock = Self { library, file: folder.join("clock"), offset: 0, most: 0 };
        clock.write();
        Some(clock)
    }

    /// Makes a command see this clock. Its monotonic clock stays what it is.
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

    /// Whether it shows less than it has shown before, but for the time that has passed.
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
