//! From a request's head to its answer, the same for every HTTP a client speaks.

use crate::answer::{self, After, Asked, Cut, Told};
use crate::cache_status::CacheStatus;
use crate::cached::{self, Got, Wanted};
use crate::client::{Client, Receiver};
use crate::client_block::ClientBlock;
use crate::exchange::{Plan, plan};
use crate::forward::{self, Forward, Forwarded};
use crate::purger;
use crate::reason::ErrorReason;
use crate::serve::Ended;
use crate::stored::CacheKey;
use crate::tunnelling::{switched, tunnel};
use crate::worker::Worker;
use bytes::Bytes;
use foxy_http::{BodyLength, Persistence, RequestEvent, RequestHead, ResponseHead, accepts_trailers};
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Answers one request; also says how many bytes were sent.
pub(crate) async fn request(
    worker: &Rc<Worker>,
    client: &mut Client<'_>,
    peer: SocketAddr,
    (head, body): (&RequestHead, BodyLength),
    refusal: Option<ErrorReason>,
) -> (Ended, u64) {
    let asked = Asked {
        head_only: head.method == foxy_http::Method::Head,
        version: head.version,
        keep: Persistence::of(head.version, &head.headers) == Persistence::KeepAlive
            && !worker.shared.stopping.load(Ordering::Relaxed),
        trailers: accepts_trailers(&head.headers),
    };
    let (settings, over) = (worker.settings(), client.scheme());
    let asks = ClientBlock::from(peer.ip());
    let (mut receiver, mut sender) = client.split(settings.client_write);
    if refusal.is_none() && purger::wants_explanation(worker, head, peer) {
        let result = purger::explain(worker, &mut sender, (head, asked), (body, over)).await;
        let ended = drained(&mut receiver, settings.drain_limit, settings.client_read, result).await;
        return (ended, sender.sent());
    }
    let planned = refusal.map(Plan::Refuse);
    let planned = planned.unwrap_or_else(|| plan(head, body, over, &settings.mode, &settings.via_name));
    let forward = match planned {
        Plan::Tunnel(origin) => return tunnel(worker, client, asked, (origin, asks)).await,
        Plan::Refuse(reason) => {
            let result = answer::error(worker, &mut sender, asked, reason).await;
            let ended = drained(&mut receiver, settings.drain_limit, settings.client_read, result).await;
            return (ended, sender.sent());
        }
        Plan::AnswerHere => {
            let mut answer = ResponseHead::new(200);
            answer.headers.append("Allow", "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS, TRACE");
            let outcome = CacheStatus::Local { detail: "max-forwards" };
            let result = answer::local(&mut sender, asked, answer, outcome, Bytes::new()).await;
            let ended = drained(&mut receiver, settings.drain_limit, settings.client_read, result).await;
            return (ended, sender.sent());
        }
        Plan::Purge(key) => {
            let key = CacheKey::new(key);
            let result = purger::answer(worker, &mut sender, (head, asked), peer, &key).await;
            let ended = drained(&mut receiver, settings.drain_limit, settings.client_read, result).await;
            return (ended, sender.sent());
        }
        Plan::Forward(origin, key, reason) => (origin, CacheKey::new(key), reason, None),
        Plan::LookUp(origin, key) => {
            let wanted = Wanted { head, origin, key: CacheKey::new(key), asked, client: asks };
            match cached::answer(worker, &mut sender, &wanted).await {
                Ok(Got::Answered(after, told)) => {
                    let result = Ok((after, told));
                    let ended =
                        drained(&mut receiver, settings.drain_limit, settings.client_read, result).await;
                    return (ended, sender.sent());
                }
                Ok(Got::Forward(reason, described)) => (wanted.origin, wanted.key, reason, described),
                Err(cut) => return (Ended::Cut(cut), sender.sent()),
            }
        }
    };
    let (origin, key, reason, described) = forward;
    let request = Forward { head, body, origin, key, reason, asked, client: asks, described };
    let result = forward::forward(worker, &mut receiver, &mut sender, request).await;
    let sent = sender.sent();
    match result {
        Ok(Forwarded::Answered(after, told)) => (Ended::Answered(after, told), sent),
        Ok(Forwarded::Switched(head, stream, rest)) => {
            switched(worker, client, head, stream, rest, reason).await
        }
        Err(cut) => (Ended::Cut(cut), sent),
    }
}

/// Reads what is left of a request whose answer did not need it, within limits, or gives the connection up. The rest of a
/// stream of HTTP/2 is in nobody's way.
async fn drained(
    receiver: &mut Receiver<'_>,
    limit: u64,
    patience: Duration,
    result: Result<(After, Told), Cut>,
) -> Ended {
    let (after, told) = match result {
        Ok(found) => found,
        Err(cut) => return Ended::Cut(cut),
    };
    if after == After::Close || matches!(receiver, Receiver::Http2(_)) {
        return Ended::Answered(after, told);
    }
    let mut left = limit;
    loop {
        match receiver.next(patience).await {
            Ok(RequestEvent::End) => return Ended::Answered(After::Keep, told),
            Ok(RequestEvent::Body(data)) if data.len() as u64 <= left => left -= data.len() as u64,
            Ok(RequestEvent::Trailers(_)) => {}
            Ok(RequestEvent::Body(_) | RequestEvent::Head(..)) | Err(_) => {
                return Ended::Answered(After::Close, told);
            }
        }
    }
}
