//! Looks in the cold tier for a response that this node does not have, before the proxy contacts
//! the origin.

use crate::answer::transaction::Transaction;
use crate::cache::Found;
use crate::core::{ForwardReason, HitSource};
use crate::lookup::{Lookup, judge};
use crate::request::Aborted;

/// If the look-up on this node found no response, continues with the response of the cold tier.
/// Returns the look-up unchanged if the cold tier has none.
pub(crate) async fn answer(
    transaction: &mut Transaction<'_, '_>,
    looked: Lookup,
) -> Result<Lookup, Aborted> {
    let Lookup::Miss { found: found @ (Found::Nothing | Found::Varies(_)), validate, .. } = &looked
    else {
        return Ok(looked);
    };
    if !transaction.worker.shared.cache.has_cold() {
        return Ok(looked);
    }
    let list = if let Found::Varies(list) = found { Some(list) } else { None };
    let (watch, wanted) = (transaction.watch(), transaction.wanted);
    let (cache, counters) = (&transaction.worker.shared.cache, &transaction.worker.counters);
    let headers = &wanted.head.headers;
    if transaction.wants_anew() {
        cache.outdate_cold(&wanted.key, list, headers);
        return Ok(looked);
    }
    let read = Box::pin(cache.in_cold(&wanted.key, &watch, list, headers, counters)).await;
    match read {
        Ok(None) => Ok(looked),
        Ok(Some(thawed)) => {
            transaction.store_watch = Some(watch);
            Box::pin(judge(transaction, thawed, HitSource::Cold)).await
        }
        Err(why) => {
            // The origin's response may be newer, even if this node does not store it.
            cache.outdate_cold(&wanted.key, list, headers);
            let reason = ForwardReason::NotCold(why);
            Ok(Lookup::Miss { found: found.clone(), reason, validate: *validate })
        }
    }
}
