//! Saves readings of two clocks in each store's folder. The *wall clock* is the system's date and
//! time, and the *steady clock* never goes back. With the readings, stored responses do not become
//! younger if somebody sets the system's clock back while foxy is stopped.

use crate::failure::Failure;
use crate::serve::purge::list::is_same_file;
use crate::terminal::{self, Level};
use foxy_base::{WallTime, clock};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// Name of the file with the readings (saved times of two clocks) in a store's folder.
const NAME: &str = "foxy.clock";
const NEW_NAME: &str = "foxy.clock.new";
/// Interval between saved readings (saved times of two clocks). After a crash, foxy knows the time
/// only to this precision.
const WRITE_INTERVAL: Duration = Duration::from_secs(60);
/// Interval between checks whether the wall clock was set back.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);
/// Largest change in milliseconds of the steady clock's lead over the wall clock since the last
/// saved readings (saved times of two clocks). After a larger change, foxy assumes that somebody
/// set the wall clock, and saves new readings.
const MAX_DRIFT_MS: u64 = 1000;
/// Longest lifetime of a response in seconds that a cache must represent (RFC 9111 §1.2.2). An
/// older response is always stale.
const MAX_LIFETIME_SECS: u64 = 1 << 31;
const MAGIC: &str = "foxy-clock-1";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Readings {
    steady: WallTime,
    civil: WallTime,
    /// Whether foxy stopped normally after this reading (saved times of two clocks). Then it stored
    /// nothing after the reading.
    is_last: bool,
}

impl Readings {
    fn now(is_last: bool) -> Self {
        let (civil, steady) = (clock::wall(), clock::steady());
        Self { steady, civil, is_last }
    }

    fn text(self) -> String {
        let state = if self.is_last { "stopped" } else { "running" };
        format!("{MAGIC} {} {} {state}\n", self.steady.0, self.civil.0)
    }

    fn parse(text: &str) -> Option<Self> {
        let mut words = text.strip_suffix('\n')?.split(' ');
        (words.next()? == MAGIC).then_some(())?;
        let mut time = || words.next()?.parse().ok().map(WallTime);
        let (steady, civil) = (time()?, time()?);
        let is_last = match words.next()? {
            "stopped" => true,
            "running" => false,
            _ => return None,
        };
        words.next().is_none().then_some(Self { steady, civil, is_last })
    }
}

/// The reading (saved times of two clocks) with which the steady clock starts in this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Resumed {
    steady: WallTime,
    /// Whether the wall clock was set back while foxy was stopped. foxy then cannot know how long
    /// it was stopped.
    went_back: bool,
}

/// Computes where the steady clock continues after the saved readings (saved times of two clocks).
/// `civil` is the present time of the wall clock. If that clock went back, the steady clock skips
/// so far that every stored response is stale.
fn resumed(kept: Option<Readings>, civil: WallTime) -> Resumed {
    let Some(kept) = kept else { return Resumed { steady: civil, went_back: false } };
    let lost = if kept.is_last { Duration::ZERO } else { WRITE_INTERVAL };
    let went_back = civil < kept.civil;
    let away =
        if went_back { Duration::from_secs(MAX_LIFETIME_SECS) } else { civil.since(kept.civil) };
    let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    let steady = kept.steady.0.saturating_add(millis(lost)).saturating_add(millis(away));
    Resumed { steady: WallTime(steady), went_back }
}

/// A store's folder, as opened at start-up. It shows whether another folder has replaced it.
struct Home {
    folder: PathBuf,
    opened: io::Result<File>,
}

impl Home {
    /// Writes the readings (saved times of two clocks) to the file. Fails if the folder was
    /// replaced after start-up.
    fn keep(&self, readings: Readings) -> io::Result<()> {
        let opened = self.opened.as_ref().map_err(|error| io::Error::from(error.kind()))?;
        if !is_same_file(&opened.metadata()?, &self.folder.metadata()?) {
            return Err(io::ErrorKind::NotFound.into());
        }
        let new = self.folder.join(NEW_NAME);
        let mut file = File::create(&new)?;
        file.write_all(readings.text().as_bytes())?;
        file.sync_data()?;
        fs::rename(new, self.folder.join(NAME))
    }
}

/// Returns the newest readings (saved times of two clocks) that the files in these folders have.
fn read<'a>(folders: impl Iterator<Item = &'a Path>) -> Option<Readings> {
    let read = |folder: &Path| Readings::parse(&fs::read_to_string(folder.join(NAME)).ok()?);
    folders.filter_map(read).max_by_key(|readings| readings.steady)
}

/// Moves the steady clock of a command forward to the time that it has for the store in `folder`,
/// which no foxy uses.
pub fn resume_at_rest(folder: &Path) {
    if let Some(Readings { steady, civil, .. }) = read([folder].into_iter()) {
        let now = steady.0.saturating_add(clock::wall().0.saturating_sub(civil.0));
        clock::resume(WallTime(now));
    }
}

/// The thread that saves readings (saved times of two clocks) at intervals.
pub struct KeptClock {
    stop: Sender<()>,
    thread: JoinHandle<()>,
}

impl KeptClock {
    /// Continues the steady clock from the readings (saved times of two clocks) in `folders`, and
    /// starts to save new readings there. Returns `None` if there are no folders.
    pub fn begin(folders: Vec<PathBuf>) -> Result<Option<Self>, Failure> {
        if folders.is_empty() {
            return Ok(None);
        }
        let Resumed { steady, went_back } =
            resumed(read(folders.iter().map(PathBuf::as_path)), clock::wall());
        clock::resume(steady);
        if went_back {
            terminal::report(
                Level::Warning,
                "foxy: the clock shows an earlier time than when foxy last ran: the age of stored \
                 responses is unknown, so foxy validates each response before it serves it",
            );
        }
        let home = |folder: PathBuf| Home { opened: File::open(&folder), folder };
        let homes: Vec<_> = folders.into_iter().map(home).collect();
        keep(&homes, false);
        let (stop, stopped) = channel();
        let watch = move || {
            let mut kept = Readings::now(false);
            while stopped.recv_timeout(LOOK_INTERVAL) == Err(RecvTimeoutError::Timeout) {
                let now = Readings::now(false);
                if must_be_kept(kept, now) {
                    keep(&homes, false);
                    kept = now;
                }
            }
            keep(&homes, true);
        };
        let thread = std::thread::Builder::new().name("clock".into()).spawn(watch);
        let thread = thread.map_err(|error| {
            Failure::Failed(format!("cannot start the thread that saves the clock: {error}"))
        })?;
        Ok(Some(Self { stop, thread }))
    }

    /// Saves the last readings (saved times of two clocks). The caller must not store anything
    /// after this call.
    pub fn end(self) {
        drop(self.stop);
        // If the thread panicked, the last readings (saved times of two clocks) are not saved. The
        // next start then behaves as after a crash.
        let _ended = self.thread.join();
    }
}

/// Returns whether the current readings (saved times of two clocks) must be saved: the saved
/// readings are too old, or somebody has set the wall clock.
fn must_be_kept(kept: Readings, now: Readings) -> bool {
    let ahead = |readings: Readings| readings.steady.0.saturating_sub(readings.civil.0);
    let was_set = ahead(kept).abs_diff(ahead(now)) > MAX_DRIFT_MS;
    was_set || now.steady.since(kept.steady) >= WRITE_INTERVAL
}

/// Writes the present readings (saved times of two clocks) to all folders. `is_last` marks the
/// readings at a normal stop. Ignores errors: if a reading is missing, the next start behaves as
/// after a crash. The store itself reports a failing disk.
fn keep(homes: &[Home], is_last: bool) {
    for home in homes {
        let _as_after_a_crash = home.keep(Readings::now(is_last));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: u64 = 86_400_000;
    const KEPT: Readings =
        Readings { steady: WallTime(90 * DAY), civil: WallTime(80 * DAY), is_last: true };

    #[test]
    fn only_whole_readings_are_read_back() {
        for is_last in [true, false] {
            let readings = Readings { is_last, ..KEPT };
            assert_eq!(Readings::parse(&readings.text()), Some(readings));
        }
        let text = KEPT.text();
        for length in 0..text.len() {
            assert_eq!(Readings::parse(&text[..length]), None, "{length}");
        }
        assert_eq!(Readings::parse(&format!("{text}{text}")), None);
        assert_eq!(Readings::parse("foxy-clock-2 1 1 stopped\n"), None);
    }

    #[test]
    fn time_in_which_foxy_did_not_run_counts() {
        let at = |kept, civil| resumed(kept, WallTime(civil));
        let resumed = |steady| Resumed { steady: WallTime(steady), went_back: false };
        assert_eq!(at(None, 5 * DAY), resumed(5 * DAY));
        assert_eq!(at(Some(KEPT), 80 * DAY), resumed(90 * DAY));
        assert_eq!(at(Some(KEPT), 83 * DAY), resumed(93 * DAY));
        let crashed = Readings { is_last: false, ..KEPT };
        assert_eq!(
            at(Some(crashed), 83 * DAY),
            resumed(93 * DAY + 60_000),
            "as much as may not have been kept"
        );
    }

    #[test]
    fn a_clock_that_went_back_makes_every_response_stale() {
        for civil in [0, 79 * DAY, 80 * DAY - 1] {
            let Resumed { steady, went_back } = resumed(Some(KEPT), WallTime(civil));
            assert!(went_back && MAX_LIFETIME_SECS >= foxy_rules::cache_control::LONGEST);
            assert_eq!(steady.since(KEPT.steady), Duration::from_secs(MAX_LIFETIME_SECS));
        }
    }

    #[test]
    fn readings_are_kept_every_minute_and_when_the_clock_was_set() {
        let after = |steady: u64, civil: u64| {
            let now = Readings {
                steady: WallTime(KEPT.steady.0 + steady),
                civil: WallTime(KEPT.civil.0 + civil),
                is_last: false,
            };
            must_be_kept(KEPT, now)
        };
        assert!(!after(1000, 1000) && !after(59_000, 58_500));
        assert!(after(60_000, 60_000));
        assert!(after(1000, 0) || after(1001, 0));
        assert!(after(2 * DAY, 1000));
    }

    #[test]
    fn the_newest_readings_count_and_a_replaced_folder_gets_none() {
        let folders = [(); 3].map(|()| tempfile::tempdir().expect("a folder"));
        let homes = folders.each_ref().map(|folder| Home {
            folder: folder.path().to_owned(),
            opened: File::open(folder.path()),
        });
        let newer = Readings { steady: WallTime(91 * DAY), ..KEPT };
        homes[0].keep(newer).expect("kept");
        homes[1].keep(KEPT).expect("kept");
        assert_eq!(read(folders.iter().map(tempfile::TempDir::path)), Some(newer));
        let elsewhere =
            Home { folder: folders[2].path().to_owned(), opened: File::open(folders[0].path()) };
        assert!(elsewhere.keep(newer).is_err());
        assert_eq!(read([folders[2].path()].into_iter()), None);
    }
}
