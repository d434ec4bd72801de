//! Tells the other nodes of the fleet which URLs an unsafe request, such as POST, has changed. The
//! other nodes then remove their stored responses of these URLs (RFC 9111 §4.4).

use crate::fill::outgoing;
use crate::request::Wanted;
use crate::request::exchange::FleetRole;
use crate::upstream::fleet::FleetNode;
use crate::upstream::{BodyEvent, HeadEvent, RequestBody, Scheme, UpstreamError, UpstreamRequest};
use crate::worker::Worker;
use bytes::Bytes;
use foxy_http::{Headers, Method};
use futures_util::future::join_all;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// Time limit for the answers of the other nodes.
const PATIENCE: Duration = Duration::from_secs(1);

/// Tells all reachable nodes of the fleet to remove the stored responses of the request's URL, and
/// of the URLs `others` of the same origin. Waits for their answers, but not longer than
/// [`PATIENCE`].
pub(crate) async fn to_forget(worker: &Worker, wanted: &Wanted<'_>, others: &[String]) {
    let (FleetRole::MayAsk(scheme) | FleetRole::Alone(scheme)) = wanted.role else { return };
    let Some(link) = &worker.settings().upstream.fleet else { return };
    let own = outgoing::target(wanted.head);
    let others = others.iter().filter_map(|url| target_of(url)).filter(|target| *target != own);
    let targets: Vec<_> = others.chain([own.clone()]).collect();
    let told = link.fleet.others().into_iter().filter(|node| !link.fleet.is_lost(node.number));
    let told = told.flat_map(|node| {
        targets.iter().map(move |target| tell(worker, wanted, scheme, Arc::clone(&node), target))
    });
    // A node that the message does not reach may serve old responses until they are stale.
    let _ = timeout(PATIENCE, join_all(told)).await;
}

/// Returns path and query of a URL.
fn target_of(url: &str) -> Option<Bytes> {
    let (_, rest) = url.split_once("://")?;
    Some(Bytes::copy_from_slice(&rest.as_bytes()[rest.find('/')?..]))
}

async fn tell(
    worker: &Worker,
    wanted: &Wanted<'_>,
    scheme: Scheme,
    node: Arc<FleetNode>,
    target: &Bytes,
) -> Result<(), UpstreamError> {
    let mut headers = Headers::new();
    headers.append("Host", wanted.head.authority().unwrap_or_default());
    let request = UpstreamRequest {
        origin: wanted.origin.clone(),
        method: Method::Other("PURGE".into()),
        target: target.clone(),
        headers,
        body: RequestBody::none(),
    };
    let mut exchange = worker.upstream.exchange(request).sent_to_node(&node, scheme);
    while !matches!(exchange.head().await?, HeadEvent::Final(..)) {}
    while !matches!(exchange.next().await?, BodyEvent::End) {}
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_target_of_a_url_is_its_path_and_query() {
        for (url, target) in [
            ("http://a.test/", Some("/")),
            ("https://a.test:8443/x/y?z=http://b.test/", Some("/x/y?z=http://b.test/")),
            ("http://a.test", None),
            ("/x", None),
        ] {
            assert_eq!(target_of(url).as_deref(), target.map(str::as_bytes), "{url}");
        }
    }
}
