//! Writes a file under a temporary name. The file gets its final name only when it is complete.

use foxy_cli::failure::Failure;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Writes the file `path` with `content`. If `content` fails or `stop` becomes true, an older file
/// stays as it is. A path that is no regular file, such as a pipe, is written directly.
pub fn write(
    path: &Path,
    stop: &AtomicBool,
    content: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), Failure> {
    let target = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let is_special = fs::metadata(&target).is_ok_and(|data| !data.is_file());
    let place = if is_special { target.clone() } else { temporary(&target) };
    let file = File::create(&place).map_err(|error| {
        let path = path.display();
        Failure::Unusable(format!(
            "{path}: cannot be created: {error}; name a file in a folder that can be written to"
        ))
    })?;
    let mut file = BufWriter::new(Stoppable { file, stop });
    let written = content(&mut file).and_then(|()| file.flush());
    let renamed =
        written.and_then(|()| if is_special { Ok(()) } else { fs::rename(&place, &target) });
    renamed.map_err(|error| {
        // The buffered rest must not be written again after the error.
        drop(file.into_parts());
        if !is_special {
            let _half_a_file = fs::remove_file(&place);
        }
        let path = path.display();
        Failure::Failed(if stop.load(Relaxed) {
            format!("{path}: stopped by a signal; the file is not written")
        } else {
            format!("{path}: cannot be written: {error}; is the disk full?")
        })
    })
}

fn temporary(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".part");
    path.with_file_name(name)
}

/// A file whose writes fail after a signal.
struct Stoppable<'a> {
    file: File,
    stop: &'a AtomicBool,
}

impl Write for Stoppable<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.stop.load(Relaxed) {
            return Err(io::Error::other("stopped by a signal"));
        }
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_a_signal_stops_leaves_the_older_file_and_no_other() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("g.csv");
        let stop = AtomicBool::new(false);
        assert!(write(&path, &stop, |file| file.write_all(b"old")).is_ok());
        let stopped = write(&path, &stop, |file| {
            file.write_all(&[b'n'; 100_000])?;
            stop.store(true, Relaxed);
            file.write_all(&[b'n'; 100_000])
        });
        let text = stopped.err().map(|failure| failure.to_string()).unwrap_or_default();
        assert!(text.contains("stopped by a signal"), "{text}");
        assert_eq!(fs::read(&path).ok().as_deref(), Some(&b"old"[..]));
        let names: Vec<_> = fs::read_dir(folder.path()).expect("a folder").collect();
        assert_eq!(names.len(), 1);
    }
}
