//! Connections to the other nodes of the fleet (`upstream::fleet`), and the pings that find lost
//! nodes. Nodes speak HTTP/2 over TLS, and both sides present a certificate.

use crate::core::counters::Counters;
use crate::core::places::ClientBlock;
use crate::core::transport::Transport;
use crate::upstream::client::{UpstreamClient, UpstreamCore, UpstreamRequest};
use crate::upstream::dial::Origin;
use crate::upstream::dialled::{DialedProtocol, Dialled};
use crate::upstream::error::{ConnectError, TlsError};
use crate::upstream::exchange::{BodyEvent, HeadEvent};
use crate::upstream::fleet::link::FleetLink;
use crate::upstream::fleet::{FleetNode, Told};
use crate::upstream::route::Route;
use crate::upstream::sending::RequestBody;
use bytes::Bytes;
use foxy_http::{Headers, Method, Scheme};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, timeout, timeout_at};

/// Time between two pings of a node.
const PING_INTERVAL: Duration = Duration::from_secs(1);

impl UpstreamCore {
    /// Opens a connection to a node. Its certificate must contain the node's name.
    pub(crate) async fn dial_node(
        &self,
        origin: &Origin,
        number: usize,
        asks: Option<ClientBlock>,
    ) -> Result<Dialled, ConnectError> {
        let link = self.settings.fleet.as_ref().ok_or(ConnectError::Failed)?;
        let (stream, limit) = self.dialer().dial_tcp(origin, asks, None).await?;
        let node = link.fleet.node(number).ok_or(ConnectError::Failed)?;
        let stream = Transport::Plain(stream);
        let tls = link.tls.get_whole();
        let handshake = timeout_at(limit, tls.connect(&node.name, stream, DialedProtocol::Http2));
        Ok(handshake.await.unwrap_or(Err(TlsError::TimedOut))?)
    }

    /// Counts the time until the head of a response, unless a node of the fleet sent the response.
    pub(crate) fn count_first_byte(&self, node: Option<usize>, took: Duration) {
        if node.is_none() {
            self.counters.first_bytes.add(took);
        }
    }

    /// Records that a node has sent bytes of a body. Does nothing if `node` is `None`.
    pub(crate) fn hears(&self, node: Option<usize>) {
        if let (Some(number), Some(link)) = (node, &self.settings.fleet) {
            link.fleet.hears(number);
        }
    }
}

/// Pings every other node once a second until the worker ends. Only one worker of the proxy does
/// so.
pub(crate) async fn ping_all(upstream: UpstreamClient, link: FleetLink, counters: Arc<Counters>) {
    loop {
        let next = Instant::now() + PING_INTERVAL;
        for node in link.fleet.others() {
            let (upstream, link) = (upstream.clone(), link.clone());
            let counters = Arc::clone(&counters);
            tokio::task::spawn_local(Box::pin(async move {
                let told = timeout(PING_INTERVAL, ping(&upstream, &node)).await;
                match told.ok().flatten() {
                    Some(told) => link.fleet.pinged(node.number, told),
                    None => link.misses_ping(&counters, node.number),
                }
            }));
        }
        tokio::time::sleep_until(next).await;
    }
}

/// Sends a ping: an OPTIONS request with the target `*`. Returns the facts that the node tells, if
/// it does not refuse the ping.
async fn ping(upstream: &UpstreamClient, node: &FleetNode) -> Option<Told> {
    let Route { origin, .. } = Route::to_node(node);
    let mut headers = Headers::new();
    headers.append("Host", &*node.name);
    let request = UpstreamRequest {
        origin,
        method: Method::Options,
        target: Bytes::from_static(b"*"),
        headers,
        body: RequestBody::none(),
    };
    let mut exchange = upstream.exchange(request).sent_to_node(node, Scheme::Https);
    let told = loop {
        match exchange.head().await.ok()? {
            HeadEvent::Final(head, _) => {
                break Told::read(&head.headers).filter(|told| told.error.is_none())?;
            }
            HeadEvent::Continue | HeadEvent::Interim(_) => {}
        }
    };
    while !matches!(exchange.next().await.ok()?, BodyEvent::End) {}
    Some(told)
}
