//! The list of purges on disk: a copy in each store's folder, appended to by a thread of its own. A
//! purge is in force once one copy has it for good; one that no copy takes is refused. What the
//! bytes mean is in `foxy_proxy::cache::purge::journal`, one copy in `purge_list`, which series
//! goes on in `purge_series`.

use super::listeners::patiently;
use super::purge_list::{self, FoundList, List, NAME, Unwritten};
use super::purge_series::{Forgotten, Fresh, Going, Seen, SeriesPlace, judge};
use crate::failure::Failure;
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

/// Purges that may wait for the disk.
const WAITING: usize = 1024;
/// How often it is looked whether the lists are still there.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// A store beside which a list is kept.
pub struct BesideStore {
    /// Its folder.
    pub folder: PathBuf,
    /// What it is among the others.
    pub place: SeriesPlace,
    /// How it came to be open.
    pub beginning: Option<Beginning>,
}

/// Why each list cannot be written just now, if it cannot.
#[derive(Clone, Default)]
struct ListHealth(Arc<Mutex<Vec<Option<Unwritten>>>>);

impl ListHealth {
    fn trouble(&self, store: usize) -> Option<String> {
        let seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let why = seen.get(store).copied().flatten()?;
        Some(format!(
            "{NAME} cannot be written: {why}; purges are refused unless another store's disk takes them; look at that folder \
             and its disk"
        ))
    }

    fn set(&self, store: usize, trouble: Option<Unwritten>) {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if store >= seen.len() {
            seen.resize(store + 1, None);
        }
        seen[store] = trouble;
    }
}

/// Opens the lists beside these stores.
///
/// # Errors
/// Another process has one, one that must not be believed any more can be neither written nor
/// removed, or the lists' thread cannot be started.
pub fn open(stores: &[BesideStore], fresh: Fresh) -> Result<(Purges, Lists), Failure> {
    if stores.is_empty() {
        return Ok((Purges::in_memory(), Lists::default()));
    }
    let read = |store: &BesideStore| {
        let found = patiently(|_| true, || purge_list::read(&store.folder));
        let holds = store.beginning.is_some_and(Beginning::may_hold_something);
        found
            .map(|found| Seen { place: store.place, holds, found })
            .map_err(|why| refusal(&store.folder, why))
    };
    let found = stores.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    let going = judge(&found, fresh);
    report(stores, &found, &going);
    let Going { journal, .. } = going;
    let Series { era, set, .. } = journal.series;
    let book = Arc::new(PurgeBook::new(era, journal.latest, &journal.rules));
    let list = |store: &BesideStore| {
        List::new(store.folder.clone(), Series { era, set, place: store.place.whole })
    };
    let lists = stores.iter().map(list).collect();
    let places = stores.iter().map(|store| store.place).collect();
    let out = vec![false; stores.len()];
    let series = Series { era, set, place: 0 };
    let health = ListHealth::default();
    let mut writer =
        Writer { book: Arc::clone(&book), lists, places, out, series, health: health.clone() };
    for (number, seen) in found.iter().enumerate() {
        let series = Series { era, set, place: seen.place.whole };
        let outdated = seen.found.sound().is_some_and(|journal| journal.series != series);
        match writer.keep(number, &[]) {
            Err(why)
                if why == Unwritten::InUse
                    || (outdated && writer.lists[number].remove().is_err()) =>
            {
                return Err(refusal(&stores[number].folder, why));
            }
            _ => {}
        }
    }
    let (sender, receiver) = sync_channel(WAITING);
    let thread =
        std::thread::Builder::new().name("purges".into()).spawn(move || writer.run(&receiver));
    thread.map_err(|error| {
        Failure::Failed(format!("cannot start the thread that keeps purges: {error}"))
    })?;
    let keeper = Arc::new(Keeper(sender));
    let lists = Lists { health, keeper: Arc::downgrade(&keeper) };
    Ok((Purges { book, keeper }, lists))
}

fn refusal(folder: &Path, why: Unwritten) -> Failure {
    let right = match why {
        Unwritten::InUse => "stop that one or name another folder with --store",
        Unwritten::Lost | Unwritten::OtherFolder | Unwritten::Failed(_) => {
            "it does not hold any more, as the stores were used otherwise since, and can be neither written anew nor removed; \
             remove it, or let this user do so"
        }
    };
    Failure::Unusable(format!("store {}: {why}; {right}", folder.join(NAME).display()))
}

/// Says what the lists cost, if they do.
fn report(stores: &[BesideStore], found: &[Seen], going: &Going) {
    let say = |text: String| terminal::report(Level::Warning, &text);
    for (store, Seen { found, holds: kept, .. }) in stores.iter().zip(found) {
        let (folder, kept) = (store.folder.display(), *kept);
        match (going.forgotten, found) {
            (Some(Forgotten::NoList), _) if !kept => {}
            (Some(why), _) => say(format!(
                "foxy: store {folder}: {why}; what is stored there is forgotten, as purges and changes of it may be missing"
            )),
            (None, FoundList::Unsound(why)) => {
                say(format!(
                    "foxy: store {folder}: its list of purges is written anew from another store's: {why}"
                ));
            }
            (None, FoundList::Nothing) if kept => say(format!(
                "foxy: store {folder}: its list of purges is not there, and written anew from another store's"
            )),
            (None, _) => {}
        }
    }
}

/// A wish that waits for the disk.
struct PurgeWish {
    orders: Vec<Order>,
    reply: PurgeReply,
}

/// What the lists' thread is asked.
enum ListTask {
    Purge(PurgeWish),
    TakeOut(Vec<usize>, Kept),
}

/// Called once the lists say it durably.
type Kept = Box<dyn FnOnce() + Send>;

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

/// The lists, to whoever operates foxy.
#[derive(Clone, Default)]
pub struct Lists {
    health: ListHealth,
    /// Who keeps purges, as long as there may be any; nobody where there are no stores.
    keeper: Weak<Keeper>,
}

impl Lists {
    /// What is wrong with the list of the store of that number.
    pub fn trouble(&self, store: usize) -> Option<String> {
        self.health.trouble(store)
    }

    /// Has the lists of all other stores say that these were out of use, and calls `kept` when they
    /// do. It is never called where one cannot be written, or too much waits; what was tried costs
    /// nothing but what is stored, if foxy ends before another try.
    pub fn take_out(&self, stores: Vec<usize>, kept: Kept) {
        if let Some(keeper) = self.keeper.upgrade() {
            // Where it is not taken, it is asked for again.
            drop(keeper.0.try_send(ListTask::TakeOut(stores, kept)));
        }
    }
}

struct Writer {
    book: Arc<PurgeBook>,
    lists: Vec<List>,
    places: Vec<SeriesPlace>,
    /// Whose lists stay as they are.
    out: Vec<bool>,
    /// Theirs who are in use; each has its own place.
    series: Series,
    health: ListHealth,
}

impl Writer {
    /// Carries out wishes until nobody can have any more. All that wait are made durable together.
    fn run(mut self, tasks: &Receiver<ListTask>) {
        loop {
            match tasks.recv_timeout(LOOK_EVERY) {
                Ok(first) => {
                    let mut wishes = Vec::new();
                    for task in std::iter::once(first).chain(tasks.try_iter().take(WAITING)) {
                        match task {
                            ListTask::Purge(wish) => wishes.push(wish),
                            ListTask::TakeOut(stores, kept) => self.take_out(&stores, kept),
                        }
                    }
                    self.carry_out(wishes);
                }
                Err(RecvTimeoutError::Timeout) => self.look(),
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    /// A list that is not there any more is written anew; one that could not be written is tried
    /// again.
    fn look(&mut self) {
        for number in self.in_use() {
            if !self.lists[number].is_there() && self.keep(number, &[]).is_ok() {
                let folder = self.lists[number].folder().display();
                let text = format!(
                    "foxy: store {folder}: {NAME} was not there any more, and is written anew"
                );
                terminal::report(Level::Warning, &text);
            }
        }
    }

    fn in_use(&self) -> Vec<usize> {
        (0..self.lists.len()).filter(|&number| !self.out[number]).collect()
    }

    /// Begins another set without these stores. Their lists stay as they are, so that they are not
    /// of it.
    fn take_out(&mut self, stores: &[usize], kept: Kept) {
        let mut state = self.series.set;
        self.series.set = split_mix(&mut state);
        let left: Vec<_> =
            self.in_use().into_iter().filter(|number| !stores.contains(number)).collect();
        let mut all = !left.is_empty();
        for number in left {
            self.lists[number].begin(Series { place: self.places[number].bereft, ..self.series });
            all &= self.keep(number, &[]).is_ok();
        }
        if all {
            for &number in stores {
                self.out[number] = true;
                self.health.set(number, None);
            }
            kept();
        }
    }

    /// Makes rules durable in one list, which follow those of the book.
    fn keep(&mut self, number: usize, rules: &[Rule]) -> Result<(), Unwritten> {
        let latest = self.book.latest() + rules.len() as u64;
        let kept = self.lists[number].keep(|| self.book.rules(), latest, rules);
        self.health.set(number, kept.err());
        kept
    }

    fn carry_out(&mut self, wishes: Vec<PurgeWish>) {
        let before = self.book.latest();
        let orders: Vec<Order> =
            wishes.iter().flat_map(|wish| wish.orders.iter().copied()).collect();
        let rules = number(&orders, before);
        let kept: Vec<bool> =
            self.in_use().into_iter().map(|list| self.keep(list, &rules).is_ok()).collect();
        let durable = kept.contains(&true);
        if durable {
            self.book.apply(&rules);
        }
        let mut moment = before;
        for PurgeWish { orders, reply } in wishes {
            moment += orders.len() as u64;
            reply(if durable { Ok(moment) } else { Err(NotPurged::NotDurable) });
        }
    }
}

#[cfg(test)]
#[path = "purge_journal_tests.rs"]
mod tests;
