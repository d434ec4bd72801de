//! The purge list on disk: a copy in each store's folder, all written by one thread. A purge takes
//! effect as soon as one copy is durable. If no copy can be written, foxy refuses the purge.
//! `foxy_proxy::cache::purge::journal` defines the file format.

use crate::failure::Failure;
use crate::serve::listeners::patiently;
use crate::serve::purge::list::{self, FoundList, NAME, PurgeList, WriteError};
use crate::serve::purge::series::{
    Continued, ForgottenReason, FreshNames, ListedStore, SeriesPlace, judge,
};
use crate::terminal::{self, Level};
use foxy_base::random::split_mix;
use foxy_proxy::cache::purge::journal::Series;
use foxy_proxy::cache::purge::{
    NotPurged, Order, PurgeBook, PurgeKeeper, PurgeReply, Purges, Rule, number,
};
use foxy_store::Beginning;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

const MAX_WAITING_PURGES: usize = 1024;
/// Interval between checks whether the files with the lists of purges still exist.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// A store whose folder contains a copy of the purge list.
pub struct BesideStore {
    pub folder: PathBuf,
    pub place: SeriesPlace,
    pub beginning: Option<Beginning>,
}

/// The last write error of each store's list. `None` after a successful write.
#[derive(Clone, Default)]
struct ListHealth(Arc<Mutex<Vec<Option<WriteError>>>>);

impl ListHealth {
    fn trouble(&self, store: usize) -> Option<String> {
        let seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let why = seen.get(store).copied().flatten()?;
        Some(format!(
            "{NAME} cannot be written: {why}; foxy refuses purges unless another store can record \
             them; check the folder and its disk"
        ))
    }

    fn set(&self, store: usize, trouble: Option<WriteError>) {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if store >= seen.len() {
            seen.resize(store + 1, None);
        }
        seen[store] = trouble;
    }
}

/// Opens the purge lists in the folders of `stores`. `fresh` has the numbers for a new series
/// (numbering of purges). `continued` gets the random number of the series and the number of its
/// last purge, and returns the number after which the series continues. Fails if another process
/// has a list open, or if an outdated list can be neither replaced nor removed.
pub fn open(
    stores: &[BesideStore],
    fresh: FreshNames,
    continued: impl FnOnce((u64, u64)) -> Result<u64, Failure>,
) -> Result<(Purges, Lists), Failure> {
    if stores.is_empty() {
        return Ok((Purges::in_memory(), Lists::default()));
    }
    let read = |store: &BesideStore| {
        let found = patiently(|_| true, || list::read(&store.folder));
        let may_hold = store.beginning.is_some_and(Beginning::may_hold_something);
        found
            .map(|found| ListedStore { place: store.place, may_hold, found })
            .map_err(|why| refusal(&store.folder, why))
    };
    let found = stores.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    let Continued { journal, forgotten } = judge(&found, fresh);
    report(stores, &found, forgotten);
    let Series { era, set, .. } = journal.series;
    let latest = continued((era, journal.latest))?;
    let book = Arc::new(PurgeBook::new(era, latest, &journal.rules));
    let series = Series { era, set, place: 0 };
    let listed = |store: &BesideStore| Listed {
        list: PurgeList::new(
            store.folder.clone(),
            Series { place: store.place.complete, ..series },
        ),
        place: store.place,
        is_out: false,
    };
    let health = ListHealth::default();
    let mut writer = Writer {
        book: Arc::clone(&book),
        lists: stores.iter().map(listed).collect(),
        series,
        health: health.clone(),
    };
    for (number, store) in found.iter().enumerate() {
        let series = Series { place: store.place.complete, ..series };
        let is_outdated = store.found.sound().is_some_and(|journal| journal.series != series);
        if let Err(why) = writer.keep(number, &[])
            && (why == WriteError::InUse
                || (is_outdated && writer.lists[number].list.remove().is_err()))
        {
            return Err(refusal(&stores[number].folder, why));
        }
    }
    let (sender, receiver) = sync_channel(MAX_WAITING_PURGES);
    let thread =
        std::thread::Builder::new().name("purges".into()).spawn(move || writer.run(&receiver));
    thread.map_err(|error| {
        Failure::Failed(format!("cannot start the thread that saves purges on disk: {error}"))
    })?;
    let keeper = Arc::new(Keeper(sender));
    let has_forgotten = forgotten.is_some();
    let lists = Lists { health, keeper: Arc::downgrade(&keeper), has_forgotten };
    Ok((Purges { book, keeper, fleet: None }, lists))
}

fn refusal(folder: &Path, why: WriteError) -> Failure {
    let right = match why {
        WriteError::InUse => "stop the other foxy, or name another folder with --store",
        WriteError::Lost | WriteError::OtherFolder | WriteError::System(_) => {
            "the file contains an outdated list of purges, and foxy can neither \
             replace nor remove it; remove the file, or give this user the permission"
        }
    };
    Failure::Unusable(format!("store {}: {why}; {right}", folder.join(NAME).display()))
}

/// Warns about lost purge lists, and about stored responses that foxy discards because of them.
fn report(stores: &[BesideStore], listed: &[ListedStore], forgotten: Option<ForgottenReason>) {
    for (store, ListedStore { found, may_hold, .. }) in stores.iter().zip(listed) {
        let text = match (forgotten, found) {
            (Some(ForgottenReason::NoList), _) if !may_hold => continue,
            (Some(why), _) => format!(
                "{why}; foxy discards the stored responses, because purges or newer versions may \
                 be missing"
            ),
            (None, FoundList::Unsound(why)) => {
                format!("foxy rebuilds the purge list from another store's list: {why}")
            }
            (None, FoundList::Nothing) if *may_hold => {
                "the purge list is missing; foxy rebuilds the list from another store's list".into()
            }
            (None, _) => continue,
        };
        let folder = store.folder.display();
        terminal::report(Level::Warning, &format!("foxy: store {folder}: {text}"));
    }
}

struct PurgeWish {
    orders: Vec<Order>,
    reply: PurgeReply,
}

enum ListTask {
    Purge(PurgeWish),
    TakeOut(Vec<usize>, WhenDurable),
}

type WhenDurable = Box<dyn FnOnce() + Send>;

struct Keeper(SyncSender<ListTask>);

impl PurgeKeeper for Keeper {
    fn purge(&self, orders: Vec<Order>, reply: PurgeReply) {
        let (task, why) = match self.0.try_send(ListTask::Purge(PurgeWish { orders, reply })) {
            Ok(()) => return,
            Err(TrySendError::Full(task)) => (task, NotPurged::Busy),
            Err(TrySendError::Disconnected(task)) => (task, NotPurged::Stopping),
        };
        if let ListTask::Purge(wish) = task {
            (wish.reply)(Err(why));
        }
    }
}

/// Handle to the purge lists, for the admin server and the health check.
#[derive(Clone, Default)]
pub struct Lists {
    health: ListHealth,
    /// Sends tasks to the thread that writes the lists. The `Keeper` is gone if there are no
    /// stores, or if the proxy accepts no more purges.
    keeper: Weak<Keeper>,
    /// Whether foxy discarded the stored responses at the start, because lists were missing.
    pub has_forgotten: bool,
}

impl Lists {
    pub fn trouble(&self, store: usize) -> Option<String> {
        self.health.trouble(store)
    }

    /// Records in the lists of all other stores that `stores` are out of use. Calls `when_durable`
    /// when all these lists are on disk. Does not call it if a list cannot be written or too many
    /// tasks wait; the caller may retry.
    pub fn take_out(&self, stores: Vec<usize>, when_durable: WhenDurable) {
        if let Some(keeper) = self.keeper.upgrade() {
            drop(keeper.0.try_send(ListTask::TakeOut(stores, when_durable)));
        }
    }
}

struct Listed {
    list: PurgeList,
    place: SeriesPlace,
    /// Whether the store is out of use. foxy then no longer writes the store's list of purges.
    is_out: bool,
}

struct Writer {
    book: Arc<PurgeBook>,
    lists: Vec<Listed>,
    /// Identity of the lists: the numbering of purges (era) and the set of stores. Each list also
    /// records the position of its store.
    series: Series,
    health: ListHealth,
}

impl Writer {
    /// Runs until all senders of tasks are gone. Writes all purges that wait at the same time
    /// together.
    fn run(mut self, tasks: &Receiver<ListTask>) {
        loop {
            match tasks.recv_timeout(LOOK_INTERVAL) {
                Ok(first) => {
                    let mut wishes = Vec::new();
                    let waiting = tasks.try_iter().take(MAX_WAITING_PURGES);
                    for task in std::iter::once(first).chain(waiting) {
                        match task {
                            ListTask::Purge(wish) => wishes.push(wish),
                            ListTask::TakeOut(stores, when_durable) => {
                                self.take_out(&stores, when_durable)
                            }
                        }
                    }
                    self.carry_out(wishes);
                }
                Err(RecvTimeoutError::Timeout) => self.restore_missing_lists(),
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    fn restore_missing_lists(&mut self) {
        for number in self.in_use() {
            let list = &self.lists[number].list;
            let (is_there, fault) = (list.is_there(), list.fault());
            if !is_there && self.keep(number, &[]).is_ok() {
                let folder = self.lists[number].list.folder().display();
                let text = format!("foxy: store {folder}: {NAME} {fault}, so foxy wrote it again");
                terminal::report(Level::Warning, &text);
            }
        }
    }

    fn in_use(&self) -> Vec<usize> {
        (0..self.lists.len()).filter(|&number| !self.lists[number].is_out).collect()
    }

    /// Takes `stores` out of use: gives the set of the other stores a new number, and writes it to
    /// their lists. The lists of `stores` keep the old number, so the next start recognizes them as
    /// outdated.
    fn take_out(&mut self, stores: &[usize], when_durable: WhenDurable) {
        let mut state = self.series.set;
        self.series.set = split_mix(&mut state);
        let remaining: Vec<_> =
            self.in_use().into_iter().filter(|number| !stores.contains(number)).collect();
        let mut are_durable = !remaining.is_empty();
        for number in remaining {
            let Listed { list, place, .. } = &mut self.lists[number];
            list.begin(Series { place: place.reduced, ..self.series });
            are_durable &= self.keep(number, &[]).is_ok();
        }
        if are_durable {
            for &number in stores {
                self.lists[number].is_out = true;
                self.health.set(number, None);
            }
            when_durable();
        }
    }

    /// Writes the purges `rules` durably to the list of the store with this number. `self.book` has
    /// all earlier purges.
    fn keep(&mut self, number: usize, rules: &[Rule]) -> Result<(), WriteError> {
        let latest = self.book.latest() + rules.len() as u64;
        let kept = self.lists[number].list.keep(|| self.book.rules(), latest, rules);
        self.health.set(number, kept.err());
        kept
    }

    fn carry_out(&mut self, wishes: Vec<PurgeWish>) {
        let before = self.book.latest();
        let orders: Vec<Order> =
            wishes.iter().flat_map(|wish| wish.orders.iter().copied()).collect();
        let rules = number(&orders, before);
        let mut is_durable = false;
        for list in self.in_use() {
            is_durable |= self.keep(list, &rules).is_ok();
        }
        if is_durable {
            self.book.apply(&rules);
        }
        let mut moment = before;
        for PurgeWish { orders, reply } in wishes {
            moment += orders.len() as u64;
            reply(if is_durable { Ok(moment) } else { Err(NotPurged::NotDurable) });
        }
    }
}

#[cfg(test)]
#[path = "journal_tests.rs"]
mod tests;
