//! From a request's head to its answer, the same for every HTTP a client speaks.

use crate::answer;
use crate::answer::transaction::Transaction;
use crate::cache::stored::CacheKey;
use crate::client::sender::Sender;
use crate::client::{Client, Receiver};
use crate::core::client_block::ClientBlock;
use crate::lookup;
use crate::lookup::forward::{self, Forward, Forwarded};
use crate::lookup::result::LookupResult;
use crate::request::answer_options::AnswerOptions;
use crate::request::cache_status::CacheStatus;
use crate::request::exchange::{Plan, plan};
use crate::request::forwarding_fields::{replace, take_off};
use crate::request::mode::Mode;
use crate::request::reason::ErrorReason;
use crate::request::sent::{Aborted, After, Sent};
use crate::request::wanted::Wanted;
use crate::server::ended::Ended;
use crate::server::purger;
use crate::server::tunnelling::{switched, tunnel};
use crate::settings::ProxySettings;
use crate::worker::Worker;
use bytes::Bytes;
use foxy_http::{
    BodyLength, Method, Persistence, RequestEvent, RequestHead, ResponseHead, accepts_trailers,
};
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::atomic::Ordering;

/// Answers one request; also says how many bytes were sent.
pub(crate) async fn request(
    worker: &Rc<Worker>,
    client: &mut Client<'_>,
    peer: SocketAddr,
    (head, body): (&mut RequestHead, BodyLength),
    refusal: Option<ErrorReason>,
) -> (Ended, u64) {
    let options = options(worker, head);
    let settings = worker.settings();
    let over = match &settings.mode {
        Mode::Reverse { origin } => {
            replace(head, peer, client.scheme(), (origin, &settings.forwarded_from))
        }
        Mode::Forward => client.scheme(),
    };
    let asks = ClientBlock::from(peer.ip());
    let (mut receiver, mut sender) = client.split(settings.client_write);
    if refusal.is_none() && purger::wants_explanation(worker, head, peer) {
        let result = purger::explain(worker, &mut sender, (head, options), (body, over)).await;
        let ended = drained(&mut receiver, settings, result).await;
        return (ended, sender.sent());
    }
    let plan = || plan(head, body, over, &settings.mode, &settings.via_name);
    let planned = refusal.map_or_else(plan, Plan::Refuse);
    if let Plan::LookUp(..) = planned {
        take_off(&mut head.headers, &settings.mode);
    }
    let head = &*head;
    let (origin, key, reason, described) = match planned {
        Plan::Tunnel(origin) => return tunnel(worker, client, options, (origin, asks)).await,
        Plan::Refuse(reason) => {
            // A client that takes a CONNECT for granted sends the tunnel's bytes next: these are no
            // requests.
            let options =
                AnswerOptions { keep: options.keep && head.method != Method::Connect, ..options };
            let result = answer::error(worker, &mut sender, options, reason).await;
            let ended = drained(&mut receiver, settings, result).await;
            return (ended, sender.sent());
        }
        Plan::AnswerHere => {
            let result = methods(&mut sender, options).await;
            let ended = drained(&mut receiver, settings, result).await;
            return (ended, sender.sent());
        }
        Plan::Purge(key) => {
            let key = CacheKey::new(key);
            let result = purger::answer(worker, &mut sender, (head, options), peer, &key).await;
            let ended = drained(&mut receiver, settings, result).await;
            return (ended, sender.sent());
        }
        Plan::Forward(origin, key, reason) => (origin, CacheKey::new(key), reason, None),
        Plan::LookUp(origin, key) => {
            let wanted = Wanted { head, origin, key: CacheKey::new(key), options, client: asks };
            let mut transaction = Transaction::begin(worker, &mut sender, &wanted);
            match lookup::answer(&mut transaction).await {
                Ok(LookupResult::Answered(after, sent)) => {
                    let ended = drained(&mut receiver, settings, Ok((after, sent))).await;
                    return (ended, sender.sent());
                }
                Ok(LookupResult::Forward(reason, described)) => {
                    (wanted.origin, wanted.key, reason, described)
                }
                Err(aborted) => return (Ended::Aborted(aborted), sender.sent()),
            }
        }
    };
    let request = Forward { head, body, origin, key, reason, options, client: asks, described };
    let result = forward::forward(worker, &mut receiver, &mut sender, request).await;
    let bytes = sender.sent();
    match result {
        Ok(Forwarded::Answered(after, sent)) => (Ended::Answered(after, sent), bytes),
        Ok(Forwarded::Switched(head, stream, rest)) => {
            switched(worker, client, head, stream, rest, reason).await
        }
        Err(aborted) => (Ended::Aborted(aborted), bytes),
    }
}

/// The form of answer that the request's head allows.
fn options(worker: &Worker, head: &RequestHead) -> AnswerOptions {
    AnswerOptions {
        head_only: head.method == Method::Head,
        version: head.version,
        keep: Persistence::of(head.version, &head.headers) == Persistence::KeepAlive
            && !worker.shared.stopping.load(Ordering::Relaxed),
        trailers: accepts_trailers(&head.headers),
    }
}

/// Answers OPTIONS itself: what may be asked here.
async fn methods(
    sender: &mut Sender<'_>,
    options: AnswerOptions,
) -> Result<(After, Sent), Aborted> {
    let mut answer = ResponseHead::new(200);
    answer.headers.append("Allow", "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS, TRACE");
    let outcome = CacheStatus::Local { detail: "max-forwards" };
    answer::local(sender, options, answer, outcome, Bytes::new()).await
}

/// Reads what is left of a request whose answer did not need it, within limits, or gives the
/// connection up. The rest of a stream of HTTP/2 is in nobody's way.
async fn drained(
    receiver: &mut Receiver<'_>,
    settings: &ProxySettings,
    result: Result<(After, Sent), Aborted>,
) -> Ended {
    let (after, sent) = match result {
        Ok(found) => found,
        Err(aborted) => return Ended::Aborted(aborted),
    };
    if after == After::Close || matches!(receiver, Receiver::Http2(_)) {
        return Ended::Answered(after, sent);
    }
    let mut left = settings.drain_limit;
    loop {
        match receiver.next(settings.client_read).await {
            Ok(RequestEvent::End) => return Ended::Answered(After::Keep, sent),
            Ok(RequestEvent::Body(data)) if data.len() as u64 <= left => left -= data.len() as u64,
            Ok(RequestEvent::Trailers(_)) => {}
            Ok(RequestEvent::Body(_) | RequestEvent::Head(..)) | Err(_) => {
                return Ended::Answered(After::Close, sent);
            }
        }
    }
}
