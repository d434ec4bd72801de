//! Status of the running proxy for the admin server: metrics, and troubles such as a failing disk.
//! Also takes worn-out stores out of use.

use crate::serve::access_log::queue::LogQueue;
use crate::serve::acme::AcmeKeeper;
use crate::serve::admin::metrics::{Exposition, FamilyKind, MetricsFormat};
use crate::serve::admin::requests::{ExplainRequest, PurgeReach, PurgeRequest, Purged};
use crate::serve::admin::{DataFuture, Health, LocalFuture, Operated};
use crate::serve::cold::ColdFacts;
use crate::serve::dashboard::live::Facts;
use crate::serve::dashboard::{Dashboard, DataRequest};
use crate::serve::fleet::{self, FleetView};
use crate::serve::fleet_purges::FleetPurgeFacts;
use crate::serve::otlp::OtlpCounts;
use crate::serve::process;
use crate::serve::purge::journal::Lists;
use crate::serve::reload::{self, NotReloaded, Reloader};
use crate::serve::reload_watch::{self, AnswerCounts, EarlierCounts};
use crate::serve::stores::health::{DiskHealth, DiskTrouble, FileWatch, is_silent};
use crate::serve::stores::out_of_use::{Candidate, Sight, Wear, WornReason, to_take_out};
use crate::serve::stores::set::StoreSet;
use crate::serve::upgrade::{NotUpgraded, UpgradeWish, Upgraded};
use crate::serve::whatif::WhatIf;
use crate::terminal::{self, Level};
use foxy_base::{HostPattern, Instant, WallTime, clock};
use foxy_device::FileFault;
use foxy_proxy::cache::purge::NotPurged;
use foxy_proxy::core::rules::RulesInForce;
use foxy_proxy::core::token::Token;
use foxy_proxy::explain::Explanation;
use foxy_proxy::server::Gauges;
use foxy_proxy::server::handle::ProxyHandle;
use foxy_store::{StoreHandle, StoreStatus};
use serde_json::{Value, json};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::oneshot;

pub struct WatchedStore {
    folder: String,
    handle: StoreHandle,
    health: DiskHealth,
    wear: Cell<Wear>,
}

#[derive(Debug, PartialEq, Eq)]
pub struct Trouble {
    /// Number of the store with the trouble. `None` if the trouble does not concern a store.
    pub store: Option<usize>,
    pub text: String,
    /// Whether foxy will not use the store again before a restart.
    pub is_left_out: bool,
    /// Whether foxy still answers and stores everything, so that `/healthz` answers 200.
    pub is_mild: bool,
}

impl Trouble {
    /// Describes a trouble that does not concern a store.
    const fn general(text: String) -> Self {
        Self { store: None, text, is_left_out: false, is_mild: false }
    }

    const fn mild(text: String) -> Self {
        Self { store: None, text, is_left_out: false, is_mild: true }
    }
}

impl WatchedStore {
    /// Starts to watch a store that was just opened.
    pub fn new(folder: String, handle: StoreHandle) -> Self {
        let health = DiskHealth::of(handle.observer());
        let wear = Cell::new(Wear::new(failures(&handle)));
        Self { folder, handle, health, wear }
    }

    fn has_ended(&self) -> bool {
        let status = self.handle.observer().status.get();
        matches!(status, StoreStatus::Unusable(_) | StoreStatus::Panicked)
    }

    fn look(&self, is_read_only: bool, now: Instant) -> Option<WornReason> {
        let sight =
            Sight { failures: failures(&self.handle), is_read_only, has_ended: self.has_ended() };
        let mut wear = self.wear.get();
        let worn = wear.look(sight, now);
        self.wear.set(wear);
        worn
    }
}

/// Returns the number of failed disk operations, except failures because the disk is full.
fn failures(store: &StoreHandle) -> u64 {
    let statistics = &store.observer().statistics;
    statistics.device_errors.get().saturating_sub(statistics.no_room.get())
}

pub struct ProxyStatus {
    pub proxy: Gauges,
    pub handle: ProxyHandle,
    pub reloader: Rc<Reloader>,
    pub acme: Option<Rc<AcmeKeeper>>,
    /// Sends the requests for upgrades to the loop that operates the proxy.
    pub upgrades: UnboundedSender<UpgradeWish>,
    /// Numbers of requests and errors in the last half minute. A watched reload compares with them.
    pub earlier: RefCell<EarlierCounts>,
    pub token: Option<Token>,
    /// Host names that the admin server accepts in the field `Host`.
    pub hosts: Vec<HostPattern>,
    pub stores: Vec<WatchedStore>,
    /// Directs each record to one of the stores. `None` if there are no stores.
    pub set: Option<StoreSet>,
    pub files: FileWatch,
    pub lists: Lists,
    pub log: Option<Arc<LogQueue>>,
    pub transactions: Option<Arc<LogQueue>>,
    pub otlp: Option<Arc<OtlpCounts>>,
    pub started: WallTime,
    pub is_stopping: Cell<bool>,
    pub dashboard: Rc<Dashboard>,
    pub whatif: Arc<WhatIf>,
    /// The state of the fleet, if foxy is a node of a fleet.
    pub fleet: Option<FleetView>,
    pub fleet_purges: FleetPurgeFacts,
    pub cold: ColdFacts,
}

impl ProxyStatus {
    fn is_out(&self, store: usize) -> bool {
        self.set.as_ref().is_some_and(|set| set.out_of_use().is_out(store))
    }

    /// Returns the facts that the dashboard shows.
    fn facts(&self) -> Facts {
        let settings = self.reloader.settings();
        Facts {
            limits: (settings.memory.size, settings.limits.connections),
            started: self.started,
            troubles: self.health().troubles,
            out_of_use: (0..self.stores.len()).map(|store| self.is_out(store)).collect(),
        }
    }

    /// Takes worn-out stores out of use, if at least one healthy store remains. A store leaves only
    /// when the purge lists of the other stores record this on disk.
    pub fn take_out_worn_stores(&self, now: Instant) {
        let Some(set) = &self.set else { return };
        let look = |(number, store): (usize, &WatchedStore)| {
            let is_read_only = self.files.trouble(number) == Some(FileFault::ReadOnly)
                || store.health.is_read_only(store.handle.observer(), now);
            Candidate { worn: store.look(is_read_only, now), is_out: self.is_out(number) }
        };
        let worn = to_take_out(&self.stores.iter().enumerate().map(look).collect::<Vec<_>>());
        if !worn.is_empty() {
            let (set, taken) = (set.clone(), worn.clone());
            let take_out = move || taken.iter().for_each(|&store| set.out_of_use().take_out(store));
            self.lists.take_out(worn, Box::new(take_out));
        }
    }

    /// Returns the folder of a store whose disk does not answer. Returns `None` if all disks
    /// answer.
    pub fn silent_folder(&self) -> Option<&str> {
        let now = clock::monotonic();
        let is_silent = |store: &&WatchedStore| is_silent(store.handle.observer(), now);
        self.stores.iter().find(is_silent).map(|store| store.folder.as_str())
    }

    /// Returns whether a trouble that the newest check did not find is over. A store that is out of
    /// use receives no requests, so its trouble continues.
    pub fn is_over(&self, trouble: &Trouble) -> bool {
        !trouble.store.is_some_and(|store| self.is_out(store))
    }

    pub fn current_troubles(&self) -> Vec<Trouble> {
        let now = clock::monotonic();
        let of_store = |number: usize, (text, is_mild): (String, bool)| Trouble {
            store: Some(number),
            text: format!("store {}: {text}", self.stores[number].folder),
            is_left_out: self.is_out(number) || self.stores[number].has_ended(),
            is_mild,
        };
        let mut troubles = Vec::new();
        if self.is_stopping.get() {
            troubles.push(Trouble::general("foxy is stopping".into()));
        }
        troubles.extend(self.proxy.parents_down().into_iter().map(|parent| {
            Trouble::general(format!(
                "parent proxy {parent}: it accepts no connection, or refuses the credentials"
            ))
        }));
        let acme = self.acme.iter().flat_map(|keeper| keeper.troubles());
        troubles.extend(acme.map(Trouble::general));
        let numbers = 0..self.stores.len();
        let stores = numbers.clone().filter_map(|n| Some(of_store(n, self.store_trouble(n, now)?)));
        troubles.extend(stores);
        let of_list = |n| Some(of_store(n, (self.lists.trouble(n)?, false)));
        troubles.extend(numbers.filter_map(of_list));
        troubles.extend(self.log_troubles(now).map(Trouble::mild));
        troubles.extend(self.fleet_purges.trouble().map(Trouble::mild));
        troubles
    }

    /// Names each log whose last lines were lost, because its file could not be written.
    fn log_troubles(&self, now: Instant) -> impl Iterator<Item = String> {
        let logs = [("access log", &self.log), ("log of transactions", &self.transactions)];
        logs.into_iter().filter_map(move |(name, queue)| {
            let error = queue.as_ref()?.write_error(now)?;
            Some(format!(
                "{name}: lines are lost, because the file cannot be written: {error}; free some \
                 space, or check the disk"
            ))
        })
    }

    /// Returns the trouble of a store, and whether it is mild.
    fn store_trouble(&self, number: usize, now: Instant) -> Option<(String, bool)> {
        let WatchedStore { handle, health, wear, .. } = &self.stores[number];
        let observer = handle.observer();
        if let Some(reason) = wear.get().reason().filter(|_| self.is_out(number)) {
            let text = format!(
                "out of use, because {reason}; the other stores take its URLs; check the disk and \
                 the system's log, empty the store's folder (and device), then restart foxy; a \
                 store that is not emptied makes foxy discard the content of all stores"
            );
            return Some((text, false));
        }
        match observer.status.get() {
            StoreStatus::Unusable(error) => Some((error.to_string(), false)),
            StoreStatus::Panicked => {
                Some(("the store's thread failed; restart foxy".to_owned(), false))
            }
            StoreStatus::Rebuilding | StoreStatus::Serving => {
                let judged = |it: DiskTrouble| (it.to_string(), it == DiskTrouble::Damaged);
                let disk = || health.judge(observer, now).map(judged);
                self.files.trouble(number).map(|it| (it.to_string(), false)).or_else(disk)
            }
            StoreStatus::Opening | StoreStatus::Closed => None,
        }
    }
}

impl Operated for ProxyStatus {
    fn metrics(&self, format: MetricsFormat) -> String {
        let mut exposition = Exposition::new(format);
        exposition.build();
        exposition.proxy(&self.proxy);
        exposition.requests(&self.proxy);
        let snapshot = |store: &WatchedStore| {
            (store.folder.clone(), store.handle.observer().statistics.snapshot())
        };
        exposition.stores(&self.stores.iter().map(snapshot).collect::<Vec<_>>());
        let numbered = self.stores.iter().enumerate();
        let out = numbered.map(|(number, store)| (store.folder.as_str(), self.is_out(number)));
        exposition.out_of_use(&out.collect::<Vec<_>>());
        exposition.rules(&self.handle.rules().counts());
        exposition.servers(&self.proxy.servers());
        exposition.whatif(&self.whatif.report(&self.proxy));
        self.fleet_purges.expose(&mut exposition);
        self.cold.expose(&mut exposition);
        if let Some(keeper) = &self.acme {
            keeper.expose(&mut exposition);
        }
        if let Some(view) = &self.fleet {
            view.expose(&mut exposition);
        }
        if let Some(queue) = &self.log {
            exposition.access_log(queue);
        }
        if let Some(queue) = &self.transactions {
            exposition.transaction_log(queue);
        }
        if let Some(counts) = &self.otlp {
            counts.expose(&mut exposition);
        }
        let help = "Start time of the process since the Unix epoch in seconds.";
        let started = self.started.seconds();
        exposition.single("process_start_time_seconds", FamilyKind::Gauge, help, started);
        process::expose(&mut exposition);
        exposition.finish()
    }

    fn data(&self, wanted: DataRequest) -> DataFuture<'_> {
        let value = match wanted {
            DataRequest::Live => self.dashboard.live(self.facts()),
            DataRequest::Configuration => self.reloader.configuration(),
            DataRequest::WhatIf => json!(self.whatif.report(&self.proxy)),
            DataRequest::Fleet => {
                fleet::as_json(self.fleet.as_ref(), &self.fleet_purges, &self.proxy)
            }
            other => return Box::pin(self.dashboard.storage(other)),
        };
        Box::pin(std::future::ready(Some(value)))
    }

    fn leave_fleet(&self, is_leaving: bool) -> bool {
        self.fleet.as_ref().map(|fleet| fleet.leave(is_leaving)).is_some()
    }

    fn health(&self) -> Health {
        let troubles = self.current_troubles();
        let is_well = troubles.iter().all(|trouble| trouble.is_mild);
        Health { is_well, troubles: troubles.into_iter().map(|trouble| trouble.text).collect() }
    }

    fn hosts(&self) -> &[HostPattern] {
        &self.hosts
    }

    fn token(&self) -> Option<&Token> {
        self.token.as_ref()
    }

    fn rules(&self) -> &RulesInForce {
        self.handle.rules()
    }

    fn reload(&self, is_watched: bool) -> LocalFuture<Result<Value, NotReloaded>> {
        let before = self.earlier.borrow().until(AnswerCounts::of(&self.proxy));
        let changes = match self.reloader.reload() {
            Ok(changes) => changes,
            Err(why) => return Box::pin(std::future::ready(Err(why))),
        };
        let mut answer = reload::as_json(&changes);
        if !is_watched || changes.is_empty() {
            return Box::pin(std::future::ready(Ok(answer)));
        }
        let (reloader, gauges) = (Rc::clone(&self.reloader), self.proxy.clone());
        let number = reloader.number();
        // foxy continues to watch its errors even if the client that sent this request disconnects.
        let watch = tokio::task::spawn_local(async move {
            let outcome = reload_watch::watch(reloader, gauges, before, number).await;
            let text = outcome["report"].as_str().unwrap_or_default();
            terminal::report(Level::Info, &format!("foxy: watched reload: {text}"));
            outcome
        });
        Box::pin(async move {
            answer["watch"] = watch.await.unwrap_or_default();
            Ok(answer)
        })
    }

    fn upgrade(&self, binary: Option<String>) -> LocalFuture<Result<Upgraded, NotUpgraded>> {
        let (reply, answer) = oneshot::channel();
        let sent = self.upgrades.send(UpgradeWish { binary, reply });
        Box::pin(async move {
            match sent {
                Ok(()) => answer.await.unwrap_or(Err(NotUpgraded::Leaving)),
                Err(_) => Err(NotUpgraded::Leaving),
            }
        })
    }

    fn purge(&self, request: PurgeRequest) -> LocalFuture<Result<Purged, NotPurged>> {
        let handle = self.handle.clone();
        let reach = match self.fleet_purges.are_shared() {
            true => Some(PurgeReach::AllNodes),
            false => self.fleet.as_ref().map(|_| PurgeReach::ThisNode),
        };
        Box::pin(async move {
            let found = match request.counts {
                true => Some(handle.search(&request.names).await),
                false => None,
            };
            let number = match request.is_trial {
                true => None,
                false => Some(handle.purge(&request.scopes(), request.strength).await?),
            };
            Ok(Purged { number, found, reach })
        })
    }

    fn explain(&self, request: &ExplainRequest) -> LocalFuture<Explanation> {
        let handle = self.handle.clone();
        let ExplainRequest { method, url, asker, fields } = request.clone();
        Box::pin(async move { handle.explain((&method, &url), &fields, asker).await })
    }
}
