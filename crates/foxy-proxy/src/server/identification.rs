//! Gives each request an id: the id that a trusted client sent, or a new id. Passes the id on to
//! origins. Also decides whether the answer has a `Server-Timing` field.

use crate::client::Sender;
use crate::request::answered::Progress;
use crate::server::listener::is_unix;
use crate::server::purger::may_purge;
use crate::settings::ServerTiming;
use crate::worker::Worker;
use foxy_http::RequestHead;
use std::net::SocketAddr;

const REQUEST_ID: &str = "X-Request-Id";
/// Longest id in bytes that a client may give.
const MAX_ID: usize = 128;

/// The field with which a client asks for facts about its request.
const EXPLAIN: &str = "foxy-explain";

/// The facts for which a client asks with the field `Foxy-Explain`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    Nothing,
    /// An answer with a `Server-Timing` field.
    Times,
    /// An explanation instead of the answer.
    Explanation,
}

/// Gives a request its id. Adds the id to the request if the operator wants it for origins. Returns
/// the facts for which the client asks.
pub(crate) fn identify(
    worker: &Worker,
    sender: &Sender<'_>,
    head: &mut RequestHead,
    peer: SocketAddr,
) -> Asked {
    let settings = worker.settings();
    let address = peer.ip().to_canonical();
    let is_trusted = settings.forwarded_from.iter().any(|block| block.contains(address));
    if is_trusted
        && !is_unix(peer)
        && let Some(id) = head.headers.get(REQUEST_ID).and_then(valid)
    {
        sender.with_progress(|progress| progress.named(id));
    }
    if settings.sends_request_id {
        head.headers.set(REQUEST_ID, sender.with_progress(Progress::id));
    }
    let asked = asked(worker, head, peer);
    if asked == Asked::Times || settings.server_timing == ServerTiming::Always {
        sender.with_progress(|progress| progress.time(true));
    }
    asked
}

/// Returns the value of a field as an id, if it is safe to write this value to logs.
fn valid(field: &[u8]) -> Option<&str> {
    let is_safe = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.:+/=".contains(byte);
    let is_valid = (1..=MAX_ID).contains(&field.len()) && field.iter().all(is_safe);
    std::str::from_utf8(field).ok().filter(|_| is_valid)
}

/// Returns the facts for which a client that may purge asks. If the client asks for times beside the
/// usual answer, removes the field `Foxy-Explain`, so that no origin receives it.
fn asked(worker: &Worker, head: &mut RequestHead, peer: SocketAddr) -> Asked {
    let Some(field) = head.headers.get(EXPLAIN) else { return Asked::Nothing };
    let is_timing = field == b"timing";
    match (may_purge(worker, head, peer), is_timing) {
        (false, _) => Asked::Nothing,
        (true, false) => Asked::Explanation,
        (true, true) => {
            head.headers.remove(EXPLAIN);
            Asked::Times
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_safe_id_of_a_client_is_taken_over() {
        for id in ["a", "7f-3_2.x:y+z/=", &"x".repeat(128)] {
            assert_eq!(valid(id.as_bytes()), Some(id));
        }
        for id in ["", "a b", "a\"b", "\u{e9}", "a\tb", &"x".repeat(129)] {
            assert_eq!(valid(id.as_bytes()), None, "{id:?}");
        }
    }
}
