//! What the clocks showed last, kept in each store's folder, so that no stored response gets
//! younger when the civil clock is set back while foxy does not run.

use super::purge_list::is_one;
use crate::failure::Failure;
use crate::terminal::{self, Level};
use foxy_base::{WallTime, clock};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// The file's name in a store's folder.
const NAME: &str = "foxy.clock";
/// Its name while it is written.
const NEW: &str = "foxy.clock.new";
/// How often it is written: what is seen of the clocks in less is lost by a crash.
const KEEP_EVERY: Duration = Duration::from_secs(60);
/// How often it is looked whether the civil clock was set back.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// By how much a civil clock that was not set back may differ from the other between two looks, in
/// milliseconds.
const SLACK: u64 = 1000;
/// Seconds of the longest lifetime that a response can have (RFC 9111 §1.2.2): what is so old is
/// stale.
const LONGEST: u64 = 1 << 31;
/// What the file begins with.
const MAGIC: &str = "foxy-clock-1";

/// What the clocks showed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Readings {
    steady: WallTime,
    civil: WallTime,
    /// Whether foxy showed nothing to anybody after that.
    last: bool,
}

impl Readings {
    fn now(last: bool) -> Self {
        let (civil, steady) = (clock::wall(), clock::steady());
        Self { steady, civil, last }
    }

    fn text(self) -> String {
        let Self { steady, civil, last } = self;
        format!("{MAGIC} {} {} {}\n", steady.0, civil.0, if last { "stopped" } else { "running" })
    }

    fn parse(text: &str) -> Option<Self> {
        let mut words = text.strip_suffix('\n')?.split(' ');
        (words.next()? == MAGIC).then_some(())?;
        let mut time = || words.next()?.parse().ok().map(WallTime);
        let (steady, civil) = (time()?, time()?);
        let last = match words.next()? {
            "stopped" => true,
            "running" => false,
            _ => return None,
        };
        words.next().is_none().then_some(Self { steady, civil, last })
    }
}

/// What the steady clock begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Resumed {
    steady: WallTime,
    /// Whether the civil clock went back, so that nothing says how long foxy did not run.
    went_back: bool,
}

/// Goes on from what was kept, at a time of the civil clock.
fn resumed(kept: Option<Readings>, civil: WallTime) -> Resumed {
    let Some(kept) = kept else { return Resumed { steady: civil, went_back: false } };
    let lost = if kept.last { Duration::ZERO } else { KEEP_EVERY };
    let went_back = civil < kept.civil;
    let away = if went_back { Duration::from_secs(LONGEST) } else { civil.since(kept.civil) };
    let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    let steady = kept.steady.0.saturating_add(millis(lost)).saturating_add(millis(away));
    Resumed { steady: WallTime(steady), went_back }
}

/// A store's folder, as it was at the start.
struct Home {
    folder: PathBuf,
    opened: io::Result<File>,
}

impl Home {
    /// Writes the file, unless another folder is there by now.
    fn keep(&self, readings: Readings) -> io::Result<()> {
        let opened = self.opened.as_ref().map_err(|error| io::Error::from(error.kind()))?;
        if !is_one(&opened.metadata()?, &self.folder.metadata()?) {
            return Err(io::ErrorKind::NotFound.into());
        }
        let new = self.folder.join(NEW);
        let mut file = File::create(&new)?;
        file.write_all(readings.text().as_bytes())?;
        file.sync_data()?;
        fs::rename(new, self.folder.join(NAME))
    }
}

/// The newest of what is kept in these folders.
fn read<'a>(folders: impl Iterator<Item = &'a Path>) -> Option<Readings> {
    let read = |folder: &Path| Readings::parse(&fs::read_to_string(folder.join(NAME)).ok()?);
    folders.filter_map(read).max_by_key(|readings| readings.steady)
}

/// Keeps what the clocks show, on a thread of its own.
pub struct KeptClock {
    stop: Sender<()>,
    thread: JoinHandle<()>,
}

impl KeptClock {
    /// Has the steady clock go on from what is kept in these folders, and keeps there what the
    /// clocks show. Nothing is kept where there is no folder.
    ///
    /// # Errors
    /// The thread cannot be started.
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
                "foxy: the clock shows an earlier time than when foxy last ran: how old the stored responses are is not known, \
                 so each is validated before it answers",
            );
        }
        let home = |folder: PathBuf| Home { opened: File::open(&folder), folder };
        let homes: Vec<_> = folders.into_iter().map(home).collect();
        keep(&homes, false);
        let (stop, stopped) = channel();
        let watch = move || {
            let mut kept = Readings::now(false);
            while stopped.recv_timeout(LOOK_EVERY) == Err(RecvTimeoutError::Timeout) {
                let now = Readings::now(false);
                if is_to_be_kept(kept, now) {
                    keep(&homes, false);
                    kept = now;
                }
            }
            keep(&homes, true);
        };
        let thread = std::thread::Builder::new().name("clock".into()).spawn(watch);
        let thread = thread.map_err(|error| {
            Failure::Failed(format!("cannot start the thread that keeps the clock: {error}"))
        })?;
        Ok(Some(Self { stop, thread }))
    }

    /// Keeps what the clocks show at the end. Nothing may be stored after it.
    pub fn end(self) {
        drop(self.stop);
        // A thread that panicked has kept nothing: that is as after a crash.
        let _ended = self.thread.join();
    }
}

/// Whether what was kept is too old, or the civil clock was set back since.
fn is_to_be_kept(kept: Readings, now: Readings) -> bool {
    let ahead = |readings: Readings| readings.steady.0.saturating_sub(readings.civil.0);
    let was_set = ahead(kept).abs_diff(ahead(now)) > SLACK;
    let steps = now.steady.since(kept.steady);
    was_set || steps >= KEEP_EVERY
}

/// Writes all files. One that cannot be written is as after a crash; what is wrong with its disk is
/// found out by its store.
fn keep(homes: &[Home], last: bool) {
    for home in homes {
        let _as_after_a_crash = home.keep(Readings::now(last));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: u64 = 86_400_000;
    const KEPT: Readings =
        Readings { steady: WallTime(90 * DAY), civil: WallTime(80 * DAY), last: true };

    #[test]
    fn what_is_written_is_read_back_and_nothing_else_is() {
        for last in [true, false] {
            let readings = Readings { last, ..KEPT };
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
        let crashed = Readings { last: false, ..KEPT };
        assert_eq!(
            at(Some(crashed), 83 * DAY),
            resumed(93 * DAY + 60_000),
            "as much as may not have been kept"
        );
    }

    #[test]
    fn a_clock_that_went_back_makes_everything_as_old_as_can_be() {
        for civil in [0, 79 * DAY, 80 * DAY - 1] {
            let Resumed { steady, went_back } = resumed(Some(KEPT), WallTime(civil));
            assert!(went_back && LONGEST >= foxy_rules::cache_control::LONGEST);
            assert_eq!(steady.since(KEPT.steady), Duration::from_secs(LONGEST));
        }
    }

    #[test]
    fn it_is_kept_now_and_then_and_at_once_when_the_civil_clock_was_set_back() {
        let after = |steady: u64, civil: u64| {
            let now = Readings {
                steady: WallTime(KEPT.steady.0 + steady),
                civil: WallTime(KEPT.civil.0 + civil),
                last: false,
            };
            is_to_be_kept(KEPT, now)
        };
        assert!(!after(1000, 1000) && !after(59_000, 58_500));
        assert!(after(60_000, 60_000));
        assert!(after(1000, 0) || after(1001, 0));
        assert!(after(2 * DAY, 1000));
    }

    #[test]
    fn of_several_folders_the_newest_counts_and_one_that_is_another_by_now_gets_nothing() {
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
