//! Turns requests into tunnels: CONNECT requests, and upgrades that the origin accepted.

use crate::answer;
use crate::client::Client;
use crate::client::pacing::PacedConnection;
use crate::core::addresses::client_ends::ClientEnds;
use crate::core::counters::Counter;
use crate::core::outcome::ForwardReason;
use crate::core::transport::Transport;
use crate::request::access::MediaType;
use crate::request::answered::{Aborted, AnswerOptions, SentResponse};
use crate::request::cache_status::CacheStatus;
use crate::request::reason::ErrorReason;
use crate::server::intercepting;
use crate::server::request_log::Ended;
use crate::upstream::{OpenTunnel, Origin, Responder, Tunnel, TunnelEnd, TunnelReport};
use crate::worker::Worker;
use bytes::Bytes;
use foxy_http::{Headers, RequestHead, ResponseHead};
use std::rc::Rc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};

pub(crate) async fn tunnel(
    worker: &Rc<Worker>,
    client: &mut Client<'_>,
    head: &RequestHead,
    options: AnswerOptions,
    (origin, ends): (Origin, ClientEnds),
) -> (Ended, u64) {
    if let Client::Http1(connection) = client
        && let Some(ended) =
            intercepting::opened(worker, connection, options, (&origin, ends.block())).await
    {
        return ended;
    }
    let opened = worker.upstream.connect(&origin, ends, &via(worker, head)).await;
    let OpenTunnel { stream, early, parent } = match opened {
        Ok(opened) => opened,
        Err(error) => {
            let reason = ErrorReason::Upstream(error.into());
            let (_, mut sender) = client.split(worker.settings().client_write);
            let result = answer::error(
                worker,
                &mut sender,
                AnswerOptions { keep: false, ..options },
                reason,
            )
            .await;
            let ended = Ended::from(result);
            return (ended, sender.sent());
        }
    };
    if let Client::Http1(connection) = client
        && !connection.is_at_tunnel()
    {
        return (Ended::Aborted(Aborted::Client), 0);
    }
    client
        .split(worker.settings().client_write)
        .1
        .answered_by(Responder { parent, ..Responder::default() });
    let outcome = forwarded(ForwardReason::Method, 200);
    let mut head =
        ResponseHead { reason: "Connection Established".into(), ..ResponseHead::new(200) };
    let status = outcome.of_cache(worker.settings().cache_name);
    head.headers.append("Cache-Status", status.to_string());
    carry(worker, client, &head, stream, early, sent(outcome, 200)).await
}

/// Returns the Via field of a CONNECT that is sent to a parent proxy. The field keeps the earlier
/// hops. If parents form a loop, each of them then finds its own name and stops.
fn via(worker: &Worker, head: &RequestHead) -> Headers {
    let mut headers = Headers::new();
    head.headers.get_all("via").for_each(|hops| headers.append("Via", hops));
    worker.add_via(head.version, &mut headers);
    headers
}

pub(crate) async fn switched(
    worker: &Rc<Worker>,
    client: &mut Client<'_>,
    mut head: ResponseHead,
    stream: Transport,
    rest: Bytes,
    reason: ForwardReason,
) -> (Ended, u64) {
    let outcome = forwarded(reason, head.status);
    let protocol = head.headers.get("upgrade").map(Bytes::copy_from_slice);
    foxy_http::strip_hop_by_hop(&mut head.headers);
    head.headers.append("Connection", "upgrade");
    if let Some(protocol) = protocol {
        head.headers.append("Upgrade", protocol);
    }
    let status = outcome.of_cache(worker.settings().cache_name);
    head.headers.append("Cache-Status", status.to_string());
    carry(worker, client, &head, stream, rest, sent(outcome, head.status)).await
}

const fn forwarded(reason: ForwardReason, status: u16) -> CacheStatus {
    CacheStatus::Forwarded {
        reason,
        status: Some(status),
        stored: false,
        collapsed: false,
        detail: None,
    }
}

fn sent(outcome: CacheStatus, status: u16) -> SentResponse {
    SentResponse { outcome, status, body_bytes: 0, media_type: MediaType::default() }
}

/// Sends `head` to the client, which opens the tunnel. Then passes bytes in both directions.
async fn carry(
    worker: &Rc<Worker>,
    client: &mut Client<'_>,
    head: &ResponseHead,
    mut origin: Transport,
    from_origin: Bytes,
    sent: SentResponse,
) -> (Ended, u64) {
    let (_, mut sender) = client.split(worker.settings().client_write);
    sender.record_opening(sent.status, sent.outcome);
    if sender.head(head).await.is_err() {
        return (Ended::Aborted(Aborted::Client), sender.sent());
    }
    let (head_bytes, pace) = (sender.sent(), sender.pace());
    worker.counters.add(Counter::Tunnels, 1);
    let idle = worker.settings().tunnel_idle;
    let report = match pace {
        Some(pace) => {
            relay(client, PacedConnection::new(&mut origin, pace), from_origin, idle).await
        }
        None => relay(client, &mut origin, from_origin, idle).await,
    };
    if report.end == TunnelEnd::Reset {
        // An origin must not take the bytes so far for all bytes (RFC 9113 §8.5).
        let _closed_already = origin.with_socket(tokio::net::TcpStream::set_zero_linger);
    }
    (
        Ended::Tunnelled(SentResponse { body_bytes: report.to_client, ..sent }),
        head_bytes + report.to_client,
    )
}

/// Passes bytes in both directions until the tunnel ends.
async fn relay<O: AsyncRead + AsyncWrite + Unpin>(
    client: &mut Client<'_>,
    origin: O,
    from_origin: Bytes,
    idle: Duration,
) -> TunnelReport {
    match client {
        Client::Http1(connection) => {
            let from_client = connection.buffer.split().freeze();
            let client = &mut connection.stream;
            Tunnel { client, from_client, origin, from_origin }.run(idle).await
        }
        Client::Http2(stream) => {
            let client = &mut stream.as_tunnel();
            Tunnel { client, from_client: Bytes::new(), origin, from_origin }.run(idle).await
        }
    }
}
