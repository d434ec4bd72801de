//! Purging a running proxy's cache: for the admin server, and for the PURGE method. What purges mean is in `purge`.

use crate::answer::{self, After, Asked, Cut, Told};
use crate::cache_status::CacheStatus;
use crate::client_io::Sender;
use crate::counters::{Counter, Counters};
use crate::purge::{NotPurged, Order, Scope, Strength};
use crate::reason::ErrorReason;
use crate::stored::CacheKey;
use crate::worker::{Shared, Worker};
use foxy_base::clock;
use foxy_http::{RequestHead, ResponseHead};
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::sync::oneshot;

/// Purges a running proxy's cache, from any thread.
#[derive(Clone)]
pub struct Purger {
    pub(crate) shared: Arc<Shared>,
    pub(crate) counters: Arc<Counters>,
}

impl Purger {
    /// Purges all of these, and waits until that survives a crash. Gives the number of the last purge.
    ///
    /// # Errors
    /// [`NotPurged`]: nothing was purged, and why.
    pub async fn purge(&self, scopes: &[Scope], strength: Strength) -> Result<u64, NotPurged> {
        purge(&self.shared, &self.counters, scopes, strength).await
    }
}

async fn purge(
    shared: &Shared,
    counters: &Counters,
    scopes: &[Scope],
    strength: Strength,
) -> Result<u64, NotPurged> {
    let at = clock::wall();
    let orders = scopes.iter().map(|scope| Order { scope: *scope, strength, at }).collect();
    let (sender, receiver) = oneshot::channel();
    let reply = move |answer| {
        // Whoever asked may have left; what is purged stays purged.
        let _ = sender.send(answer);
    };
    shared.purges.keeper.purge(orders, Box::new(reply));
    let number = receiver.await.unwrap_or(Err(NotPurged::Stopping))?;
    counters.add(Counter::Purges, scopes.len() as u64);
    if strength == Strength::Hard {
        for scope in scopes {
            if let Scope::Url { key, .. } = scope {
                shared.cache.give_back(*key);
            }
        }
    }
    Ok(number)
}

/// Answers a PURGE: softly, or with `Foxy-Purge: hard` for good.
pub(crate) async fn answer(
    worker: &Worker,
    sender: &mut Sender<'_>,
    (head, asked): (&RequestHead, Asked),
    client: SocketAddr,
    key: &CacheKey,
) -> Result<(After, Told), Cut> {
    if !may_purge(worker, head, client) {
        return answer::error(worker, sender, asked, ErrorReason::PurgeNotAllowed).await;
    }
    let hard = head.headers.get("foxy-purge").is_some_and(|value| value.eq_ignore_ascii_case(b"hard"));
    let strength = if hard { Strength::Hard } else { Strength::Soft };
    match purge(&worker.shared, &worker.counters, &[Scope::url(key)], strength).await {
        Ok(number) => {
            let mut head = ResponseHead::new(200);
            head.headers.append("Date", worker.http_date(clock::wall()));
            head.headers.append("Content-Type", "text/plain; charset=utf-8");
            head.headers.append("Cache-Control", "no-store");
            let text = format!("purged ({}), number {number}\n", strength.name());
            let outcome = CacheStatus::Local { detail: "purged" };
            answer::local(sender, asked, head, outcome, text.into()).await
        }
        Err(reason) => answer::error(worker, sender, asked, ErrorReason::NotPurged(reason)).await,
    }
}

fn may_purge(worker: &Worker, head: &RequestHead, client: SocketAddr) -> bool {
    let settings = worker.settings();
    let address = client.ip().to_canonical();
    settings.purge_from.iter().any(|block| block.contains(address))
        || settings.purge_token.as_ref().is_some_and(|token| token.is_in(&head.headers))
}
