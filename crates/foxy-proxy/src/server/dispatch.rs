//! From a request's head to its answer, the same for every HTTP a client speaks.

use crate::answer;
use crate::cache::stored::CacheKey;
use crate::client::sender::Sender;
use crate::client::{Client, Receiver};
use crate::core::client_block::ClientBlock;
use crate::lookup;
use crate::lookup::forward::{self, Forward, Forwarded};
use crate::lookup::result::Got;
use crate::request::answer_options::Asked;
use crate::request::cache_status::CacheStatus;
use crate::request::exchange::{Plan, plan};
use crate::request::forwarding_fields::{replace, take_off};
use crate::request::mode::Mode;
use crate::request::reason::ErrorReason;
use crate::request::sent::{After, Cut, Told};
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
    let asked = asked(worker, head);
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
        let result = purger::explain(worker, &mut sender, (head, asked), (body, over)).await;
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
        Plan::Tunnel(origin) => return tunnel(worker, client, asked, (origin, asks)).await,
        Plan::Refuse(reason) => {
            // A client that takes a CONNECT for granted sends the tunnel's bytes next: these are no
            // requests.
            let asked = Asked { keep: asked.keep && head.method != Method::Connect, ..asked };
            let result = answer::error(worker, &mut sender, asked, reason).await;
            let ended = drained(&mut receiver, settings, result).await;
            return (ended, sender.sent());
        }
        Plan::AnswerHere => {
            let result = methods(&mut sender, asked).await;
            let ended = drained(&mut receiver, settings, result).await;
            return (ended, sender.sent());
        }
        Plan::Purge(key) => {
            let key = CacheKey::new(key);
            let result = purger::answer(worker, &mut sender, (head, asked), peer, &key).await;
            let ended = drained(&mut receiver, settings, result).await;
            return (ended, sender.sent());
        }
        Plan::Forward(origin, key, reason) => (origin, CacheKey::new(key), reason, None),
        Plan::LookUp(origin, key) => {
            let wanted = Wanted { head, origin, key: CacheKey::new(key), asked, client: asks };
            match lookup::answer(worker, &mut sender, &wanted).await {
                Ok(Got::Answered(after, told)) => {
                    let ended = drained(&mut receiver, settings, Ok((after, told))).await;
                    return (ended, sender.sent());
                }
                Ok(Got::Forward(reason, described)) => {
                    (wanted.origin, wanted.key, reason, described)
                }
                Err(cut) => return (Ended::Cut(cut), sender.sent()),
            }
        }
    };
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

/// The form of answer that the request's head allows.
fn asked(worker: &Worker, head: &RequestHead) -> Asked {
    Asked {
        head_only: head.method == Method::Head,
        version: head.version,
        keep: Persistence::of(head.version, &head.headers) == Persistence::KeepAlive
            && !worker.shared.stopping.load(Ordering::Relaxed),
        trailers: accepts_trailers(&head.headers),
    }
}

/// Answers OPTIONS itself: what may be asked here.
async fn methods(sender: &mut Sender<'_>, asked: Asked) -> Result<(After, Told), Cut> {
    let mut answer = ResponseHead::new(200);
    answer.headers.append("Allow", "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS, TRACE");
    let outcome = CacheStatus::Local { detail: "max-forwards" };
    answer::local(sender, asked, answer, outcome, Bytes::new()).await
}

/// Reads what is left of a request whose answer did not need it, within limits, or gives the
/// connection up. The rest of a stream of HTTP/2 is in nobody's way.
async fn drained(
    receiver: &mut Receiver<'_>,
    settings: &ProxySettings,
    result: Result<(After, Told), Cut>,
) -> Ended {
    let (after, told) = match result {
        Ok(found) => found,
        Err(cut) => return Ended::Cut(cut),
    };
    if after == After::Close || matches!(receiver, Receiver::Http2(_)) {
        return Ended::Answered(after, told);
    }
    let mut left = settings.drain_limit;
    loop {
        match receiver.next(settings.client_read).await {
            Ok(RequestEvent::End) => return Ended::Answered(After::Keep, told),
            Ok(RequestEvent::Body(data)) if data.len() as u64 <= left => left -= data.len() as u64,
            Ok(RequestEvent::Trailers(_)) => {}
            Ok(RequestEvent::Body(_) | RequestEvent::Head(..)) | Err(_) => {
                return Ended::Answered(After::Close, told);
            }
        }
    }
}
