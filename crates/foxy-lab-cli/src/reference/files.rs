//! The disk cache of the reference proxies. It stores a file for each answer, in one of 256 folders
//! that a hash of the URL chooses. The variant for CERN has a folder for each server, with a text
//! file as index. The cache never evicts.

use super::message::WantedUrl;
use foxy_base::random::split_mix;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

const MARK: &str = "foxy-reference";
const LINES: &str = "index";

#[derive(Debug)]
pub struct Files {
    folder: PathBuf,
    scan: bool,
    /// The counter that makes the names of temporary files unique.
    written: AtomicU64,
}

impl Files {
    pub fn open(folder: &Path, scan: bool) -> io::Result<Self> {
        fs::create_dir_all(folder)?;
        let mark = folder.join(MARK);
        if !mark.exists() && fs::read_dir(folder)?.next().is_some() {
            return Err(io::Error::new(
                io::ErrorKind::AlreadyExists,
                "the folder holds other files; name an empty folder",
            ));
        }
        fs::write(mark, "")?;
        Ok(Self { folder: folder.into(), scan, written: AtomicU64::new(0) })
    }

    pub fn find(&self, wanted: &WantedUrl, now: u64) -> Option<Vec<u8>> {
        if self.scan && !self.is_listed(wanted, now) {
            return None;
        }
        self.read(wanted, now)
    }

    pub fn read(&self, wanted: &WantedUrl, now: u64) -> Option<Vec<u8>> {
        let mut file = BufReader::new(File::open(self.place(wanted)).ok()?);
        let mut line = String::new();
        file.read_line(&mut line).ok()?;
        let (expires, url) = line.trim_end().split_once(' ')?;
        if url != wanted.url || expires.parse::<u64>().ok()? <= now {
            return None;
        }
        let mut answer = Vec::new();
        file.read_to_end(&mut answer).ok()?;
        Some(answer)
    }

    /// Stores an answer: writes a temporary file and renames it, so that readers never see an
    /// incomplete answer.
    pub fn keep(&self, wanted: &WantedUrl, answer: &[u8], expires: u64) -> io::Result<()> {
        let place = self.place(wanted);
        let temporary = self.write_temporary(&place, wanted, answer, expires)?;
        fs::rename(temporary, &place)?;
        self.list(wanted, expires)
    }

    /// Stores an answer as Apache 1.3 did: writes a temporary file, copies it, and reads the answer
    /// back from the copy. Returns this answer.
    pub fn keep_in_two_phases(
        &self,
        wanted: &WantedUrl,
        answer: &[u8],
        expires: u64,
    ) -> io::Result<Vec<u8>> {
        let place = self.place(wanted);
        let temporary = self.write_temporary(&place, wanted, answer, expires)?;
        // Writes the copy under a temporary name first. Otherwise concurrent readers could see an
        // incomplete answer.
        let mut copy = temporary.clone().into_os_string();
        copy.push("-copy");
        fs::copy(&temporary, &copy)?;
        fs::rename(copy, &place)?;
        fs::remove_file(temporary)?;
        self.list(wanted, expires)?;
        let read = self.read(wanted, 0);
        read.ok_or_else(|| {
            io::Error::new(io::ErrorKind::NotFound, "the answer that was just stored is missing")
        })
    }

    fn write_temporary(
        &self,
        place: &Path,
        wanted: &WantedUrl,
        answer: &[u8],
        expires: u64,
    ) -> io::Result<PathBuf> {
        let number = self.written.fetch_add(1, Ordering::Relaxed);
        let temporary = place.with_extension(format!("{}-{number}", std::process::id()));
        if let Some(folder) = place.parent() {
            fs::create_dir_all(folder)?;
        }
        let mut file = File::create(&temporary)?;
        file.write_all(format!("{expires} {}\n", wanted.url).as_bytes())?;
        file.write_all(answer)?;
        Ok(temporary)
    }

    fn place(&self, wanted: &WantedUrl) -> PathBuf {
        let hash = hash(&wanted.url);
        if self.scan {
            self.servers(wanted).join(format!("{hash:016x}"))
        } else {
            self.hashed(hash)
        }
    }

    fn hashed(&self, hash: u64) -> PathBuf {
        self.folder.join(format!("{:02x}", hash & 0xff)).join(format!("{hash:016x}"))
    }

    fn servers(&self, wanted: &WantedUrl) -> PathBuf {
        let name: String = wanted
            .authority
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() || c == '.' { c } else { '_' })
            .collect();
        self.folder.join(format!("server-{name}"))
    }

    fn is_listed(&self, wanted: &WantedUrl, now: u64) -> bool {
        let Ok(file) = File::open(self.servers(wanted).join(LINES)) else { return false };
        BufReader::new(file).lines().map_while(Result::ok).any(|line| {
            let mut fields = line.split(' ');
            let (Some(expires), Some(url)) = (fields.next(), fields.next()) else { return false };
            expires.parse::<u64>().is_ok_and(|expires| expires > now) && url == wanted.url
        })
    }

    /// Appends the answer to the text index. Each line is a single write, so lines of several
    /// processes do not mix.
    fn list(&self, wanted: &WantedUrl, expires: u64) -> io::Result<()> {
        if !self.scan {
            return Ok(());
        }
        let mut file =
            OpenOptions::new().create(true).append(true).open(self.servers(wanted).join(LINES))?;
        file.write_all(format!("{expires} {}\n", wanted.url).as_bytes())
    }
}

/// Returns the hash of the URL, which is the file name. Two URLs can have the same hash, so the
/// file also contains the URL.
fn hash(url: &str) -> u64 {
    url.bytes().fold(0, |hash, byte| {
        let mut state = hash ^ u64::from(byte);
        split_mix(&mut state)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(url: &str) -> WantedUrl {
        WantedUrl { url: url.into(), authority: "a:80".into(), text: Vec::new(), reload: false }
    }

    #[test]
    fn what_was_kept_is_found_until_it_expires_however_it_is_found_and_written() {
        for (scan, two_phase) in [(false, false), (false, true), (true, false), (true, true)] {
            let folder = tempfile::tempdir().expect("a folder");
            let files = Files::open(folder.path(), scan).expect("opened");
            let (one, other) = (wanted("http://a/1"), wanted("http://a/2"));
            if two_phase {
                assert_eq!(
                    files.keep_in_two_phases(&one, b"answer", 100).expect("kept"),
                    b"answer"
                );
            } else {
                files.keep(&one, b"answer", 100).expect("kept");
            }
            assert_eq!(files.find(&one, 99).as_deref(), Some(&b"answer"[..]));
            assert_eq!((files.find(&one, 100), files.find(&other, 99)), (None, None));
            let again = Files::open(folder.path(), scan).expect("its own folder");
            assert_eq!(again.find(&one, 99).as_deref(), Some(&b"answer"[..]));
        }
    }

    #[test]
    fn an_answer_without_its_line_is_not_found_by_reading_the_lines() {
        let folder = tempfile::tempdir().expect("a folder");
        let files = Files::open(folder.path(), true).expect("opened");
        files.keep(&wanted("http://a/1"), b"answer", 100).expect("kept");
        let lines = files.servers(&wanted("http://a/1")).join(LINES);
        assert_eq!(fs::read_to_string(&lines).expect("there"), "100 http://a/1\n");
        fs::write(lines, "100 http://a/2\n").expect("written");
        assert_eq!(files.find(&wanted("http://a/1"), 99), None);
    }

    #[test]
    fn a_strangers_folder_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("letter"), "dear").expect("written");
        let error = Files::open(folder.path(), false).expect_err("refused");
        assert!(error.to_string().contains("name an empty folder"), "{error}");
    }
}
