//! From settings as written to settings in force: fills in defaults, and judges what several
//! settings say together. Pure: what depends on the machine comes in as [`Machine`].

use super::complaint::Complaints;
use super::connection_rows;
use super::contradictions;
use super::kind::Preset;
use super::machine::Machine;
use super::parse;
use super::store_choice::StoreChoice;
use super::table::SETTINGS;
use super::values::{OriginUrl, Output};
use super::written::Written;
use foxy_base::ByteSize;
use foxy_proxy::intercept::HostPattern;
use foxy_proxy::upstream::Cidr;
use foxy_schemes::{PolicyName, SchemeName};
use std::ffi::OsStr;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// By default, this part of the memory the process may use keeps responses ...
const MEMORY_PART: u64 = 8;
/// ... but at most this much, and at least this.
const MEMORY_RANGE: (ByteSize, ByteSize) = (ByteSize(16 << 20), ByteSize(1 << 30));
/// What is assumed of a machine that does not tell its memory.
const MEMORY_UNKNOWN: ByteSize = ByteSize(1 << 30);
/// By default, this part of the free disk becomes a new store ...
const DISK_PART: u64 = 10;
/// ... but at most this much.
const DISK_AT_MOST: ByteSize = ByteSize(10 << 30);

/// What foxy runs with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Where clients connect.
    pub listen: SocketAddr,
    /// Where clients connect over TLS, if anywhere.
    pub listen_tls: Option<SocketAddr>,
    /// Files of certificates shown there.
    pub tls_certificate: Vec<PathBuf>,
    /// Files of their keys, in the same order.
    pub tls_key: Vec<PathBuf>,
    /// Networks whose connections say who the client is.
    pub proxy_protocol_from: Vec<Cidr>,
    /// Networks of balancers that say over what clients came.
    pub forwarded_from: Vec<Cidr>,
    /// Where counters are served, if at all.
    pub admin: Option<SocketAddr>,
    /// Names under which the admin server is asked.
    pub admin_hosts: Vec<HostPattern>,
    /// The file with the word that lets anybody purge.
    pub admin_token_file: Option<PathBuf>,
    /// Networks whose clients may purge without it.
    pub purge_from: Vec<Cidr>,
    /// The server behind a reverse proxy; none for a forward proxy.
    pub origin: Option<OriginUrl>,
    /// Files of authorities that sign certificates of origin servers.
    pub origin_ca: Vec<PathBuf>,
    /// With whom HTTP/2 is spoken: `auto`, `off` or `prior-knowledge`.
    pub origin_http2: &'static str,
    /// DNS servers; none for those of the system.
    pub name_servers: Vec<SocketAddr>,
    /// Threads that serve clients.
    pub workers: usize,
    /// Networks that may be relayed to although they are not public.
    pub allow_destination: Vec<Cidr>,
    /// Ports CONNECT may tunnel to.
    pub connect_ports: Vec<u16>,
    /// The folder of the authority for intercepted clients, if any are.
    pub intercept_ca: Option<PathBuf>,
    /// The hosts whose clients are intercepted.
    pub intercept_hosts: Vec<HostPattern>,
    /// The stores, those of `cache-dir` too.
    pub store: Vec<StoreChoice>,
    /// Which of them takes a new record: its name.
    pub store_selection: &'static str,
    /// Bytes of disk for each store; none: what it has, or by free disk.
    pub size: Option<ByteSize>,
    /// How objects lie on disk.
    pub scheme: SchemeName,
    /// Which record goes when the disk is full.
    pub policy: PolicyName,
    /// The device's name, or `auto`.
    pub device: &'static str,
    /// What comes back after a crash: `crash` or `clean-stop`.
    pub recovery: &'static str,
    /// How the schemes of Squid's ufs number their files' folders: `consecutive` or `round-robin`.
    pub ufs_mapping: &'static str,
    /// Operations at which the scheme `aufs` opens nothing more.
    pub aufs_queue: usize,
    /// Who writes for the scheme `aufs`: `queued` or `waited`.
    pub aufs_writes: &'static str,
    /// Operations at which the scheme `diskd` opens nothing more.
    pub diskd_q1: usize,
    /// Operations at which a helper process is waited for.
    pub diskd_q2: usize,
    /// Bytes that the scheme `webcosm` should write in a day; none for all that is put.
    pub write_budget: Option<ByteSize>,
    /// Larger responses are not stored; none for what each store takes by its size.
    pub object_limit: Option<ByteSize>,
    /// For how long a negative response is fresh that says nothing of it.
    pub negative_lifetime: Duration,
    /// Bytes of responses, and of parts of large ones, kept in memory.
    pub memory: ByteSize,
    /// Larger bodies are not kept in memory, but for parts of them.
    pub memory_object_limit: ByteSize,
    /// How long to wait for whom.
    pub timeouts: Timeouts,
    /// How much of anything.
    pub limits: Limits,
    /// Where the access log goes.
    pub access_log: Output,
    /// Its format's name.
    pub access_log_format: &'static str,
    /// Which messages go to standard error.
    pub log_level: &'static str,
    /// How long a graceful stop waits.
    pub stop_after: Duration,
}

/// How much of anything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Client connections at a time.
    pub connections: usize,
    /// Connections of one client at a time.
    pub connections_per_client: usize,
    /// Bytes of a head.
    pub head_size: ByteSize,
    /// Lines of a head.
    pub headers: usize,
    /// Unused connections a worker keeps to all origin servers.
    pub idle_connections: usize,
    /// Unused connections a worker keeps to one origin server.
    pub idle_connections_per_origin: usize,
}

/// How long to wait for whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// For a client to go through the TLS handshake.
    pub tls_handshake: Duration,
    /// For the head of a request.
    pub client_head: Duration,
    /// Between requests.
    pub client_idle: Duration,
    /// Between two reads of a request's body.
    pub client_read: Duration,
    /// For a client to take more of a response.
    pub client_write: Duration,
    /// To look up an origin server's name.
    pub resolve: Duration,
    /// To connect to an origin server.
    pub connect: Duration,
    /// For an origin server to begin its response.
    pub origin_head: Duration,
    /// Between two reads of a response's body.
    pub origin_read: Duration,
    /// For an origin server to ask for a request's body.
    pub origin_continue: Duration,
    /// For an unused connection to an origin server.
    pub origin_idle: Duration,
    /// For the store to answer.
    pub store: Duration,
    /// For a tunnel through which nothing passes.
    pub tunnel_idle: Duration,
}

/// Gives every setting that is not written its default.
pub fn complete(written: &mut Written, machine: &Machine) {
    for setting in SETTINGS {
        let Preset::Fixed(texts) = setting.default else { continue };
        if super::show::value(&setting.kind, written).is_none() {
            let texts: Vec<&OsStr> = texts.iter().map(OsStr::new).collect();
            parse::put(&setting.kind, &texts, written)
                .expect("the table's defaults are sound; a test reads them");
        }
    }
    written.workers.get_or_insert(machine.cores);
    let connections = set(&written.connections);
    written.connections_per_client.get_or_insert(connection_rows::share(connections));
    if written.cache_dir.as_ref().is_none_or(Vec::is_empty) {
        written.store.get_or_insert_with(|| vec![StoreChoice::plain(machine.cache_folder.clone())]);
    }
    written.memory.get_or_insert_with(|| memory(machine.memory));
    let scheme = set(&written.scheme);
    let asks = |store: &StoreChoice| store.scheme.unwrap_or(scheme).row().takes_policy();
    if !written.sources.contains_key("policy") && !stores(written).iter().any(asks) {
        written.policy = None;
    }
}

fn memory(available: Option<ByteSize>) -> ByteSize {
    let available = available.unwrap_or(MEMORY_UNKNOWN);
    ByteSize(available.0 / MEMORY_PART).clamp(MEMORY_RANGE.0, MEMORY_RANGE.1)
}

/// The size of a new store on a disk with `free` bytes, in whole mebibytes.
pub fn new_store_size(free: ByteSize) -> ByteSize {
    let mebibytes = (free.0 / DISK_PART).min(DISK_AT_MOST.0) >> 20;
    ByteSize(mebibytes << 20)
}

/// Makes settings of a completed [`Written`], or says what does not go together.
pub fn resolve(written: &Written) -> Result<Settings, Complaints> {
    let settings = Settings {
        listen: set(&written.listen),
        listen_tls: set(&written.listen_tls),
        tls_certificate: set(&written.tls_certificate),
        proxy_protocol_from: set(&written.proxy_protocol_from),
        forwarded_from: set(&written.forwarded_from),
        tls_key: set(&written.tls_key),
        admin: set(&written.admin),
        admin_hosts: set(&written.admin_hosts),
        admin_token_file: written.admin_token_file.clone(),
        purge_from: set(&written.purge_from),
        origin: written.origin.clone(),
        origin_ca: set(&written.origin_ca),
        origin_http2: set(&written.origin_http2),
        name_servers: written.name_servers.clone().unwrap_or_default(),
        workers: set(&written.workers),
        allow_destination: set(&written.allow_destination),
        connect_ports: set(&written.connect_ports),
        intercept_ca: written.intercept_ca.clone(),
        intercept_hosts: set(&written.intercept_hosts),
        store: stores(written),
        store_selection: set(&written.store_selection),
        size: written.size,
        scheme: set(&written.scheme),
        policy: written.policy.unwrap_or_default(),
        device: set(&written.device),
        recovery: set(&written.recovery),
        ufs_mapping: set(&written.ufs_mapping),
        aufs_queue: set(&written.aufs_queue),
        aufs_writes: set(&written.aufs_writes),
        diskd_q1: set(&written.diskd_q1),
        diskd_q2: set(&written.diskd_q2),
        write_budget: written.write_budget,
        object_limit: written.object_limit,
        negative_lifetime: set(&written.negative_lifetime),
        memory: set(&written.memory),
        memory_object_limit: set(&written.memory_object_limit),
        timeouts: timeouts(written),
        limits: limits(written),
        access_log: set(&written.access_log),
        access_log_format: set(&written.access_log_format),
        log_level: set(&written.log_level),
        stop_after: set(&written.stop_after),
    };
    let complaints = contradictions::find(&settings, written);
    if complaints.is_empty() { Ok(settings) } else { Err(Complaints(complaints)) }
}

fn stores(written: &Written) -> Vec<StoreChoice> {
    let lines = written.cache_dir.iter().flatten().map(|line| line.store.clone());
    written.store.iter().flatten().cloned().chain(lines).collect()
}

fn timeouts(written: &Written) -> Timeouts {
    Timeouts {
        tls_handshake: set(&written.tls_handshake),
        client_head: set(&written.client_head),
        client_idle: set(&written.client_idle),
        client_read: set(&written.client_read),
        client_write: set(&written.client_write),
        resolve: set(&written.resolve),
        connect: set(&written.connect),
        origin_head: set(&written.origin_head),
        origin_read: set(&written.origin_read),
        origin_continue: set(&written.origin_continue),
        origin_idle: set(&written.origin_idle),
        store: set(&written.store_patience),
        tunnel_idle: set(&written.tunnel_idle),
    }
}

fn limits(written: &Written) -> Limits {
    Limits {
        connections: set(&written.connections),
        connections_per_client: set(&written.connections_per_client),
        head_size: set(&written.head_size),
        headers: set(&written.headers),
        idle_connections: set(&written.idle_connections),
        idle_connections_per_origin: set(&written.idle_connections_per_origin),
    }
}

fn set<T: Clone>(slot: &Option<T>) -> T {
    slot.clone().expect("`complete` has given every setting its default")
}

#[cfg(test)]
#[path = "resolve_tests.rs"]
mod tests;
