//! What came of a request, for the counters and the access log.

use crate::access::AccessRecord;
use crate::answer::{Cut, Told};
use crate::cache_status::CacheStatus;
use crate::counters::Counter;
use crate::serve::Ended;
use crate::worker::Worker;
use foxy_base::{Instant, clock};
use foxy_http::RequestHead;
use std::net::SocketAddr;

/// Counts and logs a request that is over, and how many bytes went to its client.
pub(crate) fn record(
    worker: &Worker,
    client: SocketAddr,
    started: Instant,
    head: Option<&RequestHead>,
    (ended, bytes): (&Ended, u64),
) {
    worker.counters.add(Counter::BytesToClients, bytes);
    let told = match ended {
        Ended::Answered(_, told) | Ended::Tunnelled(told) | Ended::Intercepted(_, told) => Some(told),
        Ended::Cut(cut) => {
            if *cut == Cut::Client {
                worker.counters.add(Counter::ClientsLeft, 1);
            }
            None
        }
    };
    log(worker, client, started, head, (told, bytes));
}

fn log(
    worker: &Worker,
    client: SocketAddr,
    started: Instant,
    head: Option<&RequestHead>,
    (told, bytes): (Option<&Told>, u64),
) {
    let Some(sink) = &worker.shared.sink else { return };
    let outcome = told.map_or(CacheStatus::Local { detail: "cut" }, |told| told.outcome);
    let media_type = told.map(|told| told.media_type).unwrap_or_default();
    let header = |name: &str| head.and_then(|head| head.headers.get(name));
    sink.record(&AccessRecord {
        end: clock::wall(),
        elapsed: clock::monotonic().since(started),
        client,
        outcome,
        status: told.map_or(0, |told| told.status),
        bytes,
        body_bytes: told.map_or(0, |told| told.body_bytes),
        method: head.map_or("", |head| head.method.as_str()),
        url: head.map_or(b"", |head| head.target.raw()),
        version: head.map_or("", |head| head.version.as_str()),
        content_type: media_type.as_bytes(),
        referer: header("referer"),
        user_agent: header("user-agent"),
    });
}
