//! Chooses and sends the answer to a request, for every HTTP version.

use crate::answer;
use crate::answer::transaction::Transaction;
use crate::cache::stored::CacheKey;
use crate::client::{Client, Receiver, Sender};
use crate::core::addresses::client_ends::ClientEnds;
use crate::core::client_limits::LimitedClient;
use crate::lookup::fetch::{self, Fetched};
use crate::lookup::forward::{self, Forward, Forwarded};
use crate::request::answered::{Aborted, AnswerOptions, Answered, ConnectionFate};
use crate::request::asker::Asker;
use crate::request::cache_status::{CacheStatus, REDIRECTED};
use crate::request::exchange::{FleetRole, Plan, Redirection, Wanted, plan};
use crate::request::final_dots;
use crate::request::forwarding_fields::{replace, take_off};
use crate::request::mode::Mode;
use crate::request::reason::ErrorReason;
use crate::server::identification::{Asked, identify};
use crate::server::identity::{asks_for_file, identified};
use crate::server::request_log::Ended;
use crate::server::steering::{Steering, steer};
use crate::server::tunnelling::{switched, tunnel};
use crate::server::{admission, node_requests, purger};
use crate::settings::ProxySettings;
use crate::upstream::Scheme;
use crate::upstream::fleet::FIELD;
use crate::worker::Worker;
use bytes::Bytes;
use foxy_base::clock;
use foxy_http::{
    BodyLength, Method, Persistence, RequestEvent, RequestHead, ResponseHead, TargetForm,
    accepts_trailers,
};
use std::net::SocketAddr;
use std::rc::Rc;

/// Answers one request. Returns how it ended, and the number of bytes sent to the client.
///
/// A future is as large as its largest step, and each caller copies it. So the steps that a hit in
/// memory does not need are boxed, to keep the future small (docs/decisions/futures.md).
pub(crate) async fn request(
    worker: &Rc<Worker>,
    client: &mut Client<'_>,
    peer: SocketAddr,
    (head, body): (&mut RequestHead, BodyLength),
    refusal: Option<ErrorReason>,
) -> (Ended, u64) {
    let options = options(worker, head, client.can_move());
    let settings = worker.settings();
    if client.node().is_some() {
        let signs = client.repeat_signs();
        let asked = node_requests::request(worker, client, peer, (head, body), options);
        return Box::pin(until_answered(asked, signs)).await;
    }
    let challenge = settings.client_tls.as_ref().and_then(|tls| tls.http_challenge(head));
    if let Some(text) = challenge.filter(|_| refusal.is_none()) {
        let (mut receiver, mut sender) = client.split(settings.client_write);
        let result = Box::pin(text_file(worker, &mut sender, options, CHALLENGE, text)).await;
        return finish(&mut receiver, settings, &sender, result).await;
    }
    let refusal = refusal.or_else(|| from_outside(settings, head));
    let refusal = admission::refusal(settings, peer).or(refusal);
    let over = requested_scheme(settings, head, peer, client.scheme());
    let mut ends = ClientEnds { client: peer, reached: None };
    let file = auto_config_file(settings, head, client.scheme(), client);
    let (user, refusal) = identified(worker, (head, over), client, peer.ip(), refusal).await;
    let asker = Asker { client: peer.ip(), user };
    if settings.mode.names_clients() {
        ends.reached = client.reached();
    }
    let (mut receiver, mut sender) = client.split(settings.client_write);
    sender.sent_by(asker.user.clone());
    let asked = identify(worker, &sender, head, peer);
    if refusal.is_none() && asked == Asked::Explanation {
        let result =
            Box::pin(purger::explain(worker, &mut sender, (head, options), (body, over), &asker))
                .await;
        return finish(&mut receiver, settings, &sender, result).await;
    }
    let (planned, text, role) = planned(worker, &sender, (head, body), over, &asker, refusal);
    let head = &*head;
    if let Some(file) = file.filter(|_| planned.permits_local_file()) {
        let result = Box::pin(text_file(worker, &mut sender, options, PAC, file.into())).await;
        return finish(&mut receiver, settings, &sender, result).await;
    }
    let wanted = |origin, key, sender: &Sender<'_>| {
        let key = sender.with_rules(|applied| settings.rules.key_of_request(key, applied));
        let key = CacheKey::new(key);
        sender.keyed(key.hash);
        Wanted { head, origin, key, options, client: ends, role }
    };
    let (wanted, reason, update) = match planned {
        Plan::Tunnel(origin) => {
            return Box::pin(tunnel(worker, client, head, options, (origin, ends))).await;
        }
        plan @ (Plan::Refuse(_) | Plan::AnswerHere | Plan::Purge(_) | Plan::Redirect(_)) => {
            let answer = answer_here(worker, &mut sender, (head, options), peer, (plan, text));
            let result = Box::pin(answer).await;
            return finish(&mut receiver, settings, &sender, result).await;
        }
        Plan::Forward(origin, key, reason) => (wanted(origin, key, &sender), reason, None),
        Plan::LookUp(origin, key) => {
            let wanted = wanted(origin, key, &sender);
            let mut transaction = Transaction::begin(worker, &mut sender, &wanted);
            match fetch::answer_or_fetch(&mut transaction).await {
                Ok(Fetched::Answered(answered)) => {
                    return finish(&mut receiver, settings, &sender, Ok(answered)).await;
                }
                Ok(Fetched::Forward(reason, update)) => (wanted, reason, update),
                Err(aborted) => return (Ended::Aborted(aborted), sender.sent()),
            }
        }
    };
    Box::pin(forward(worker, client, Forward { wanted: &wanted, body, reason, update })).await
}

/// Answers a request without the cache and without an origin. If a rule refuses the request, `text`
/// is the rule's text for the client.
async fn answer_here(
    worker: &Worker,
    sender: &mut Sender<'_>,
    (head, options): (&RequestHead, AnswerOptions),
    peer: SocketAddr,
    (plan, text): (Plan, Option<String>),
) -> Result<Answered, Aborted> {
    match plan {
        Plan::Refuse(reason) => refused(worker, sender, (head, options), reason, text).await,
        Plan::Purge(key) => {
            let key = CacheKey::new(worker.settings().rules.key(key));
            purger::answer(worker, sender, (head, options), peer, &key).await
        }
        Plan::Redirect(redirection) => redirected(worker, sender, options, redirection).await,
        _ => methods(sender, options).await,
    }
}

/// Forwards a request to the origin. Returns how it ended, and the number of bytes sent to the
/// client.
pub(super) async fn forward(
    worker: &Rc<Worker>,
    client: &mut Client<'_>,
    request: Forward<'_>,
) -> (Ended, u64) {
    let (mut receiver, mut sender) = client.split(worker.settings().client_write);
    let reason = request.reason;
    let result = forward::forward(worker, &mut receiver, &mut sender, request).await;
    let bytes = sender.sent();
    match result {
        Ok(Forwarded::Answered(answered)) => (Ended::Answered(answered), bytes),
        Ok(Forwarded::Switched(head, stream, rest)) => {
            switched(worker, client, head, stream, rest, reason).await
        }
        Err(aborted) => (Ended::Aborted(aborted), bytes),
    }
}

/// Returns the scheme (http or https) of the request's URL. First removes dots at the end of the
/// host. `over` is the scheme of the connection. A reverse proxy does not believe a scheme in the
/// target. It replaces the client's forwarding fields. In these fields, a trusted balancer may
/// report another scheme than this connection has.
pub(super) fn requested_scheme(
    settings: &ProxySettings,
    head: &mut RequestHead,
    peer: SocketAddr,
    over: Scheme,
) -> Scheme {
    final_dots::remove(head);
    match &settings.mode {
        Mode::Reverse { origins } => {
            replace(head, peer, over, &origins.get(), &settings.forwarded_from)
        }
        Mode::Forward => match head.target.form() {
            TargetForm::Absolute { scheme, .. } => Scheme::named(scheme).unwrap_or(over),
            _ => over,
        },
    }
}

/// Prepares a request of a client that is no node of the fleet. Removes the field that only nodes
/// may send. If this node has already forwarded the request once (RFC 8586), returns the refusal.
fn from_outside(settings: &ProxySettings, head: &mut RequestHead) -> Option<ErrorReason> {
    let link = settings.upstream.fleet.as_ref()?;
    head.headers.remove(FIELD);
    let is_loop = head.headers.contains("cdn-loop") && link.fleet.own().has_passed(&head.headers);
    is_loop.then_some(ErrorReason::Loop)
}

/// Applies the operator's rules, and decides how to handle the request. If a rule refuses the
/// request and has a text for the client, also returns this text. Also returns whether another
/// node of the fleet may answer. It may not if a rule chose the upstream, because that choice can
/// depend on the client. `over` is the scheme of the request's URL.
fn planned(
    worker: &Worker,
    sender: &Sender<'_>,
    (head, body): (&mut RequestHead, BodyLength),
    over: Scheme,
    asker: &Asker,
    refusal: Option<ErrorReason>,
) -> (Plan, Option<String>, FleetRole) {
    let settings = worker.settings();
    let rules = settings.rules.get();
    let steering = match refusal {
        Some(_) => Steering::default(),
        None => steer(&rules, head, over, asker),
    };
    if !steering.decided.is_empty() {
        sender.with_rules(|applied| rules.note(&steering.decided, applied));
    }
    if let Some(is_timed) = steering.server_timing {
        sender.with_progress(|progress| progress.time(is_timed));
    }
    let client = LimitedClient::new(asker.user.as_ref(), asker.client.into());
    let refusal = refusal.or(steering.refusal).or_else(|| {
        let wait = rules.admit(steering.rate, &client).err()?;
        Some(ErrorReason::rate_limited(wait))
    });
    sender.paced_by(rules.pace(steering.bandwidth, client));
    let upstream = steering.upstream.as_ref();
    let plan = || plan(head, body, over, &settings.mode, &settings.via_name, upstream);
    let planned = refusal.map_or_else(plan, Plan::Refuse);
    let bypasses = steering.bypasses || worker.shared.is_leaving();
    let planned = if bypasses { planned.past_the_cache(head) } else { planned };
    let planned = planned.redirected(steering.redirection);
    if let Plan::LookUp(..) = planned {
        take_off(&mut head.headers, &settings.mode);
    }
    let role = match (&settings.upstream.fleet, upstream) {
        (None, _) => FleetRole::NoFleet,
        (Some(_), Some(_)) => FleetRole::Alone(over),
        (Some(_), None) => FleetRole::MayAsk(over),
    };
    (planned, steering.message, role)
}

fn options(worker: &Worker, head: &RequestHead, can_move: bool) -> AnswerOptions {
    let ends = worker.shared.is_leaving() && !(can_move && worker.shared.heir.get().is_some());
    AnswerOptions {
        head_only: head.method == Method::Head,
        version: head.version,
        keep: Persistence::of(head.version, &head.headers) == Persistence::KeepAlive && !ends,
        trailers: accepts_trailers(&head.headers),
    }
}

/// Answers an OPTIONS request that ends at this proxy. The answer lists the methods that the proxy
/// accepts.
async fn methods(sender: &mut Sender<'_>, options: AnswerOptions) -> Result<Answered, Aborted> {
    let mut answer = ResponseHead::new(200);
    answer.headers.append("Allow", "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS, TRACE");
    let outcome = CacheStatus::Local { detail: "max-forwards" };
    answer::local(sender, options, answer, outcome, Bytes::new()).await
}

/// Answers with a redirect to another URL (RFC 9110 §15.4).
async fn redirected(
    worker: &Worker,
    sender: &mut Sender<'_>,
    options: AnswerOptions,
    redirection: Redirection,
) -> Result<Answered, Aborted> {
    let mut answer = ResponseHead::new(redirection.status);
    answer.headers.append("Date", worker.http_date(clock::wall()));
    answer.headers.append("Location", redirection.location);
    let outcome = CacheStatus::Local { detail: REDIRECTED };
    answer::local(sender, options, answer, outcome, Bytes::new()).await
}

/// Answers with an error. `text` replaces the description of the reason.
async fn refused(
    worker: &Worker,
    sender: &mut Sender<'_>,
    (head, options): (&RequestHead, AnswerOptions),
    reason: ErrorReason,
    text: Option<String>,
) -> Result<Answered, Aborted> {
    // The client of a refused CONNECT may still send bytes that it meant for the tunnel. They must
    // not be parsed as requests, so the connection must close.
    let ends = head.method == Method::Connect || reason == ErrorReason::CertificateUntrusted;
    let options = AnswerOptions { keep: options.keep && !ends, ..options };
    let text = text.as_deref().unwrap_or(reason.description());
    answer::error_with_text(worker, sender, options, reason, text).await
}

/// Polls `answer` until it ends, and meanwhile `signs`, which never ends.
async fn until_answered<T>(answer: impl Future<Output = T>, signs: impl Future<Output = ()>) -> T {
    tokio::pin!(answer, signs);
    loop {
        tokio::select! {
            biased;
            result = &mut answer => return result,
            () = &mut signs => {}
        }
    }
}

/// Returns the PAC file, if the request asks for it and the operator wants it served.
fn auto_config_file(
    settings: &ProxySettings,
    head: &RequestHead,
    over: Scheme,
    client: &Client<'_>,
) -> Option<String> {
    let is_asked = asks_for_file(settings, head, client);
    settings.auto_config.as_ref().filter(|_| is_asked)?.file(head, over)
}

/// The detail of `Cache-Status` and the media type of a text that foxy itself serves.
struct TextFile {
    detail: &'static str,
    media_type: &'static str,
}

const PAC: TextFile =
    TextFile { detail: "auto-config", media_type: "application/x-ns-proxy-autoconfig" };

/// The answer to an HTTP-01 challenge of an ACME authority (RFC 8555 §8.3).
const CHALLENGE: TextFile =
    TextFile { detail: "acme-challenge", media_type: "application/octet-stream" };

/// Answers with a text of foxy itself.
async fn text_file(
    worker: &Worker,
    sender: &mut Sender<'_>,
    options: AnswerOptions,
    TextFile { detail, media_type }: TextFile,
    text: Bytes,
) -> Result<Answered, Aborted> {
    let mut answer = ResponseHead::new(200);
    answer.headers.append("Date", worker.http_date(clock::wall()));
    answer.headers.append("Content-Type", media_type);
    answer.headers.append("Cache-Control", "no-store");
    answer::local(sender, options, answer, CacheStatus::Local { detail }, text).await
}

/// Ends an answer that needed no request body. Returns how it ended, and the number of bytes sent.
async fn finish(
    receiver: &mut Receiver<'_>,
    settings: &ProxySettings,
    sender: &Sender<'_>,
    result: Result<Answered, Aborted>,
) -> (Ended, u64) {
    (drained(receiver, settings, result).await, sender.sent())
}

/// Reads and drops the bytes of a request body that the answer did not need. If too many bytes
/// remain, the connection closes instead. Does nothing for HTTP/2, where unread bytes of one stream
/// do not disturb other requests.
async fn drained(
    receiver: &mut Receiver<'_>,
    settings: &ProxySettings,
    result: Result<Answered, Aborted>,
) -> Ended {
    let mut answered = match result {
        Ok(answered) => answered,
        Err(aborted) => return Ended::Aborted(aborted),
    };
    if answered.connection == ConnectionFate::Close || matches!(receiver, Receiver::Http2(_)) {
        return Ended::Answered(answered);
    }
    let mut left = settings.drain_limit;
    answered.connection = loop {
        match receiver.next(settings.client_read).await {
            Ok(RequestEvent::End) => break ConnectionFate::Keep,
            Ok(RequestEvent::Body(data)) if data.len() as u64 <= left => left -= data.len() as u64,
            Ok(RequestEvent::Trailers(_)) => {}
            Ok(RequestEvent::Body(_) | RequestEvent::Head(..)) | Err(_) => {
                break ConnectionFate::Close;
            }
        }
    };
    Ended::Answered(answered)
}
