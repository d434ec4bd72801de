//! The table of Squid's directives. A row converts a directive, or says why the import does not
//! convert it.

use super::super::handling::UNIT;
use super::super::report::ImportReason;
use super::lines::SquidLine;
use super::{
    SquidImport, bandwidth, cache_access, caching, headers, listeners, network, peers, refresh,
};

/// The way in which the import treats a directive.
#[derive(Clone, Copy)]
pub enum Handling {
    Convert(for<'i, 'f> fn(&'i mut SquidImport<'f>, &SquidLine) -> Result<(), ImportReason>),
    /// foxy needs no setting for this directive. The text says what foxy does.
    NotNeeded(&'static str),
    /// foxy has no equivalent.
    Missing(&'static str),
    /// foxy has no equivalent, and so permits more than the original.
    Opens(&'static str),
    /// A list of `allow` and `deny` lines without an equivalent. Only a `deny` line makes foxy
    /// permit more than Squid.
    Denials(&'static str),
}

use Handling::{Convert, Denials, Missing, NotNeeded, Opens};

const NEIGHBOURS: &str = "foxy asks no neighbour caches with ICP, HTCP or cache digests";
const OWN_ENGINE: &str = "foxy's store has its own rule of eviction";
const NO_BODY_LIMIT: &str = "foxy limits no request body; let the origins limit it";
const HELPER: &str = "foxy calls no helper program, so it serves requests that the helper refused";
const SHARED_FETCH: &str = "foxy always shares a fetch between clients";

/// Rows by the name of the directive. A directive without a row has no equivalent in foxy.
pub const TABLE: &[(&str, Handling)] = &[
    ("acl", Convert(|import, line| import.acl(line))),
    ("http_access", Convert(|import, line| import.http_access(line))),
    ("cache", Convert(cache_access::cache)),
    ("no_cache", Convert(cache_access::cache)),
    ("store_miss", Convert(cache_access::store_miss)),
    ("send_hit", Convert(cache_access::send_hit)),
    ("include", Convert(|import, line| import.include(line))),
    ("http_port", Convert(listeners::http_port)),
    ("https_port", Convert(listeners::https_port)),
    ("proxy_protocol_access", Convert(listeners::proxy_protocol_access)),
    ("if", Opens("foxy cannot evaluate the condition; import the branch that is in force")),
    ("dns_nameservers", Convert(network::name_servers)),
    ("access_log", Convert(network::access_log)),
    ("cache_access_log", Convert(network::access_log)),
    ("cache_dir", Convert(caching::cache_dir)),
    ("cache_mem", Convert(caching::cache_mem)),
    ("maximum_object_size", Convert(caching::maximum_object_size)),
    ("maximum_object_size_in_memory", Convert(caching::maximum_object_size_in_memory)),
    ("negative_ttl", Convert(caching::negative_ttl)),
    ("refresh_pattern", Convert(refresh::refresh_pattern)),
    ("store_dir_select_algorithm", Convert(caching::store_selection)),
    ("cache_peer", Convert(peers::cache_peer)),
    ("cache_peer_access", Convert(peers::cache_peer_access)),
    ("never_direct", Convert(peers::never_direct)),
    ("always_direct", Convert(peers::always_direct)),
    ("prefer_direct", Convert(peers::prefer_direct)),
    ("request_header_access", Convert(headers::request_header_access)),
    ("reply_header_access", Convert(headers::reply_header_access)),
    ("request_header_replace", Missing("foxy replaces a field for every request or none")),
    ("request_header_add", Missing("see `request-header-set` of a rule, which replaces a field")),
    ("reply_header_add", Missing("see `response-header-set` of a rule, which replaces a field")),
    ("forwarded_for", Convert(headers::forwarded_for)),
    ("via", Convert(headers::via)),
    ("connect_timeout", Convert(|import, line| network::time(import, line, "timeouts.connect"))),
    ("read_timeout", Convert(|import, line| network::time(import, line, "timeouts.origin-read"))),
    ("write_timeout", Convert(|import, line| network::time(import, line, "timeouts.client-write"))),
    (
        "request_timeout",
        Convert(|import, line| network::time(import, line, "timeouts.client-head")),
    ),
    (
        "client_idle_pconn_timeout",
        Convert(|import, line| network::time(import, line, "timeouts.client-idle")),
    ),
    (
        "server_idle_pconn_timeout",
        Convert(|import, line| network::time(import, line, "timeouts.origin-idle")),
    ),
    ("pconn_timeout", Convert(|import, line| network::time(import, line, "timeouts.origin-idle"))),
    ("dns_timeout", Convert(|import, line| network::time(import, line, "timeouts.resolve"))),
    ("shutdown_lifetime", Convert(|import, line| network::time(import, line, "stop-after"))),
    ("request_header_max_size", Convert(network::head_size)),
    ("client_ip_max_connections", Convert(network::connections_per_client)),
    ("auth_param", Convert(network::auth_param)),
    ("adapted_http_access", Denials("foxy refuses requests by `http_access` alone")),
    ("http_access2", Denials("foxy refuses requests by `http_access` alone")),
    ("http_reply_access", Denials("foxy refuses no response")),
    ("miss_access", Denials("foxy refuses no misses")),
    ("url_rewrite_access", NotNeeded("see `url_rewrite_program`")),
    ("url_rewrite_program", Opens(HELPER)),
    ("redirect_program", Opens(HELPER)),
    ("external_acl_type", Missing("rules with this list are not converted")),
    ("icap_enable", Opens("foxy has no ICAP; an ICAP service may refuse requests")),
    ("icap_service", Opens("foxy has no ICAP; an ICAP service may refuse requests")),
    ("ecap_service", Opens("foxy has no eCAP; an eCAP service may refuse requests")),
    ("request_body_max_size", Opens(NO_BODY_LIMIT)),
    ("reply_body_max_size", Opens("foxy limits no response body")),
    (
        "follow_x_forwarded_for",
        Opens("rules see the address of the connection, which your rules may allow"),
    ),
    ("ssl_bump", Missing("see `intercept-hosts` and `foxy ca init`")),
    ("deny_info", Missing("see `message` of a rule")),
    ("delay_pools", NotNeeded("see `delay_access`")),
    ("delay_class", Convert(bandwidth::delay_class)),
    ("delay_access", Convert(bandwidth::delay_access)),
    ("delay_parameters", Convert(bandwidth::delay_parameters)),
    ("delay_initial_bucket_level", NotNeeded("a limit of foxy has no store of unused bytes")),
    ("client_delay_pools", Opens("foxy limits no bytes that clients send")),
    ("client_delay_access", Opens("foxy limits no bytes that clients send")),
    ("logformat", Missing("foxy has the formats squid, combined and json")),
    ("tcp_outgoing_address", Missing("the routing table of the system decides")),
    ("visible_hostname", Missing("foxy names itself `foxy` in Via")),
    ("unique_hostname", Missing("foxy names itself `foxy` in Via")),
    ("httpd_suppress_version_string", NotNeeded("foxy never shows its version")),
    ("minimum_object_size", Missing("see `min-object` of a store")),
    ("error_directory", Missing("foxy has its own texts of errors")),
    ("snmp_port", Missing("see /metrics of the admin server")),
    ("cachemgr_passwd", NotNeeded("see `admin-token-file`")),
    ("cache_mgr", NotNeeded("foxy shows no address of a person")),
    ("coredump_dir", NotNeeded(UNIT)),
    ("pid_filename", NotNeeded(UNIT)),
    ("cache_effective_user", NotNeeded(UNIT)),
    ("cache_effective_group", NotNeeded(UNIT)),
    ("max_filedescriptors", NotNeeded("foxy takes the hard limit of the system")),
    ("workers", NotNeeded("foxy has a thread for each core; see `workers`")),
    ("cpu_affinity_map", NotNeeded(UNIT)),
    ("logfile_rotate", NotNeeded("SIGUSR1 reopens the log; the package has a logrotate file")),
    ("cache_log", NotNeeded("foxy writes messages to standard error")),
    ("cache_store_log", NotNeeded("foxy has no log of its store")),
    ("debug_options", NotNeeded("see `log-level`")),
    ("strip_query_terms", NotNeeded("the access log has whole URLs")),
    ("icp_port", NotNeeded(NEIGHBOURS)),
    ("icp_access", NotNeeded(NEIGHBOURS)),
    ("htcp_port", NotNeeded(NEIGHBOURS)),
    ("htcp_access", NotNeeded(NEIGHBOURS)),
    ("digest_generation", NotNeeded(NEIGHBOURS)),
    ("pinger_enable", NotNeeded(NEIGHBOURS)),
    ("snmp_access", NotNeeded("foxy has no SNMP")),
    ("memory_replacement_policy", NotNeeded(OWN_ENGINE)),
    ("cache_replacement_policy", NotNeeded(OWN_ENGINE)),
    ("cache_swap_low", NotNeeded(OWN_ENGINE)),
    ("cache_swap_high", NotNeeded(OWN_ENGINE)),
    ("collapsed_forwarding", NotNeeded(SHARED_FETCH)),
    ("half_closed_clients", NotNeeded("foxy closes half-closed connections")),
    ("ftp_user", NotNeeded("foxy fetches no FTP")),
    ("ftp_passive", NotNeeded("foxy fetches no FTP")),
    ("hierarchy_stoplist", NotNeeded("see `cache deny`")),
    ("hosts_file", NotNeeded("foxy reads /etc/hosts")),
    ("request_entities", NotNeeded("foxy passes bodies of every method")),
    ("ipcache_size", NotNeeded("foxy bounds its own memory of names")),
    ("fqdncache_size", NotNeeded("foxy looks up no names of addresses")),
    ("positive_dns_ttl", NotNeeded("foxy uses the lifetimes of DNS")),
    ("negative_dns_ttl", NotNeeded("foxy uses the lifetimes of DNS")),
    ("dns_v4_first", NotNeeded("foxy tries IPv4 and IPv6 at once")),
    ("quick_abort_min", Missing("foxy has no setting for fetches whose client has left")),
    ("quick_abort_max", Missing("foxy has no setting for fetches whose client has left")),
    ("quick_abort_pct", Missing("foxy has no setting for fetches whose client has left")),
    ("range_offset_limit", NotNeeded("foxy stores slices of large responses")),
];
