//! Probes the servers of origins: sends a GET to each server at the operator's interval, to find
//! out whether the server is healthy.

use crate::core::live::Live;
use crate::upstream::client::{UpstreamClient, UpstreamRequest};
use crate::upstream::exchange::{BodyEvent, HeadEvent};
use crate::upstream::origins::Origins;
use crate::upstream::origins::group::{OriginGroup, Probe, SentHost};
use crate::upstream::sending::RequestBody;
use bytes::Bytes;
use foxy_base::clock;
use foxy_http::{Headers, Method};
use std::sync::Arc;
use std::time::Duration;

/// Pause between two checks whether a server must be probed.
const PAUSE: Duration = Duration::from_millis(100);

/// A probe reads at most this many bytes of the response body. After a complete body, the
/// connection can be used again.
const MAX_BODY_BYTES: usize = 64 << 10;

/// Probes servers until the worker ends. Only one worker of the proxy probes servers.
pub(crate) async fn run(upstream: UpstreamClient, origins: Live<Origins>) {
    loop {
        for group in origins.get().groups() {
            for number in group.due_probes(clock::monotonic()) {
                tokio::task::spawn_local(probe(upstream.clone(), Arc::clone(group), number));
            }
        }
        tokio::time::sleep(PAUSE).await;
    }
}

async fn probe(upstream: UpstreamClient, group: Arc<OriginGroup>, number: usize) {
    let Some(Probe { path, interval }) = &group.settings.probe else { return };
    let sent = send(&upstream, &group, number, path);
    let is_good = tokio::time::timeout(*interval, sent).await.unwrap_or(false);
    group.probe_ends(number, is_good, clock::monotonic());
}

/// Sends one probe. Returns true if the server answers with a status from 200 to 399.
async fn send(
    upstream: &UpstreamClient,
    group: &Arc<OriginGroup>,
    number: usize,
    path: &str,
) -> bool {
    let host = match &group.settings.send_host {
        SentHost::Kept => group.settings.authority(),
        SentHost::Server => group.settings.servers[number].authority(),
        SentHost::Fixed(host) => host.clone(),
    };
    let mut headers = Headers::new();
    headers.append("Host", host);
    headers.append("User-Agent", "foxy-probe");
    let mut exchange = upstream.exchange(UpstreamRequest {
        origin: group.server(number),
        method: Method::Get,
        target: Bytes::copy_from_slice(path.as_bytes()),
        headers,
        body: RequestBody::none(),
    });
    let status = loop {
        match exchange.head().await {
            Ok(HeadEvent::Final(head, _)) => break head.status,
            Ok(HeadEvent::Continue | HeadEvent::Interim(_)) => {}
            Err(_) => return false,
        }
    };
    let mut read = 0;
    while read < MAX_BODY_BYTES {
        match exchange.next().await {
            Ok(BodyEvent::Data(data)) => read += data.len(),
            Ok(BodyEvent::Trailers(_)) => {}
            Ok(BodyEvent::End) => break,
            Err(_) => return false,
        }
    }
    (200..400).contains(&status)
}
