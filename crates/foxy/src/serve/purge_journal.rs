//! The list of purges on disk: a copy in each store's folder, appended to by a thread of its own and written anew when
//! it has grown. A purge is in force once one copy has it for good; one that no copy takes is refused. What the bytes
//! mean is in `foxy_proxy::purge::journal`.

use crate::failure::Failure;
use crate::terminal::{self, Level};
use foxy_proxy::purge::journal::{self, Journal};
use foxy_proxy::purge::{NotPurged, Order, PurgeBook, PurgeKeeper, PurgeReply, Purges, Rule, number};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};

/// The list's name in a store's folder.
const NAME: &str = "foxy.purges";
/// Its name while it is written anew.
const NEW: &str = "foxy.purges.new";
/// Bytes it may grow by before it is written anew, beyond what it had then.
const GROWTH: u64 = 1 << 20;
/// A list larger than this is none of ours.
const SIZE_LIMIT: u64 = 256 << 20;
/// Purges that may wait for the disk.
const WAITING: usize = 1024;

/// Opens the lists in these folders. `era` names a new series of purges, where there is none to go on with.
///
/// # Errors
/// The list's thread cannot be started.
pub fn open(folders: &[PathBuf], era: u64) -> Result<Purges, Failure> {
    if folders.is_empty() {
        return Ok(Purges::in_memory());
    }
    let book = Arc::new(book(folders, era));
    let mut writer =
        Writer { book: Arc::clone(&book), copies: folders.iter().map(|folder| Copy::new(folder)).collect() };
    for copy in &mut writer.copies {
        copy.keep(&writer.book, &[]);
    }
    let (sender, receiver) = sync_channel(WAITING);
    let thread = std::thread::Builder::new().name("purges".into()).spawn(move || writer.run(&receiver));
    thread.map_err(|error| Failure::Failed(format!("cannot start the thread that keeps purges: {error}")))?;
    Ok(Purges { book, keeper: Arc::new(Keeper(sender)) })
}

/// All that the copies know of the first series found.
fn book(folders: &[PathBuf], new_era: u64) -> PurgeBook {
    let mut found: Option<Journal> = None;
    for folder in folders {
        let forgotten = |why: &str| {
            let text = format!(
                "foxy: store {}: {why}; what is stored there is forgotten, as purges of it may be missing",
                folder.display()
            );
            terminal::report(Level::Warning, &text);
        };
        match (read(&folder.join(NAME)), &mut found) {
            (Ok(None), _) => {}
            (Ok(Some(journal)), None) => found = Some(journal),
            (Ok(Some(journal)), Some(first)) if journal.era == first.era => {
                first.latest = first.latest.max(journal.latest);
                first.rules.extend(journal.rules);
            }
            (Ok(Some(_)), Some(_)) => forgotten("its list of purges is not that of the stores before it"),
            (Err(why), None) => forgotten(&format!("its list of purges cannot be relied on: {why}")),
            (Err(why), Some(_)) => {
                let folder = folder.display();
                let text = format!("foxy: store {folder}: its list of purges is written anew: {why}");
                terminal::report(Level::Warning, &text);
            }
        }
    }
    let journal = found.unwrap_or(Journal { era: new_era, latest: 0, rules: Vec::new() });
    PurgeBook::new(journal.era, journal.latest, &journal.rules)
}

/// Reads one copy; none where there is no file.
fn read(path: &Path) -> Result<Option<Journal>, String> {
    let metadata = match path.symlink_metadata() {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.to_string()),
    };
    if !metadata.is_file() || metadata.len() > SIZE_LIMIT {
        return Err("it is not a file of foxy's".into());
    }
    let bytes = fs::read(path).map_err(|error| error.to_string())?;
    journal::read(&bytes).map(Some).map_err(|error| error.to_string())
}

/// A wish that waits for the disk.
struct Wish {
    orders: Vec<Order>,
    reply: PurgeReply,
}

struct Keeper(SyncSender<Wish>);

impl PurgeKeeper for Keeper {
    fn purge(&self, orders: Vec<Order>, reply: PurgeReply) {
        match self.0.try_send(Wish { orders, reply }) {
            Ok(()) => {}
            Err(TrySendError::Full(wish)) => (wish.reply)(Err(NotPurged::Busy)),
            Err(TrySendError::Disconnected(wish)) => (wish.reply)(Err(NotPurged::Stopping)),
        }
    }
}

struct Writer {
    book: Arc<PurgeBook>,
    copies: Vec<Copy>,
}

impl Writer {
    /// Carries out wishes until nobody can have any more. All that wait are made durable together.
    fn run(mut self, wishes: &Receiver<Wish>) {
        while let Ok(first) = wishes.recv() {
            let waiting: Vec<Wish> = std::iter::once(first).chain(wishes.try_iter().take(WAITING)).collect();
            self.carry_out(waiting);
        }
    }

    fn carry_out(&mut self, wishes: Vec<Wish>) {
        let before = self.book.latest();
        let orders: Vec<Order> = wishes.iter().flat_map(|wish| wish.orders.iter().copied()).collect();
        let rules = number(&orders, before);
        let kept: Vec<bool> = self.copies.iter_mut().map(|copy| copy.keep(&self.book, &rules)).collect();
        let durable = kept.contains(&true);
        if durable {
            self.book.apply(&rules);
        }
        let mut moment = before;
        for Wish { orders, reply } in wishes {
            moment += orders.len() as u64;
            reply(if durable { Ok(moment) } else { Err(NotPurged::NotDurable) });
        }
    }
}

/// The list in one folder.
struct Copy {
    folder: PathBuf,
    /// None while the file cannot be relied on; it is written anew then.
    open: Option<Open>,
    /// Whether it was said that it cannot be written.
    complained: bool,
}

struct Open {
    file: File,
    /// The number of its next block.
    next: u32,
    /// Its length.
    bytes: u64,
    /// Its length when it was written anew.
    anew: u64,
}

impl Copy {
    fn new(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), open: None, complained: false }
    }

    /// Makes rules durable, which follow those of the book. Says whether they are.
    fn keep(&mut self, book: &PurgeBook, rules: &[Rule]) -> bool {
        let latest = book.latest() + rules.len() as u64;
        let result = match self.open.take() {
            Some(open) if open.bytes <= 2 * open.anew + GROWTH => open.append(book.era(), latest, rules),
            _ => {
                let mut all = book.rules();
                all.extend_from_slice(rules);
                self.write_anew(book.era(), latest, &all)
            }
        };
        match result {
            Ok(open) => self.open = Some(open),
            Err(error) if !self.complained => {
                let path = self.folder.join(NAME);
                let text = format!(
                    "foxy: {}: cannot be written: {error}; purges are not kept there until it can",
                    path.display()
                );
                terminal::report(Level::Warning, &text);
            }
            Err(_) => {}
        }
        self.complained = self.open.is_none();
        self.open.is_some()
    }

    fn write_anew(&self, era: u64, latest: u64, rules: &[Rule]) -> io::Result<Open> {
        let (new, path) = (self.folder.join(NEW), self.folder.join(NAME));
        let mut bytes = Vec::new();
        let next = journal::append(&mut bytes, 0, era, latest, rules);
        match fs::remove_file(&new) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file = OpenOptions::new().write(true).create_new(true).open(&new)?;
        file.write_all(&bytes)?;
        file.sync_all()?;
        fs::rename(&new, &path)?;
        File::open(&self.folder)?.sync_all()?;
        let length = bytes.len() as u64;
        Ok(Open { file, next, bytes: length, anew: length })
    }
}

impl Open {
    fn append(mut self, era: u64, latest: u64, rules: &[Rule]) -> io::Result<Self> {
        let mut bytes = Vec::new();
        self.next = journal::append(&mut bytes, self.next, era, latest, rules);
        self.file.write_all_at(&bytes, self.bytes)?;
        self.file.sync_data()?;
        self.bytes += bytes.len() as u64;
        Ok(self)
    }
}

#[cfg(test)]
#[path = "purge_journal_tests.rs"]
mod tests;
