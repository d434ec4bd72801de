//! Opens all parts of a running proxy: access log, certificates, stores and workers. Closes them in
//! a fixed order.

use crate::failure::Failure;
use crate::serve::access_log::OpenLogs;
use crate::serve::access_log::refused_destinations::RefusedDestinations;
use crate::serve::admin::access::read_token;
use crate::serve::cold::{self, ColdPart};
use crate::serve::dashboard::traffic::Traffic;
use crate::serve::fleet::{self, FleetView};
use crate::serve::fleet_purges::{self, FleetPurgeFacts, FleetPurges};
use crate::serve::listeners::{ProxyListeners, cannot_listen};
use crate::serve::origins;
use crate::serve::parents::{self, Sibling};
use crate::serve::process::DescriptorRoom;
use crate::serve::proxy_settings::proxy_settings;
use crate::serve::purge::journal::{self, BesideStore, Lists};
use crate::serve::purge::series::{FreshNames, SeriesPlace};
use crate::serve::stores::kept_clock::KeptClock;
use crate::serve::stores::set::{Selection, StoreSet, is_by_key};
use crate::serve::stores::{self, RunningStore};
use crate::serve::tls::{self, ReloadableTls};
use crate::serve::upgrade::keeper::SwitchingKeeper;
use crate::serve::upgrade::predecessor::Predecessor;
use crate::serve::welcome::OpenStore;
use crate::serve::whatif::WhatIf;
use crate::settings::Settings;
use crate::settings::listen_address::ListenAddress;
use crate::terminal::{self, Level};
use crate::users_file;
use foxy_base::{Instant, Random, clock};
use foxy_device::Root;
use foxy_proxy::cache::purge::journal::place;
use foxy_proxy::cache::purge::{PurgeKeeper, Purges};
use foxy_proxy::cache::storage::ObjectStore;
use foxy_proxy::core::idle_client::Heir;
use foxy_proxy::core::token::Token;
use foxy_proxy::intercept::Interception;
use foxy_proxy::request::access::{AccessRecord, AccessSink, Finished};
use foxy_proxy::request::mode::Mode;
use foxy_proxy::server::handle::ProxyHandle;
use foxy_proxy::server::listener::{ListenerKind, SharedListener};
use foxy_proxy::server::{Gauges, Parts, Proxy, StartError, name_resolver};
use foxy_proxy::settings::ProxySettings;
use foxy_proxy::upstream::{GroupSettings, OriginTls, Origins, Parents, UpstreamSettings};
use foxy_store::Beginning;
use std::cell::Cell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// Interval between checks whether all connections have ended after a new process took over.
const DEPARTURE_POLL: Duration = Duration::from_millis(50);

/// All open parts of a running proxy.
pub struct RunningProxy {
    pub(super) proxy: Proxy,
    /// Addresses and paths at which clients reach the proxy.
    pub(super) addresses: Vec<(ListenAddress, ListenerKind)>,
    pub(super) token: Option<Token>,
    pub(super) certificates: Option<ReloadableTls>,
    /// TLS settings for connections to an ACME authority.
    pub(super) directory_tls: OriginTls,
    /// The seed of random numbers for the operation of this proxy.
    pub(super) seed: u64,
    pub(super) stores: Vec<RunningStore>,
    /// Directs each record to one of the stores. `None` if there are no stores.
    pub(super) set: Option<StoreSet>,
    pub(super) lists: Lists,
    pub(super) keeper: Arc<SwitchingKeeper>,
    pub(super) clock: Option<KeptClock>,
    fleet_purges: FleetPurges,
    pub(super) cold: ColdPart,
    pub(super) logs: OpenLogs,
    pub(super) refused: Arc<RefusedDestinations>,
    pub(super) traffic: Arc<Traffic>,
    pub whatif: Arc<WhatIf>,
    /// The state of the fleet, if foxy is a node of a fleet.
    pub(super) fleet: Option<FleetView>,
    /// Lines about the parent proxies, for the start-up message.
    pub parents: Vec<String>,
}

impl RunningProxy {
    pub fn gauges(&self) -> Gauges {
        self.proxy.gauges()
    }

    /// Returns the state of the fleet's purges on this node.
    pub fn fleet_purges(&self) -> FleetPurgeFacts {
        self.fleet_purges.facts()
    }

    /// Returns the stores that did not exist before this start.
    pub fn new_stores(&self) -> impl Iterator<Item = &OpenStore> {
        let is_new = |store: &&RunningStore| store.beginning() == Some(Beginning::New);
        self.stores.iter().filter(is_new).map(|store| &store.facts)
    }

    /// Stops accepting connections and closes the stores, because a new process takes over. From
    /// now on, `keeper` passes purges on to the new process, and `heir` passes idle connections on.
    pub fn depart(self, keeper: Arc<dyn PurgeKeeper>, heir: Option<Heir>) -> DepartedProxy {
        let Self { mut proxy, stores, clock, logs, keeper: own, fleet_purges, cold, .. } = self;
        let sockets = proxy.leave(heir);
        // This process no longer needs its lease (the permission to answer from the cache).
        fleet_purges.end();
        cold.end();
        stores.iter().for_each(|store| store.shard.handle().lend());
        drop(stores);
        keep_doubts(&proxy.handle());
        own.replace(keeper);
        if let Some(clock) = clock {
            clock.end();
        }
        DepartedProxy { proxy, sockets, keeper: own, logs }
    }

    /// Waits up to `stop-after` for requests in progress. Then closes the stores and the log.
    pub fn close(self) {
        let Self { proxy, stores, clock, logs, fleet_purges, cold, .. } = self;
        let handle = proxy.handle();
        proxy.stop();
        fleet_purges.end();
        cold.end();
        drop(stores);
        keep_doubts(&handle);
        if let Some(clock) = clock {
            clock.end();
        }
        drop(logs);
    }
}

/// A proxy that only finishes its requests. A new process has its stores and sockets.
pub struct DepartedProxy {
    proxy: Proxy,
    /// The listening sockets, in case this process must serve again. The proxy no longer accepts
    /// from them.
    pub(super) sockets: Vec<SharedListener>,
    pub(super) keeper: Arc<SwitchingKeeper>,
    logs: OpenLogs,
}

impl DepartedProxy {
    /// Waits until all connections have ended, at most until the time `until`. Then closes the
    /// access log.
    pub fn finish(self, until: Instant) {
        let gauges = self.proxy.gauges();
        while gauges.connections() > 0 && clock::monotonic() < until {
            std::thread::sleep(DEPARTURE_POLL);
        }
        self.close();
    }

    pub fn connections(&self) -> usize {
        self.proxy.gauges().connections()
    }

    /// Waits up to the setting `stop-after` for requests in progress. Then closes the access log.
    pub fn close(self) {
        let Self { proxy, sockets, logs, .. } = self;
        drop(sockets);
        let handle = proxy.handle();
        proxy.stop();
        keep_doubts(&handle);
        drop(logs);
    }
}

/// Purges each URL whose old response may still be in a store, because the failing store did not
/// confirm the removal. Without a purge, a later start could serve the old response.
pub fn keep_doubts(handle: &ProxyHandle) {
    let text = match handle.purge_what_is_in_doubt() {
        Ok(0) => return,
        Ok(urls) => {
            format!("purged {urls} URLs, because a store did not confirm their removal")
        }
        Err(why) => format!(
            "a store did not confirm the removal of replaced responses, and no purge list can \
             record it ({}); empty the store's folder before foxy starts again, or foxy may serve \
             old responses",
            why.name()
        ),
    };
    terminal::report(Level::Warning, &format!("foxy: {text}"));
}

thread_local! {
    /// The sinks (receivers) that want the record of the request that ends now, one bit each.
    static WANTED: Cell<u32> = const { Cell::new(0) };
}

/// Passes each access record to several receivers (sinks), such as the access log.
struct AllSinks(Vec<Arc<dyn AccessSink>>);

impl AccessSink for AllSinks {
    fn record(&self, record: &AccessRecord<'_>) {
        let wanted = WANTED.get();
        let sinks = self.0.iter().enumerate();
        sinks
            .filter(|(number, _)| wanted & 1 << number != 0)
            .for_each(|(_, sink)| sink.record(record));
    }

    fn wants(&self, finished: &Finished) -> bool {
        let sinks = self.0.iter().enumerate();
        let wanted = sinks.map(|(number, sink)| u32::from(sink.wants(finished)) << number).sum();
        WANTED.set(wanted);
        wanted != 0
    }
}

fn all_sinks(
    given: Option<Arc<dyn AccessSink>>,
    (refused, traffic): (&Arc<RefusedDestinations>, &Arc<Traffic>),
    logs: &OpenLogs,
) -> AllSinks {
    let own: [Arc<dyn AccessSink>; 2] = [Arc::clone(refused) as _, Arc::clone(traffic) as _];
    AllSinks(given.into_iter().chain(own).chain(logs.sinks()).collect())
}

/// Inputs of [`open`] that are not settings. `foxy run` and upgrades use them.
#[derive(Default)]
pub struct Extra {
    /// An additional receiver of access records.
    pub sink: Option<Arc<dyn AccessSink>>,
    /// Intercepts TLS with these settings instead of the configured settings.
    pub interception: Option<Interception>,
    /// Further addresses of this process, such as the admin server. The proxy must not forward
    /// requests to them.
    pub own: Vec<SocketAddr>,
    /// Store folders that this process has already locked.
    pub locked: Vec<Root>,
    /// The old process of an upgrade, which still uses the stores at first.
    pub predecessor: Option<Rc<Predecessor>>,
    /// The `foxy run` whose store this process shares.
    pub sibling: Option<Sibling>,
}

/// Opens all parts and starts to serve. After an error, no request was served.
pub fn open(
    settings: &Settings,
    listeners: ProxyListeners,
    extra: Extra,
) -> Result<RunningProxy, Failure> {
    let max_open_files = foxy_cli::process::raise_open_files();
    let logs = OpenLogs::open(settings)?;
    let origin_tls = tls::origin_tls(&settings.network.origin_ca, extra.sibling.as_ref())?;
    let (certificates, directory_tls) = (certificates(settings)?, tls::directory_tls(settings)?);
    let interception = interception(settings, extra.interception)?;
    let own = [&listeners.tcp_addresses()[..], &extra.own].concat();
    let ProxyListeners { listen, listen_tls, listen_transparent, listen_nodes, .. } = listeners;
    let (mut parent_settings, parent_lines) = parents::open(settings, &own)?;
    parent_settings.sibling = extra.sibling.map(|sibling| sibling.proxy);
    let token = settings.access.admin_token_file.as_deref().map(read_token).transpose()?;
    let mut random = Random::new(foxy_base::random::entropy());
    let before = (extra.predecessor.as_deref(), &extra.locked[..]);
    let stored = OpenStores::open(settings, before, &mut random)?;
    let OpenStores { stores, selection, mut purges, lists, keeper, clock } = stored;
    let (fleet_purges, cold) = join_others(settings, &stores, &mut purges, &mut random)?;
    let mode = mode(origins::open(settings)?, random.next_u64());
    let base = proxy_settings(settings, (origin_tls, mode), extra.own, random.next_u64());
    let room = DescriptorRoom::now(max_open_files, settings);
    let parents = Parents::new(parent_settings, &base.via_name, random.next_u64()).map(Arc::new);
    let upstream = UpstreamSettings { idle_total: room.idle, parents, ..base.upstream.clone() };
    let counts = [listen.len(), listen_tls.len(), listen_transparent.len()];
    let mut proxy_settings = ProxySettings {
        listen,
        listen_tls,
        listen_transparent,
        descriptors_for_connections: room.clients,
        upstream,
        client_tls: certificates.as_ref().map(|certificates| certificates.tls.clone()),
        interception,
        users: users_file::of(settings)?.into(),
        purge_token: token.clone(),
        object_limit: stores::least_object_limit(settings, &stores),
        ..base
    };
    let nodes = (listen_nodes, extra.predecessor.is_some());
    let fleet = fleet::join(&mut proxy_settings, nodes, settings, &fleet_purges)?;
    let (refused, traffic) = (Arc::<RefusedDestinations>::default(), Arc::<Traffic>::default());
    let set = StoreSet::of(&stores, selection, random.next_u64());
    let whatif = Arc::new(WhatIf::start(settings, &stores)?);
    let parts = Parts {
        store: set.clone().map(|set| Arc::new(set) as Arc<dyn ObjectStore>),
        cold: cold.store(),
        purges,
        sink: Some(Arc::new(all_sinks(extra.sink, (&refused, &traffic), &logs))),
        sample: whatif.sample(),
        resolver: name_resolver(settings.network.name_servers.clone()),
        sockets: listeners.shared,
    };
    let proxy = start(proxy_settings, parts)?;
    Ok(RunningProxy {
        addresses: bound_addresses(&proxy, counts).chain(listeners.shown).collect(),
        proxy,
        token,
        certificates,
        directory_tls,
        seed: random.next_u64(),
        stores,
        set,
        lists,
        keeper,
        clock,
        fleet_purges,
        cold,
        logs,
        refused,
        traffic,
        whatif,
        fleet,
        parents: parent_lines,
    })
}

/// Connects this node with the fleet and with the cold tier. Purges then hold there too.
fn join_others(
    settings: &Settings,
    stores: &[RunningStore],
    purges: &mut Purges,
    random: &mut Random,
) -> Result<(FleetPurges, ColdPart), Failure> {
    let home = stores.first().map(|store| store.facts.folder.as_path());
    let fleet_purges = fleet_purges::start(settings, purges, home, random)?;
    Ok((fleet_purges, cold::start(settings, purges)?))
}

/// The open stores, with the purges, the selection rule and the clock that all stores share.
struct OpenStores {
    stores: Vec<RunningStore>,
    selection: Selection,
    purges: Purges,
    lists: Lists,
    keeper: Arc<SwitchingKeeper>,
    clock: Option<KeptClock>,
}

impl OpenStores {
    /// Opens the stores. In an upgrade, first waits until the old process (`old`) has closed them.
    /// `locked` has the store folders that this process has already locked.
    fn open(
        settings: &Settings,
        (old, locked): (Option<&Predecessor>, &[Root]),
        random: &mut Random,
    ) -> Result<Self, Failure> {
        old.map(Predecessor::wait_for_stores).transpose()?;
        let stores = stores::open(settings, locked, random)?;
        let selection = Selection::named(settings.disk.store_selection);
        let fresh = FreshNames { era: random.next_u64().max(2), set: random.next_u64() };
        let home = stores.first().map(|store| store.facts.folder.as_path());
        let continued = |list| fleet_purges::continued(settings, home, list, random);
        let (mut purges, lists) = journal::open(&beside(&stores, selection), fresh, continued)?;
        for store in stores.iter().filter(|_| lists.has_forgotten) {
            if store.beginning().is_some_and(Beginning::may_hold_something) {
                store.shard.handle().observer().statistics.begun_anew.set(1);
            }
        }
        let keeper = with_switch(&mut purges);
        let folders = stores.iter().map(|store| store.facts.folder.clone()).collect();
        let clock = KeptClock::begin(folders)?;
        Ok(Self { stores, selection, purges, lists, keeper, clock })
    }
}

/// Returns the given interception, or the interception that the settings describe.
fn interception(
    settings: &Settings,
    given: Option<Interception>,
) -> Result<Option<Interception>, Failure> {
    match given {
        None => tls::open_interception(settings, clock::wall()),
        given => Ok(given),
    }
}

/// Wraps the keeper, which makes purges durable, in a switch, and returns the switch. An upgrade
/// later switches to the keeper of the new process.
fn with_switch(purges: &mut Purges) -> Arc<SwitchingKeeper> {
    let keeper = Arc::new(SwitchingKeeper::new(Arc::clone(&purges.keeper)));
    purges.keeper = Arc::clone(&keeper) as Arc<dyn PurgeKeeper>;
    keeper
}

/// Returns the addresses on which the proxy listens. The counts are the numbers of plain addresses,
/// of addresses with TLS, and of transparent addresses.
fn bound_addresses(
    proxy: &Proxy,
    [plain, tls, transparent]: [usize; 3],
) -> impl Iterator<Item = (ListenAddress, ListenerKind)> {
    let kind = move |index| match index {
        _ if index < plain => ListenerKind::Plain,
        _ if index < plain + tls => ListenerKind::Tls,
        _ if index < plain + tls + transparent => ListenerKind::Transparent,
        _ => ListenerKind::Nodes,
    };
    let bound = proxy.addresses().iter().enumerate();
    bound.map(move |(index, &address)| (ListenAddress::Socket(address), kind(index)))
}

fn mode(groups: Vec<GroupSettings>, seed: u64) -> Mode {
    if groups.is_empty() {
        return Mode::Forward;
    }
    let origins = Origins::new(groups, &Origins::default(), clock::monotonic(), seed);
    Mode::Reverse { origins: origins.into() }
}

/// Reads the certificates for clients, if the settings have any.
fn certificates(settings: &Settings) -> Result<Option<ReloadableTls>, Failure> {
    if !settings.has_certificates() {
        return Ok(None);
    }
    let read = ReloadableTls::read(settings);
    read.map(Some).map_err(Failure::Unusable)
}

/// Returns each store with its position among all stores, for the purge lists. A position is a hash
/// of file name, number and count of stores. If it changes, foxy used other stores meanwhile, so
/// the store may contain outdated responses.
fn beside(stores: &[RunningStore], selection: Selection) -> Vec<BesideStore> {
    let members: Vec<_> = stores.iter().map(RunningStore::member).collect();
    let way = if is_by_key(&members, selection) { "by key" } else { "anywhere" };
    let beside = |(number, store): (usize, &RunningStore)| {
        let file = store.facts.scheme.row().control.unwrap_or_default();
        let description = format!("{file}, {number} of {}, {way}", stores.len());
        BesideStore {
            folder: store.facts.folder.clone(),
            place: SeriesPlace {
                complete: place(&description),
                reduced: place(&format!("{description}, another out of use")),
            },
            beginning: store.beginning(),
        }
    };
    stores.iter().enumerate().map(beside).collect()
}

fn start(settings: ProxySettings, parts: Parts) -> Result<Proxy, Failure> {
    Proxy::start(settings, parts).map_err(|error| match error {
        StartError::Listen(address, error) => cannot_listen(address, "--listen", &error),
        StartError::Worker(_) | StartError::Resolver(_) => Failure::Failed(error.to_string()),
    })
}
