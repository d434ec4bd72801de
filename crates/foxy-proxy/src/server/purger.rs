//! Answers purges and requests for explanations that permitted clients send to the proxy.

use crate::answer;
use crate::cache::purge::{Scope, Strength};
use crate::cache::stored::CacheKey;
use crate::client::Sender;
use crate::request::answered::{Aborted, AnswerOptions, Answered};
use crate::request::asker::Asker;
use crate::request::cache_status::CacheStatus;
use crate::request::reason::ErrorReason;
use crate::server::handle::{ProxyHandle, purge};
use crate::server::listener;
use crate::upstream::Scheme;
use crate::worker::Worker;
use foxy_base::clock;
use foxy_http::{BodyLength, RequestHead, ResponseHead};
use std::net::SocketAddr;
use std::sync::Arc;

/// Answers a PURGE request. The purge is soft, unless the request has the field `Foxy-Purge: hard`.
pub(crate) async fn answer(
    worker: &Worker,
    sender: &mut Sender<'_>,
    (head, options): (&RequestHead, AnswerOptions),
    client: SocketAddr,
    key: &CacheKey,
) -> Result<Answered, Aborted> {
    if !may_purge(worker, head, client) {
        return answer::error(worker, sender, options, ErrorReason::PurgeNotAllowed).await;
    }
    let hard =
        head.headers.get("foxy-purge").is_some_and(|value| value.eq_ignore_ascii_case(b"hard"));
    let strength = if hard { Strength::Hard } else { Strength::Soft };
    match purge(&worker.shared, &worker.counters, &[Scope::url(key)], strength).await {
        Ok(number) => {
            let text = format!("purged ({}), number {number}\n", strength.name());
            said(worker, sender, options, "purged", text).await
        }
        Err(reason) => answer::error(worker, sender, options, ErrorReason::NotPurged(reason)).await,
    }
}

/// Answers a request that has the field `Foxy-Explain`. The body of the answer is the explanation.
pub(crate) async fn explain(
    worker: &Worker,
    sender: &mut Sender<'_>,
    (head, options): (&RequestHead, AnswerOptions),
    (body, over): (BodyLength, Scheme),
    asker: &Asker,
) -> Result<Answered, Aborted> {
    let proxy =
        ProxyHandle { shared: Arc::clone(&worker.shared), counters: Arc::clone(&worker.counters) };
    let text = proxy.explain_request((head, body), over, asker, None).await.to_string();
    said(worker, sender, options, "explained", text).await
}

/// Sends a 200 answer with the body `text`.
async fn said(
    worker: &Worker,
    sender: &mut Sender<'_>,
    options: AnswerOptions,
    detail: &'static str,
    text: String,
) -> Result<Answered, Aborted> {
    let mut head = ResponseHead::new(200);
    head.headers.append("Date", worker.http_date(clock::wall()));
    head.headers.append("Content-Type", "text/plain; charset=utf-8");
    head.headers.append("Cache-Control", "no-store");
    answer::local(sender, options, head, CacheStatus::Local { detail }, text.into()).await
}

/// Returns true if the client may purge: its address is listed, or the request has the token. The
/// same clients may ask for explanations.
pub(crate) fn may_purge(worker: &Worker, head: &RequestHead, client: SocketAddr) -> bool {
    let settings = worker.settings();
    let address = client.ip().to_canonical();
    let is_listed = settings.purge_from.get().iter().any(|block| block.contains(address));
    (is_listed && !listener::is_unix(client))
        || settings.purge_token.as_ref().is_some_and(|token| token.is_in(&head.headers))
}
