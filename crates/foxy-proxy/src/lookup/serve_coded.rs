//! Serves the coded form (such as gzip) of a stored response. If the form is not stored yet, starts
//! its compression, and this request gets the response without coding.

use crate::answer::transaction::{Selection, Transaction};
use crate::cache::{CacheKey, Stored};
use crate::core::{Counter, View};
use crate::fill::compress::Compressing;
use crate::request::coded::{ChosenCoding, chosen, coded_form, coded_head, coded_key};
use crate::request::{Aborted, Answered, Hit, SendFailure};
use foxy_base::clock;
use foxy_rules::{Conditional, evaluate};
use std::rc::Rc;
use std::sync::Arc;

/// Answers with the coded form (such as gzip) of a stored response. Returns `None` if the response
/// without coding must answer. `is_range` is true if the request asks for a range of the stored
/// response.
pub(crate) async fn serve_coded(
    transaction: &mut Transaction<'_, '_>,
    stored: &Arc<Stored>,
    hit: Hit,
    is_range: bool,
) -> Result<Option<Answered>, Aborted> {
    let Transaction { worker, wanted, .. } = *transaction;
    let request = &wanted.head.headers;
    let Ok(choice) = chosen(&worker.settings().compression, request, stored, is_range) else {
        return Ok(None);
    };
    let (outcome, age) = (hit.coded(choice.coding), stored.times.age(clock::steady()));
    let head = coded_head(&stored.head, choice.coding);
    let status = stored.head.status;
    let received = stored.times.received;
    if request.contains("if-none-match")
        && evaluate(&View(request), status, &View(&head.headers), received)
            == Conditional::NotModified
    {
        return transaction.not_modified(&head.headers, age, outcome).await.map(Some);
    }
    let key = coded_key(stored, choice.coding);
    let Some(found) = found_or_made(transaction, stored, &key, choice).await else {
        return Ok(None);
    };
    let (body, length) = (found.body.clone(), found.length);
    let form = coded_form(stored, &head, key.text.clone(), body, length);
    match transaction.stored(Arc::new(form), Selection::Whole, age, outcome).await {
        Ok(answered) => {
            worker.counters.add(Counter::CompressedAnswers, 1);
            Ok(Some(answered))
        }
        Err(SendFailure::Aborted(aborted)) => Err(aborted),
        Err(SendFailure::BodyGone) => {
            worker.shared.cache.forget(&key);
            Ok(None)
        }
        Err(SendFailure::RestGone(_)) => {
            // Only foxy has this coded form (such as gzip), so the origin cannot send the missing
            // bytes.
            worker.shared.cache.forget(&key);
            worker.counters.add(Counter::CutResponses, 1);
            transaction.sender.break_off();
            Err(Aborted::Source)
        }
    }
}

/// Returns the coded form (such as gzip) if the cache has it and it is smaller. Otherwise starts to
/// make the coded form. Waits for the result only if the client accepts no other form.
async fn found_or_made(
    transaction: &Transaction<'_, '_>,
    stored: &Arc<Stored>,
    key: &CacheKey,
    choice: ChosenCoding,
) -> Option<Arc<Stored>> {
    let Transaction { worker, wanted, .. } = *transaction;
    let cache = &worker.shared.cache;
    let found = cache.derived(key, &worker.counters).await;
    if found.is_some() {
        return found.filter(|form| form.length > 0);
    }
    let permit = worker.shared.compressions.begin(key.hash, clock::steady())?;
    let compressing = Compressing {
        base: wanted.key.clone(),
        stored: Arc::clone(stored),
        key: key.clone(),
        coding: choice.coding,
    };
    let made = tokio::task::spawn_local(compressing.run(Rc::clone(worker), permit));
    if choice.uncoded {
        return None;
    }
    made.await.ok()?;
    cache.derived(key, &worker.counters).await.filter(|form| form.length > 0)
}
