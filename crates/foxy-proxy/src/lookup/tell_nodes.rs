//! Tells the other nodes of the fleet that an unsafe request, such as POST, has changed a URL. The
//! other nodes then remove their stored responses of the URL (RFC 9111 §4.4).

use crate::fill::outgoing;
use crate::request::Wanted;
use crate::request::exchange::FleetRole;
use crate::upstream::fleet::FleetNode;
use crate::upstream::{BodyEvent, HeadEvent, RequestBody, Scheme, UpstreamError, UpstreamRequest};
use crate::worker::Worker;
use foxy_http::{Headers, Method};
use futures_util::future::join_all;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// Time limit for the answers of the other nodes.
const PATIENCE: Duration = Duration::from_secs(1);

/// Tells all reachable nodes of the fleet to remove the stored responses of a URL. Waits for their
/// answers, but not longer than [`PATIENCE`].
pub(crate) async fn to_forget(worker: &Worker, wanted: &Wanted<'_>) {
    let (FleetRole::MayAsk(scheme) | FleetRole::Alone(scheme)) = wanted.role else { return };
    let Some(link) = &worker.settings().upstream.fleet else { return };
    let told = link.fleet.others().into_iter().filter(|node| !link.fleet.is_lost(node.number));
    let told = told.map(|node| tell(worker, wanted, scheme, node));
    // A node that the message does not reach may serve old responses until they are stale.
    let _ = timeout(PATIENCE, join_all(told)).await;
}

async fn tell(
    worker: &Worker,
    wanted: &Wanted<'_>,
    scheme: Scheme,
    node: Arc<FleetNode>,
) -> Result<(), UpstreamError> {
    let mut headers = Headers::new();
    headers.append("Host", wanted.head.authority().unwrap_or_default());
    let request = UpstreamRequest {
        origin: wanted.origin.clone(),
        method: Method::Other("PURGE".into()),
        target: outgoing::target(wanted.head),
        headers,
        body: RequestBody::none(),
    };
    let mut exchange = worker.upstream.exchange(request).sent_to_node(&node, scheme);
    while !matches!(exchange.head().await?, HeadEvent::Final(..)) {}
    while !matches!(exchange.next().await?, BodyEvent::End) {}
    Ok(())
}
