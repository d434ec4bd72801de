//! Settings as they were written: what is not given is not there. The command line and the file
//! each make one; `resolve` turns both into [`super::Settings`].

use super::complaint::Source;
use super::squid::CacheDir;
use super::store_choice::StoreChoice;
use super::values::{OriginUrl, Output};
use foxy_base::ByteSize;
use foxy_proxy::intercept::HostPattern;
use foxy_proxy::upstream::Cidr;
use foxy_schemes::{PolicyName, SchemeName};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// One place for each row of the table.
#[derive(Debug, Default)]
pub struct Written {
    pub listen: Option<SocketAddr>,
    pub listen_tls: Option<Option<SocketAddr>>,
    pub tls_certificate: Option<Vec<PathBuf>>,
    pub proxy_protocol_from: Option<Vec<Cidr>>,
    pub forwarded_from: Option<Vec<Cidr>>,
    pub tls_key: Option<Vec<PathBuf>>,
    pub tls_handshake: Option<Duration>,
    pub admin: Option<Option<SocketAddr>>,
    pub admin_hosts: Option<Vec<HostPattern>>,
    pub admin_token_file: Option<PathBuf>,
    pub purge_from: Option<Vec<Cidr>>,
    pub origin: Option<OriginUrl>,
    pub origin_ca: Option<Vec<PathBuf>>,
    pub origin_http2: Option<&'static str>,
    pub name_servers: Option<Vec<SocketAddr>>,
    pub workers: Option<usize>,
    pub allow_destination: Option<Vec<Cidr>>,
    pub connect_ports: Option<Vec<u16>>,
    pub intercept_ca: Option<PathBuf>,
    pub intercept_hosts: Option<Vec<HostPattern>>,
    pub store: Option<Vec<StoreChoice>>,
    pub cache_dir: Option<Vec<CacheDir>>,
    pub store_selection: Option<&'static str>,
    pub size: Option<ByteSize>,
    pub scheme: Option<SchemeName>,
    pub policy: Option<PolicyName>,
    pub device: Option<&'static str>,
    pub recovery: Option<&'static str>,
    pub ufs_mapping: Option<&'static str>,
    pub aufs_queue: Option<usize>,
    pub aufs_writes: Option<&'static str>,
    pub diskd_q1: Option<usize>,
    pub diskd_q2: Option<usize>,
    pub object_limit: Option<ByteSize>,
    pub write_budget: Option<ByteSize>,
    pub negative_lifetime: Option<Duration>,
    pub memory: Option<ByteSize>,
    pub memory_object_limit: Option<ByteSize>,
    pub client_head: Option<Duration>,
    pub client_idle: Option<Duration>,
    pub client_read: Option<Duration>,
    pub client_write: Option<Duration>,
    pub resolve: Option<Duration>,
    pub connect: Option<Duration>,
    pub origin_head: Option<Duration>,
    pub origin_read: Option<Duration>,
    pub origin_continue: Option<Duration>,
    pub origin_idle: Option<Duration>,
    pub store_patience: Option<Duration>,
    pub tunnel_idle: Option<Duration>,
    pub connections: Option<usize>,
    pub connections_per_client: Option<usize>,
    pub head_size: Option<ByteSize>,
    pub headers: Option<usize>,
    pub idle_connections: Option<usize>,
    pub idle_connections_per_origin: Option<usize>,
    pub access_log: Option<Output>,
    pub access_log_format: Option<&'static str>,
    pub log_level: Option<&'static str>,
    pub stop_after: Option<Duration>,
    /// Where each setting that is given was written, by key.
    pub sources: BTreeMap<&'static str, Source>,
}
