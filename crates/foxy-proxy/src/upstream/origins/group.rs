//! A *group* is an origin that the operator has set, with the state of its servers. All its servers
//! have the same content. All workers share a group. This module does no IO.

use crate::core::addresses::proxy_header::HeaderVersion;
use crate::upstream::address::destination::ChosenBy;
use crate::upstream::dial::Origin;
use crate::upstream::fail_over::{MAX_CHOICES, Tried};
use crate::upstream::origins::choice::{Repeatable, RepetitionBudget, choose, usable};
use crate::upstream::origins::matching::ServedHost;
use crate::upstream::origins::server::{OriginServer, ServerFault, ServerRank, ServerState};
use crate::upstream::settings::OriginHttp2;
use crate::upstream::tls::OriginTls;
use foxy_base::{Instant, Random};
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Largest number of servers of one origin. Further servers are ignored.
pub const MAX_SERVERS: usize = MAX_CHOICES;

/// The Host field that the servers of an origin receive.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum SentHost {
    /// The Host field that the client sent.
    #[default]
    Kept,
    /// Host and port of the server.
    Server,
    /// A text that the operator has set.
    Fixed(String),
}

/// A request that the proxy sends regularly to find out whether a server is healthy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Probe {
    /// The path in the probe's URL, with an optional query.
    pub path: String,
    /// Time between two probes of a server. A probe also must end within this time.
    pub interval: Duration,
}

/// The operator's settings for one origin. For a setting that is `None`, the proxy's setting for
/// all origins applies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupSettings {
    /// The origin's name in logs, metrics and explanations.
    pub name: String,
    /// The hosts whose requests the origin receives. Without hosts, the origin receives the
    /// requests for every host.
    pub hosts: Vec<ServedHost>,
    /// The origin receives requests whose path begins with this text.
    pub path: String,
    /// The servers of the origin: at least one, and at most [`MAX_SERVERS`].
    pub servers: Vec<OriginServer>,
    /// The Host field that the servers receive.
    pub send_host: SentHost,
    /// Tells whether the proxy uses HTTP/2 with the servers.
    pub http2: Option<OriginHttp2>,
    /// The trusted certificate authorities, and the certificate that the proxy presents to the
    /// servers.
    pub tls: Option<OriginTls>,
    /// The name that the proxy sends and expects in the TLS handshake, instead of the server's
    /// host.
    pub server_name: Option<String>,
    /// The header of the PROXY protocol with which each connection to a server begins. The header
    /// names the client. Such connections serve a single client.
    pub proxy_header: Option<HeaderVersion>,
    /// The probe that the proxy sends to each server.
    pub probe: Option<Probe>,
    /// Time limit for connecting to a server.
    pub connect_timeout: Option<Duration>,
    /// Time limit for the final head of a server's response.
    pub head_timeout: Option<Duration>,
}

impl GroupSettings {
    /// Returns the settings of an origin with one server, for every host and path.
    pub fn of_one(server: OriginServer) -> Self {
        Self {
            name: "origin".into(),
            hosts: Vec::new(),
            path: String::new(),
            servers: vec![server],
            send_host: SentHost::Kept,
            http2: None,
            tls: None,
            server_name: None,
            proxy_header: None,
            probe: None,
            connect_timeout: None,
            head_timeout: None,
        }
    }

    /// Returns the Host that a request without a Host field gets.
    pub(crate) fn authority(&self) -> String {
        match self.hosts.first() {
            Some(ServedHost::Exactly(name)) => name.clone(),
            _ => self.servers[0].authority(),
        }
    }
}

/// An origin of the operator, with the state of its servers.
pub struct OriginGroup {
    pub(crate) settings: GroupSettings,
    states: Mutex<GroupState>,
}

struct GroupState {
    servers: Vec<ServerState>,
    budget: RepetitionBudget,
    random: Random,
}

/// The state of one server, as metrics and explanations show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerStatus {
    /// Name of the origin.
    pub origin: String,
    /// URL of the server.
    pub server: String,
    /// Number of requests that the server has received. Probes do not count.
    pub requests: u64,
    /// Number of requests that failed: no connection, no response, or status 500, 502, 503 or 504.
    pub errors: u64,
    /// Number of requests in progress.
    pub in_flight: u64,
    /// True while the server rests: it failed, and receives no requests for some time.
    pub rests: bool,
}

impl OriginGroup {
    /// Creates an origin. `earlier` is the same origin before a reload of the configuration.
    /// Servers that `earlier` also has keep their state. A new server first receives only a small
    /// share of the requests.
    pub(crate) fn new(
        mut settings: GroupSettings,
        earlier: Option<&Self>,
        now: Instant,
        seed: u64,
    ) -> Self {
        settings.servers.truncate(MAX_SERVERS);
        let state = |server: &OriginServer| match earlier {
            None => ServerState::default(),
            Some(earlier) => {
                let known = earlier.settings.servers.iter().position(|known| known == server);
                known.map_or_else(
                    || ServerState::joining(now),
                    |number| earlier.states().servers[number].continued(),
                )
            }
        };
        let servers = settings.servers.iter().map(state).collect();
        let state =
            GroupState { servers, budget: RepetitionBudget::default(), random: Random::new(seed) };
        Self { settings, states: Mutex::new(state) }
    }

    fn states(&self) -> MutexGuard<'_, GroupState> {
        self.states.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Chooses a server for a request, and counts the request as in progress. The caller must call
    /// [`Self::end`] later. `waits` says whether the time until the response head counts as a
    /// measurement of the server's latency. Only the time of a request without a body and upgrade
    /// counts.
    pub(crate) fn begin(
        &self,
        tried: Tried,
        repeatable: Repeatable,
        waits: bool,
        now: Instant,
    ) -> Option<usize> {
        let GroupState { servers, budget, random } = &mut *self.states();
        let number = choose(servers, tried, repeatable, now, random)?;
        if tried.is_empty() {
            budget.earn();
        }
        let server = &mut servers[number];
        server.begin(now);
        if waits {
            server.load.wait(now);
        }
        Some(number)
    }

    /// Notes that a request no longer waits for its response head. It began to wait at `since`.
    pub(crate) fn wait_no_more(&self, number: usize, since: Instant) {
        self.states().servers[number].load.wait_no_more(since);
    }

    /// Notes that a request to this server has ended.
    pub(crate) fn end(&self, number: usize) {
        self.states().servers[number].load.end();
    }

    /// Records a response without a failure status. `since` is the time when the request began.
    /// `counts` means that its latency counts as a measurement of the server's speed.
    pub(crate) fn works(&self, number: usize, since: Instant, counts: bool, now: Instant) {
        let server = &mut self.states().servers[number];
        server.works(since, now);
        if counts {
            server.load.observe(now.since(since), now);
        }
    }

    /// Records a failed request. Returns true if the server rests from now on, which means that it
    /// receives no requests for some time.
    pub(crate) fn fails(&self, number: usize, fault: ServerFault, now: Instant) -> bool {
        let GroupState { servers, random, .. } = &mut *self.states();
        servers[number].fails(fault, now, random)
    }

    /// Returns true if another server may receive the request next. `received` means that one
    /// server may have received it already.
    pub(crate) fn may_try_another(
        &self,
        tried: Tried,
        repeatable: Repeatable,
        received: bool,
        now: Instant,
    ) -> bool {
        let GroupState { servers, budget, .. } = &mut *self.states();
        let is_one = usable(servers, tried, repeatable, now).next().is_some();
        is_one && (!received || budget.spend())
    }

    /// Returns true if all servers rest (receive no requests after failures), so that probably none
    /// answers a request.
    pub(crate) fn all_rest(&self, now: Instant) -> bool {
        self.states().servers.iter().all(|server| server.rank(now) == ServerRank::Rests)
    }

    /// Returns the servers that must be probed now, and notes that their probes begin.
    pub(crate) fn due_probes(&self, now: Instant) -> Vec<usize> {
        let Some(Probe { interval, .. }) = self.settings.probe else { return Vec::new() };
        let mut states = self.states();
        let servers = states.servers.iter_mut().enumerate();
        servers
            .filter_map(|(at, server)| server.begins_probe(interval, now).then_some(at))
            .collect()
    }

    pub(crate) fn probe_ends(&self, number: usize, is_good: bool, now: Instant) {
        self.states().servers[number].probe_ends(is_good, now);
    }

    /// Returns the server with this number as a destination. The operator chose it, so the
    /// destination policy allows private addresses.
    pub(crate) fn server(self: &Arc<Self>, number: usize) -> Origin {
        let OriginServer { scheme, host, port } = &self.settings.servers[number];
        let member = GroupMember { group: Arc::clone(self), server: Some(number) };
        let origin = Origin::new(*scheme, host, *port, ChosenBy::Operator);
        Origin { member: Some(member), ..origin }
    }

    /// Returns the origin as the destination of a request for which no server is chosen yet.
    pub(crate) fn any_server(self: &Arc<Self>) -> Origin {
        let mut origin = self.server(0);
        origin.member = Some(GroupMember { group: Arc::clone(self), server: None });
        origin
    }

    /// Returns the state of each server, for metrics and explanations.
    pub fn status(&self, now: Instant) -> Vec<ServerStatus> {
        let states = self.states();
        let servers = self.settings.servers.iter().zip(&states.servers);
        servers
            .map(|(server, state)| ServerStatus {
                origin: self.settings.name.clone(),
                server: server.to_string(),
                requests: state.requests,
                errors: state.errors,
                in_flight: state.load.in_flight(),
                rests: state.rank(now) != ServerRank::Works,
            })
            .collect()
    }
}

impl fmt::Debug for OriginGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.settings.fmt(f)
    }
}

/// An origin of the operator, and the chosen server if there is one. Two members are equal only if
/// they belong to the same origin. So a connection never has the TLS settings of another origin.
#[derive(Clone)]
pub(crate) struct GroupMember {
    pub(crate) group: Arc<OriginGroup>,
    pub(crate) server: Option<usize>,
}

impl GroupMember {
    /// Returns the name of the origin and the chosen server, for logs.
    pub(crate) fn names(&self) -> Option<(&str, &OriginServer)> {
        let GroupSettings { name, servers, .. } = &self.group.settings;
        Some((name, &servers[self.server?]))
    }
}

impl PartialEq for GroupMember {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.group, &other.group) && self.server == other.server
    }
}

impl Eq for GroupMember {}

impl Hash for GroupMember {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.group).hash(state);
        self.server.hash(state);
    }
}

impl fmt::Debug for GroupMember {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{:?}", self.group.settings.name, self.server)
    }
}
