//! What serving needs, opened in order and closed in order: the log, certificates, the stores, the
//! proxy.

use super::access_log::{self, OpenLog};
use super::certificates::Reloadable;
use super::kept_clock::KeptClock;
use super::listeners::cannot_listen;
use super::proxy_settings::proxy_settings;
use super::purge_journal::{BesideStore, Lists};
use super::purge_series::{Fresh, SeriesPlace};
use super::refused_destinations::RefusedDestinations;
use super::store_set::{self, Selection, StoreSet};
use super::stores::{self, RunningStore};
use super::welcome::OpenStore;
use super::{authorities, interception, process, purge_journal, token_file};
use crate::failure::Failure;
use crate::settings::Settings;
use crate::terminal::{self, Level};
use foxy_base::{Random, clock};
use foxy_device::Root;
use foxy_proxy::cache::purge::Purges;
use foxy_proxy::cache::purge::journal::place;
use foxy_proxy::cache::storage::ObjectStore;
use foxy_proxy::core::token::Token;
use foxy_proxy::intercept::Interception;
use foxy_proxy::request::access::{AccessRecord, AccessSink};
use foxy_proxy::request::cache_status::CacheStatus;
use foxy_proxy::server::purger::Purger;
use foxy_proxy::server::{Gauges, MakeResolver, Parts, Proxy, StartError, name_resolver};
use foxy_proxy::settings::ProxySettings;
use foxy_proxy::upstream::UpstreamSettings;
use foxy_store::Beginning;
use std::net::SocketAddr;
use std::sync::Arc;

/// Everything that runs, in the order in which it is closed.
pub struct RunningProxy {
    pub(super) proxy: Proxy,
    pub(super) token: Option<Token>,
    pub(super) certificates: Option<Reloadable>,
    pub(super) stores: Vec<RunningStore>,
    /// The stores as one, if there are any.
    pub(super) set: Option<StoreSet>,
    pub(super) lists: Lists,
    pub(super) clock: Option<KeptClock>,
    pub(super) log: Option<OpenLog>,
    pub(super) refused: Arc<RefusedDestinations>,
}

impl RunningProxy {
    /// Where clients connect.
    pub fn address(&self) -> SocketAddr {
        self.proxy.addresses()[0]
    }

    /// Its numbers.
    pub fn gauges(&self) -> Gauges {
        self.proxy.gauges()
    }

    /// The stores whose folders held none before.
    pub fn new_stores(&self) -> impl Iterator<Item = &OpenStore> {
        let new = |store: &&RunningStore| store.beginning() == Some(Beginning::New);
        self.stores.iter().filter(new).map(|store| &store.facts)
    }

    /// Lets requests in progress end within the time the settings give, then closes the stores and
    /// the log.
    pub fn close(self) {
        let Self { proxy, stores, clock, log, .. } = self;
        let purger = proxy.purger();
        proxy.stop();
        drop(stores);
        keep_doubts(&purger);
        if let Some(clock) = clock {
            clock.end();
        }
        drop(log);
    }
}

/// What a failing disk did not forget is purged: the disk may work again when the next process
/// reads it.
pub fn keep_doubts(purger: &Purger) {
    match purger.purge_what_is_in_doubt() {
        Ok(0) => {}
        Ok(urls) => {
            let what = format!(
                "foxy: purged, as a store did not confirm that it has forgotten them: {urls} URLs"
            );
            terminal::report(Level::Warning, &what);
        }
        Err(why) => terminal::report(
            Level::Warning,
            &format!(
                "foxy: a store did not confirm that it has forgotten what was replaced, and no list of purges takes that ({}): \
                 empty its folder before foxy starts again, or old responses may come back",
                why.name()
            ),
        ),
    }
}

/// Gives each record to all of them.
struct AllOf(Vec<Arc<dyn AccessSink>>);

impl AccessSink for AllOf {
    fn record(&self, record: &AccessRecord<'_>) {
        self.0
            .iter()
            .filter(|sink| sink.wants(record.outcome))
            .for_each(|sink| sink.record(record));
    }

    fn wants(&self, outcome: CacheStatus) -> bool {
        self.0.iter().any(|sink| sink.wants(outcome))
    }
}

/// What no setting says.
#[derive(Default)]
pub struct Extra {
    /// Takes each record too.
    pub sink: Option<Arc<dyn AccessSink>>,
    /// In place of what `intercept-ca` and `intercept-hosts` give.
    pub interception: Option<Interception>,
    /// Folders of stores that this process has locked already.
    pub locked: Vec<Root>,
}

/// Opens everything and serves. `admin` is an address of this process besides those of the
/// settings, if it has one.
///
/// # Errors
/// Something cannot be opened; nobody was served then.
pub fn open(
    settings: &Settings,
    admin: Option<SocketAddr>,
    extra: Extra,
) -> Result<RunningProxy, Failure> {
    let open_files = process::raise_open_files();
    let log = access_log::open(settings)?;
    let tls = authorities::origin_tls(&settings.network.origin_ca)?;
    let certificates = settings.network.listen_tls.map(|_| {
        Reloadable::read(&settings.network.tls_certificate, &settings.network.tls_key)
            .map_err(Failure::Unusable)
    });
    let certificates = certificates.transpose()?;
    let interception = match extra.interception {
        None => interception::open(settings, clock::wall())?,
        given => given,
    };
    let token = settings.access.admin_token_file.as_deref().map(token_file::read).transpose()?;
    let mut random = Random::new(foxy_base::random::entropy());
    let stores = stores::open(settings, &extra.locked, &mut random)?;
    let selection = Selection::named(settings.disk.store_selection);
    let fresh = Fresh { era: random.next_u64().max(2), set: random.next_u64() };
    let (purges, lists) = purge_journal::open(&beside(&stores, selection), fresh)?;
    let clock = KeptClock::begin(stores.iter().map(|store| store.facts.folder.clone()).collect())?;
    let proxy_settings =
        proxy_settings(settings, tls, admin.into_iter().collect(), random.next_u64());
    // Which of several stores a response belongs to is not asked for its size.
    let without_store = || settings.disk.object_limit.map_or(u64::MAX, |limit| limit.0);
    let object_limit =
        stores.iter().map(|store| store.object_limit).min().unwrap_or_else(without_store);
    let client_tls = certificates.as_ref().map(|certificates| certificates.tls.clone());
    let purge_token = token.clone();
    let room = Room::of(open_files, process::open_files_now(), settings);
    let upstream = UpstreamSettings { idle_total: room.idle, ..proxy_settings.upstream.clone() };
    let proxy_settings = ProxySettings {
        descriptors_for_connections: room.clients,
        upstream,
        client_tls,
        interception,
        purge_token,
        object_limit,
        ..proxy_settings
    };
    let mut sinks: Vec<Arc<dyn AccessSink>> = extra.sink.into_iter().collect();
    let refused = Arc::new(RefusedDestinations::default());
    sinks.push(Arc::clone(&refused) as Arc<dyn AccessSink>);
    sinks.extend(log.as_ref().map(|log| Arc::clone(&log.sink) as Arc<dyn AccessSink>));
    let resolver = name_resolver(settings.network.name_servers.clone());
    let members: Vec<_> = stores.iter().map(RunningStore::member).collect();
    let set = (!members.is_empty()).then(|| StoreSet::new(members, selection, random.next_u64()));
    let proxy = start(proxy_settings, set.clone(), purges, resolver, sinks)?;
    Ok(RunningProxy { proxy, token, certificates, stores, set, lists, clock, log, refused })
}

/// Each store with its place among the others: stores in whose places others were meanwhile may
/// hold what was replaced there.
fn beside(stores: &[RunningStore], selection: Selection) -> Vec<BesideStore> {
    let members: Vec<_> = stores.iter().map(RunningStore::member).collect();
    let way = if store_set::by_key(&members, selection) { "by key" } else { "anywhere" };
    let description = |number: usize, store: &RunningStore| {
        let file = store.facts.scheme.row().control.unwrap_or_default();
        format!("{file}, {number} of {}, {way}", stores.len())
    };
    let beside = |(number, store): (usize, &RunningStore)| BesideStore {
        folder: store.facts.folder.clone(),
        place: SeriesPlace {
            whole: place(&description(number, store)),
            bereft: place(&format!("{}, another out of use", description(number, store))),
        },
        beginning: store.beginning(),
    };
    stores.iter().enumerate().map(beside).collect()
}

/// Connections that descriptors leave room for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Room {
    /// Of clients; each may need a second one for its origin server.
    clients: usize,
    /// Unused ones that each worker keeps to origin servers.
    idle: usize,
}

impl Room {
    /// Of descriptors that may be open, of which some are open before anybody is served.
    fn of(open_files: Option<u64>, open_now: usize, settings: &Settings) -> Self {
        // Look-ups of names, parts of stores, connections that end at this moment.
        const FOR_ITSELF: usize = 64;
        const FOR_A_WORKER: usize = 8;
        let limit =
            open_files.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
        let (workers, limits) = (settings.network.workers, &settings.limits);
        let free =
            limit.saturating_sub(open_now + FOR_ITSELF + workers.saturating_mul(FOR_A_WORKER));
        let idle = limits.idle_connections.saturating_mul(workers).min(free / 5);
        let room = Self { clients: ((free - idle) / 2).max(1), idle: idle / workers.max(1) };
        if room.clients < limits.connections {
            let text = format!(
                "foxy: the limit on open files is {limit}, so {} clients are served at a time, not {}, and others wait; \
                 raise it (ulimit -n) or lower limits.connections",
                room.clients, limits.connections
            );
            terminal::report(Level::Warning, &text);
        }
        room
    }
}

fn start(
    settings: ProxySettings,
    set: Option<StoreSet>,
    purges: Purges,
    resolver: MakeResolver,
    mut sinks: Vec<Arc<dyn AccessSink>>,
) -> Result<Proxy, Failure> {
    let store = set.map(|set| Arc::new(set) as Arc<dyn ObjectStore>);
    let sink: Option<Arc<dyn AccessSink>> = match sinks.len() {
        0 | 1 => sinks.pop(),
        _ => Some(Arc::new(AllOf(sinks))),
    };
    let parts = Parts { store, purges, sink, resolver };
    Proxy::start(settings, parts).map_err(|error| match error {
        StartError::Listen(address, error) => cannot_listen(address, "--listen", &error),
        StartError::Worker(_) | StartError::Resolver(_) => Failure::Failed(error.to_string()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::{self, machine::Machine};

    #[test]
    fn connections_fit_the_limit_on_open_files() {
        let machine = Machine { cores: 2, ..Machine::default() };
        let settings =
            settings::load(None, None, &machine).unwrap_or_else(|all| panic!("{all}")).settings;
        let room = |open_files| Room::of(open_files, 44, &settings);
        assert_eq!(room(Some(1 << 20)), Room { clients: 523_202, idle: 1024 });
        assert_eq!(room(Some(1024)), Room { clients: 360, idle: 90 });
        assert_eq!(room(Some(10)), Room { clients: 1, idle: 0 });
        assert!(room(None).clients > settings.limits.connections);
    }
}
