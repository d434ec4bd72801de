//! Answers the requests of other nodes of the fleet (`upstream::fleet`). A node sends a request to
//! this node if this node owns the key, or if the owner is slow or lost and this node is next after
//! the owner. The other node has already applied the operator's rules. This node never sends such a
//! request on to another node.

use crate::answer::{self, transaction::Transaction};
use crate::cache::stored::CacheKey;
use crate::client::{Client, Sender};
use crate::core::addresses::client_ends::ClientEnds;
use crate::core::counters::Counter;
use crate::core::tls::HandshakeFacts;
use crate::lookup::fetch::{self, Fetched};
use crate::lookup::forward::Forward;
use crate::request::answered::{Aborted, AnswerOptions, Answered};
use crate::request::cache_status::CacheStatus;
use crate::request::exchange::{FleetRole, Plan, Wanted, plan};
use crate::request::forwarding_fields;
use crate::request::reason::ErrorReason;
use crate::server::dispatch;
use crate::server::request_log::Ended;
use crate::upstream::Scheme;
use crate::upstream::fleet::{FIELD, Fleet, SECOND, STORED, Told};
use crate::worker::Worker;
use bytes::Bytes;
use foxy_base::clock;
use foxy_http::{BodyLength, Method, RequestHead, ResponseHead, TargetForm};
use std::net::SocketAddr;
use std::rc::Rc;

/// A request of another node in progress. Dropping this value ends the request.
struct NodeRequest<'a>(&'a dyn Fleet);

impl Drop for NodeRequest<'_> {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// Answers a request of another node. Returns how the request ended, and the number of bytes sent.
pub(crate) async fn request(
    worker: &Rc<Worker>,
    client: &mut Client<'_>,
    peer: SocketAddr,
    (head, body): (&mut RequestHead, BodyLength),
    options: AnswerOptions,
) -> (Ended, u64) {
    let settings = worker.settings();
    let is_trusted = is_trusted(worker, client);
    let (_, mut sender) = client.split(settings.client_write);
    let Some(link) = &settings.upstream.fleet else {
        return (Ended::Aborted(Aborted::Client), sender.sent());
    };
    let fleet = &*link.fleet;
    if !is_trusted {
        return refused(worker, sender, options, ErrorReason::CertificateUntrusted).await;
    }
    if head.method == Method::Options {
        let result = pong(fleet, &mut sender, options).await;
        return (Ended::from(result), sender.sent());
    }
    let is_second = head.headers.has_token(FIELD, SECOND);
    let wants_stored = head.headers.has_token(FIELD, STORED);
    head.headers.remove(FIELD);
    let of_url = scheme(head);
    let over = dispatch::requested_scheme(settings, head, peer, of_url);
    let planned = plan(head, body, over, &settings.mode, &settings.via_name, None);
    let (origin, key) = match planned {
        Plan::LookUp(origin, key) => (origin, CacheKey::new(settings.rules.key(key))),
        Plan::Purge(key) => {
            let result = forget(worker, &mut sender, options, key).await;
            return (Ended::from(result), sender.sent());
        }
        Plan::Refuse(reason) => return refused(worker, sender, options, reason).await,
        _ => return refused(worker, sender, options, ErrorReason::Misdirected).await,
    };
    let mut told = fleet.begin(&key.text, clock::monotonic());
    told.applied = worker.shared.purges.book.followed().done();
    let _in_progress = NodeRequest(fleet);
    // A request that joins a fetch in progress costs less here than a second fetch at another node.
    // So this node accepts such a request even if it is busy.
    told.is_busy &= !is_second && !wants_stored && !worker.shared.flights.is_fetched(key.hash);
    sender.with_progress(|progress| progress.tell(told));
    worker.counters.add(Counter::FleetServed, 1);
    if told.is_busy {
        let result = busy(&mut sender, options).await;
        return (Ended::from(result), sender.sent());
    }
    forwarding_fields::take_off(&mut head.headers, &settings.mode);
    let head = &*head;
    sender.keyed(key.hash);
    let ends = ClientEnds { client: peer, reached: None };
    let role = if wants_stored { FleetRole::AskedForStored } else { FleetRole::Asked(of_url) };
    let wanted = Wanted { head, origin, key, options, client: ends, role };
    let mut transaction = Transaction::begin(worker, &mut sender, &wanted);
    transaction.control.only_if_cached |= wants_stored;
    match fetch::answer_or_fetch(&mut transaction).await {
        Ok(Fetched::Answered(answered)) => (Ended::Answered(answered), sender.sent()),
        Ok(Fetched::Forward(reason, update)) => {
            let request = Forward { wanted: &wanted, body, reason, update };
            Box::pin(dispatch::forward(worker, client, request)).await
        }
        Err(aborted) => (Ended::Aborted(aborted), sender.sent()),
    }
}

/// Returns true if the client is still a node of the fleet. Since the handshake, the node may have
/// left the list of members, or its certificate may have become invalid.
fn is_trusted(worker: &Worker, client: &Client<'_>) -> bool {
    let facts = client.presented();
    let fleet = worker.settings().upstream.fleet.as_ref().map(|link| &*link.fleet);
    let is_member = fleet.zip(client.node()).is_some_and(|(fleet, number)| fleet.is_member(number))
        || worker.node_of(facts).is_some();
    is_member && !matches!(facts.map(HandshakeFacts::user), Some(Err(_)))
}

/// Returns the scheme of the URL, which the other node has sent with the request.
fn scheme(head: &RequestHead) -> Scheme {
    match head.target.form() {
        TargetForm::Absolute { scheme, .. } => Scheme::named(scheme).unwrap_or_default(),
        _ => Scheme::default(),
    }
}

/// Answers a ping of another node.
async fn pong(
    fleet: &dyn Fleet,
    sender: &mut Sender<'_>,
    options: AnswerOptions,
) -> Result<Answered, Aborted> {
    let (load, settings) = (fleet.load(), fleet.settings_hash());
    let told = Told { load, settings, standing: fleet.standing(), ..Told::default() };
    sender.with_progress(|progress| progress.tell(told));
    let outcome = CacheStatus::Local { detail: "ping" };
    answer::local(sender, options, ResponseHead::new(200), outcome, Bytes::new()).await
}

/// Removes the stored responses of a URL, because an unsafe request has changed its resource.
async fn forget(
    worker: &Worker,
    sender: &mut Sender<'_>,
    options: AnswerOptions,
    key: Vec<u8>,
) -> Result<Answered, Aborted> {
    let key = CacheKey::new(worker.settings().rules.key(key));
    worker.shared.cache.invalidate(&key, &worker.counters).await;
    sender.with_progress(|progress| progress.tell(Told::default()));
    let outcome = CacheStatus::Local { detail: "forgotten" };
    answer::local(sender, options, ResponseHead::new(200), outcome, Bytes::new()).await
}

/// Refuses the request, because this node has too many requests in progress.
async fn busy(sender: &mut Sender<'_>, options: AnswerOptions) -> Result<Answered, Aborted> {
    let outcome = CacheStatus::Local { detail: "busy" };
    answer::local(sender, options, ResponseHead::new(503), outcome, Bytes::new()).await
}

async fn refused(
    worker: &Worker,
    mut sender: Sender<'_>,
    options: AnswerOptions,
    reason: ErrorReason,
) -> (Ended, u64) {
    sender.with_progress(|progress| progress.tell(Told::default()));
    let result = answer::error(worker, &mut sender, options, reason).await;
    (Ended::from(result), sender.sent())
}
