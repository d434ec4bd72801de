//! From foxy's settings to the proxy's.

use crate::settings::Settings;
use crate::settings::values::OriginUrl;
use foxy_device::release_freed_memory;
use foxy_http::Limits;
use foxy_proxy::request::mode::{Mode, ReverseOrigin};
use foxy_proxy::settings::ProxySettings;
use foxy_proxy::upstream::{DestinationPolicy, OriginHttp2, OriginTls, UpstreamSettings};
use std::net::SocketAddr;

/// Settings for the proxy. `tls` is how origins are spoken with; `own` are further addresses of
/// this process, which nobody may be relayed to.
pub fn proxy_settings(
    settings: &Settings,
    tls: OriginTls,
    own: Vec<SocketAddr>,
    seed: u64,
) -> ProxySettings {
    let (waits, limits) = (&settings.timeouts, limits(settings));
    ProxySettings {
        listen: vec![settings.network.listen],
        listen_tls: settings.network.listen_tls.into_iter().collect(),
        proxy_protocol_from: settings.network.proxy_protocol_from.clone(),
        forwarded_from: settings.network.forwarded_from.clone(),
        client_handshake: waits.tls_handshake,
        mode: match &settings.network.origin {
            None => Mode::Forward,
            Some(origin) => {
                let OriginUrl { scheme, host, port } = origin.clone();
                Mode::Reverse { origin: ReverseOrigin { scheme, host, port } }
            }
        },
        workers: settings.network.workers,
        memory: settings.memory.size.0,
        memory_object_limit: settings.memory.object_limit.0,
        negative_lifetime: settings.disk.negative_lifetime.as_secs(),
        purge_from: settings.access.purge_from.clone(),
        destinations: DestinationPolicy {
            allowed: settings.access.allow_destination.clone(),
            connect_ports: settings.access.connect_ports.clone(),
            own,
        },
        upstream: UpstreamSettings { tls, ..upstream_settings(settings, limits) },
        client_head: waits.client_head,
        client_idle: waits.client_idle,
        client_read: waits.client_read,
        client_write: waits.client_write,
        tunnel_idle: waits.tunnel_idle,
        store_patience: waits.store,
        connections: settings.limits.connections,
        connections_per_client: settings.limits.connections_per_client,
        limits,
        via_name: format!("foxy-{seed:016x}"),
        stop_after: settings.operation.stop_after,
        seed,
        give_back: Some(release_freed_memory),
        ..ProxySettings::default()
    }
}

fn upstream_settings(settings: &Settings, limits: Limits) -> UpstreamSettings {
    let waits = &settings.timeouts;
    UpstreamSettings {
        resolve_timeout: waits.resolve,
        connect_timeout: waits.connect,
        head_timeout: waits.origin_head,
        body_timeout: waits.origin_read,
        continue_timeout: waits.origin_continue,
        idle_timeout: waits.origin_idle,
        idle_per_origin: settings.limits.idle_connections_per_origin,
        idle_total: settings.limits.idle_connections,
        http2: origin_http2(settings.network.origin_http2),
        limits,
        ..UpstreamSettings::default()
    }
}

fn origin_http2(word: &str) -> OriginHttp2 {
    match word {
        "off" => OriginHttp2::Off,
        "prior-knowledge" => OriginHttp2::PriorKnowledge,
        _ => OriginHttp2::Auto,
    }
}

fn limits(settings: &Settings) -> Limits {
    let head = usize::try_from(settings.limits.head_size.0).unwrap_or(usize::MAX);
    let base = Limits::default();
    Limits {
        head,
        request_line: base.request_line.min(head),
        headers: settings.limits.headers,
        ..base
    }
}
