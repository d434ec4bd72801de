//! Converts the settings of foxy to the settings of the crate `foxy-proxy`. Names every field of
//! both structs, so that the compiler reports a forgotten field.

use crate::settings::Settings;
use crate::settings::rows::DiskCache;
use crate::settings::rules::list::RuleList;
use foxy_device::release_freed_memory;
use foxy_http::Limits;
use foxy_proxy::core::rules::RulesInForce;
use foxy_proxy::core::users::UserBook;
use foxy_proxy::request::auto_config::AutoConfig;
use foxy_proxy::request::mode::Mode;
use foxy_proxy::server::handle::NewSettings;
use foxy_proxy::settings::{ProxySettings, ServerTiming};
use foxy_proxy::upstream::{
    DestinationPolicy, OriginHttp2, OriginSource, OriginTls, UpstreamSettings,
};
use foxy_rules::coding::Compression;
use foxy_rules::operator::OperatorRules;
use std::net::SocketAddr;

/// Converts the settings. `own` lists further addresses of this process, because foxy must not
/// forward requests to itself.
pub fn proxy_settings(
    settings: &Settings,
    (tls, mode): (OriginTls, Mode),
    own: Vec<SocketAddr>,
    seed: u64,
) -> ProxySettings {
    let Settings {
        network,
        access,
        acme: _,
        cold: _,
        parents,
        fleet: _,
        disk,
        memory,
        timeouts,
        limits,
        operation,
        rules,
        origins: _,
    } = settings;
    let default = ProxySettings::default();
    ProxySettings {
        proxy_protocol_from: network.proxy_protocol_from.clone(),
        forwarded_from: network.forwarded_from.clone(),
        sends_request_id: operation.request_ids == "send",
        server_timing: match operation.server_timing {
            "always" => ServerTiming::Always,
            _ => ServerTiming::Asked,
        },
        mode,
        auto_config: (network.pac == "on")
            .then(|| AutoConfig::new(parents.no_proxy.as_deref().unwrap_or_default())),
        workers: network.workers,
        rules: RulesInForce::new(compiled(rules)),
        allow_client: access.allow_client.clone().into(),
        purge_from: access.purge_from.clone().into(),
        destinations: DestinationPolicy {
            allowed: access.allow_destination.clone(),
            connect_ports: access.connect_ports.clone(),
            own,
        },
        negative_lifetime: disk.negative_lifetime.as_secs().into(),
        compression: compression(disk),
        memory: memory.size.0,
        memory_object_limit: memory.object_limit.0,
        client_handshake: timeouts.tls_handshake,
        client_head: timeouts.client_head,
        client_idle: timeouts.client_idle,
        client_read: timeouts.client_read,
        client_write: timeouts.client_write,
        tunnel_idle: timeouts.tunnel_idle,
        store_patience: timeouts.store,
        connections: limits.connections,
        connections_per_client: limits.connections_per_client,
        limits: message_limits(settings),
        upstream: UpstreamSettings { tls, ..upstream_settings(settings) },
        stop_after: operation.stop_after,
        via_name: format!("foxy-{seed:016x}"),
        seed,
        give_back: Some(release_freed_memory),
        listen: default.listen,
        listen_tls: default.listen_tls,
        listen_transparent: default.listen_transparent,
        listen_nodes: default.listen_nodes,
        node_tls: default.node_tls,
        cache_name: default.cache_name,
        is_redirected: network.is_redirected(),
        client_tls: default.client_tls,
        interception: default.interception,
        users: default.users,
        purge_token: default.purge_token,
        object_limit: default.object_limit,
        descriptors_for_connections: default.descriptors_for_connections,
        drain_limit: default.drain_limit,
    }
}

/// Returns the settings that a reload can change while foxy runs.
pub fn new_settings(settings: &Settings, users: Option<UserBook>) -> NewSettings {
    NewSettings {
        users,
        rules: compiled(&settings.rules),
        allow_client: settings.access.allow_client.clone(),
        purge_from: settings.access.purge_from.clone(),
        negative_lifetime: settings.disk.negative_lifetime.as_secs(),
    }
}

fn compression(disk: &DiskCache) -> Compression {
    let (codings, types) = (disk.compress.clone(), disk.compress_types.clone());
    Compression { codings, least: disk.compress_min.0, types }
}

fn compiled(rules: &RuleList) -> OperatorRules {
    rules.compiled().expect("`resolve` has compiled the rules before").clone()
}

fn upstream_settings(settings: &Settings) -> UpstreamSettings {
    let Settings { network, timeouts, limits, .. } = settings;
    let default = UpstreamSettings::default();
    UpstreamSettings {
        resolve_timeout: timeouts.resolve,
        connect_timeout: timeouts.connect,
        head_timeout: timeouts.origin_head,
        body_timeout: timeouts.origin_read,
        continue_timeout: timeouts.origin_continue,
        idle_timeout: timeouts.origin_idle,
        idle_per_origin: limits.idle_connections_per_origin,
        idle_total: limits.idle_connections,
        http2: match network.origin_http2 {
            "off" => OriginHttp2::Off,
            "prior-knowledge" => OriginHttp2::PriorKnowledge,
            _ => OriginHttp2::Auto,
        },
        source: match network.origin_source {
            "client" => OriginSource::Client,
            _ => OriginSource::Proxy,
        },
        limits: message_limits(settings),
        parents: default.parents,
        tls: default.tls,
        fleet: default.fleet,
        lookups: default.lookups,
        lookups_per_client: default.lookups_per_client,
    }
}

fn message_limits(settings: &Settings) -> Limits {
    let head = usize::try_from(settings.limits.head_size.0).unwrap_or(usize::MAX);
    let base = Limits::default();
    let request_line = base.request_line.min(head);
    Limits { head, request_line, headers: settings.limits.headers, ..base }
}
