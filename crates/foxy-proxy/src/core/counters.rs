//! The proxy's counters, in one table. Each worker adds to its own cells. A reader adds the cells
//! of all workers together.

use crate::core::metrics::request_metrics::RequestMetrics;
use crate::core::metrics::timing::Timing;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

macro_rules! counters {
    ($($(#[doc = $help:literal])+ $variant:ident = $name:literal,)+) => {
        /// An event or amount that the proxy counts.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Counter {
            $($(#[doc = $help])+ $variant,)+
        }

        impl Counter {
            /// All counters, in the order of declaration.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// Returns the name of the counter in Prometheus, without the prefix and suffix that
            /// all counters share.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)+ }
            }

            /// Returns the help text for Prometheus.
            pub const fn help(self) -> &'static str {
                match self { $(Self::$variant => concat!($($help,)+),)+ }
            }
        }
    };
}

counters! {
    /// Client connections accepted.
    Connections = "client_connections",
    /// Idle client connections passed on during an upgrade.
    ConnectionsMoved = "client_connections_moved",
    /// Client connections refused because too many were open, in total or from the same client.
    ConnectionsRefused = "client_connections_refused",
    /// Client connections without a request in progress, closed in favour of a new connection.
    ConnectionsYielded = "client_connections_yielded",
    /// TLS handshakes with clients that failed or timed out.
    TlsFailures = "client_tls_failures",
    /// TLS handshakes refused because the client's certificate was missing or unusable.
    CertificatesRefused = "client_certificates_refused",
    /// Connections from load balancers that did not start with a PROXY protocol header.
    BadProxyHeaders = "client_bad_proxy_headers",
    /// Client connections that use HTTP/2.
    Http2Connections = "client_http2_connections",
    /// Requests received over HTTP/2.
    Http2Streams = "client_http2_requests",
    /// HTTP/2 requests that the client cancelled before they were answered.
    Http2Resets = "client_http2_resets",
    /// HTTP/2 connections closed because the client cancelled too many requests, or sent more
    /// frames than its requests need.
    Http2Floods = "client_http2_floods",
    /// Requests of clients, also those that foxy could not read.
    Requests = "requests",
    /// Requests refused because they have no valid credentials of a user.
    CredentialsRefused = "credentials_refused",
    /// Requests refused because too many requests of their client wait for a password check.
    CredentialsBusy = "credentials_busy",
    /// Responses served from memory.
    MemoryHits = "memory_hits",
    /// Responses served from the store on disk.
    DiskHits = "disk_hits",
    /// Requests answered with a response from the cold tier.
    ColdHits = "cold_hits",
    /// Stored responses that an origin server confirmed as still valid.
    Revalidated = "revalidated",
    /// Stale responses served because an origin server failed.
    StaleAnswers = "stale_answers",
    /// Stored responses validated in the background while the stale response was served.
    BackgroundRefreshes = "background_refreshes",
    /// Requests sent to an origin server.
    Forwarded = "forwarded",
    /// Requests answered by a fetch that another request had started.
    Collapsed = "collapsed",
    /// Requests and tunnels for which foxy chose a parent proxy.
    ParentRequests = "parent_requests",
    /// Attempts to use another parent proxy, after a parent proxy failed for a request.
    ParentFailovers = "parent_failovers",
    /// Requests and tunnels that used no parent proxy because of `no-proxy` or a loopback address.
    ParentBypasses = "parent_bypasses",
    /// Requests and tunnels that used no parent proxy because no parent proxy worked.
    ParentFallbacks = "parent_fallbacks",
    /// Requests and tunnels refused because no parent proxy worked.
    ParentRefusals = "parent_refusals",
    /// Times that a parent proxy stopped accepting connections or credentials.
    ParentsDown = "parents_down",
    /// Requests sent to other nodes of the fleet.
    FleetRequests = "fleet_requests",
    /// Requests that another node of the fleet answered from its cache.
    FleetHits = "fleet_hits",
    /// Responses of other nodes of the fleet of which this node keeps a copy in memory.
    FleetCopies = "fleet_copies",
    /// Requests for a stored response sent to a second node because the first was slow.
    FleetHedges = "fleet_hedges",
    /// Requests that a node refused because it had too many requests in progress.
    FleetBusy = "fleet_busy",
    /// Requests that this node fetched itself because no other node of the fleet answered.
    FleetFallbacks = "fleet_fallbacks",
    /// Requests for a stored response sent to the former owner of a key.
    FleetFormerAsked = "fleet_former_asked",
    /// Responses that this node got from the former owner of a key instead of the origin.
    FleetFormerHits = "fleet_former_hits",
    /// Requests of other nodes of the fleet.
    FleetServed = "fleet_served",
    /// Times that another node of the fleet was lost.
    FleetNodesLost = "fleet_nodes_lost",
    /// Body bytes received from other nodes of the fleet.
    BytesFromNodes = "fleet_received_bytes",
    /// Tunnels opened for CONNECT and for upgrades.
    Tunnels = "tunnels",
    /// CONNECT requests whose TLS foxy terminated.
    Intercepted = "intercepted",
    /// Clients of intercepted hosts that do not trust foxy's certificate authority.
    InterceptDistrusted = "intercept_distrusted",
    /// Clients of intercepted hosts whose TLS handshake names another host than their CONNECT.
    InterceptWrongName = "intercept_wrong_name",
    /// Clients of intercepted hosts that sent something other than TLS.
    InterceptNotTls = "intercept_not_tls",
    /// Clients of intercepted hosts whose TLS handshake failed for another reason or timed out.
    InterceptFailures = "intercept_failures",
    /// Requests answered with an error that foxy generated.
    LocalErrors = "local_errors",
    /// Responses cut off because the origin server did not send the complete body.
    CutResponses = "cut_responses",
    /// Requests whose client disconnected before the response was complete.
    ClientsLeft = "clients_left",
    /// Bytes sent to clients, including heads; HTTP/2 heads count with their uncompressed size.
    BytesToClients = "client_sent_bytes",
    /// Body bytes received from origin servers.
    BytesFromOrigins = "origin_received_bytes",
    /// Body bytes sent to clients for requests that the cache could answer, without foxy's own
    /// answers. The share of origin traffic saved is 1 - origin_cacheable_bytes /
    /// client_cacheable_bytes.
    CacheableBytesToClients = "client_cacheable_bytes",
    /// Body bytes received from origin servers for requests that the cache could answer.
    CacheableBytesFromOrigins = "origin_cacheable_bytes",
    /// Responses received from origin servers over HTTP/2.
    OriginHttp2Responses = "origin_http2_responses",
    /// Responses passed to the store.
    StorePuts = "store_puts",
    /// Responses that the store refused or failed to keep.
    StoreRefusals = "store_refusals",
    /// Requests that the store did not answer in time; they count as misses.
    StoreTimeouts = "store_timeouts",
    /// Parts of large stored bodies read from the store; one read can serve several clients.
    StoreParts = "store_parts",
    /// Parts of large stored bodies found in memory; one part can serve several clients.
    MemoryParts = "memory_parts",
    /// Stored bodies removed from memory because their client accepted no bytes; foxy reads them
    /// again later.
    BodiesLetGo = "bodies_let_go",
    /// Stored objects of which a part was missing when foxy needed it.
    LostParts = "lost_parts",
    /// Responses whose rest was fetched from the origin server, because the transfer broke off or a
    /// stored part was missing.
    Resumed = "resumed",
    /// Stored responses removed because of an unsafe request, such as POST.
    Invalidations = "invalidations",
    /// Stored responses that foxy has compressed.
    Compressions = "compressions",
    /// Bytes of stored responses before their compression.
    CompressionInput = "compression_input_bytes",
    /// Bytes of stored responses after their compression.
    CompressionOutput = "compression_output_bytes",
    /// Requests answered with a response that foxy has compressed.
    CompressedAnswers = "compressed_answers",
    /// Purges of URLs, tags, prefixes, sites or the whole cache.
    Purges = "purges",
}

/// The counters and timings of one worker.
pub struct Counters {
    cells: Vec<AtomicU64>,
    /// Finished requests by outcome, with their durations.
    pub requests: RequestMetrics,
    /// Times from the start of a request to an origin until the head of its final response arrives.
    pub first_bytes: Timing,
    /// The proxy's own error answers, by the name of the reason.
    pub errors: NamedCounts,
    /// Fetched responses that were not stored, by the name of the reason.
    pub not_stored: NamedCounts,
}

impl Default for Counters {
    fn default() -> Self {
        Self {
            cells: Counter::ALL.iter().map(|_| AtomicU64::new(0)).collect(),
            requests: RequestMetrics::default(),
            first_bytes: Timing::default(),
            errors: NamedCounts::default(),
            not_stored: NamedCounts::default(),
        }
    }
}

/// Counts events by the name of their reason. Suitable only for rare events, because each takes a
/// lock.
#[derive(Default)]
pub struct NamedCounts(Mutex<BTreeMap<&'static str, u64>>);

impl NamedCounts {
    pub(crate) fn add(&self, name: &'static str) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(name).or_default() += 1;
    }

    /// Adds the counts of several workers together.
    pub(crate) fn total<'a>(all: impl Iterator<Item = &'a Self>) -> BTreeMap<&'static str, u64> {
        let mut total = BTreeMap::new();
        for counts in all {
            for (name, count) in &*counts.0.lock().unwrap_or_else(PoisonError::into_inner) {
                *total.entry(*name).or_default() += count;
            }
        }
        total
    }
}

impl Counters {
    /// Adds `amount` to a counter.
    pub fn add(&self, counter: Counter, amount: u64) {
        self.cells[counter as usize].fetch_add(amount, Ordering::Relaxed);
    }

    /// Counts body bytes from an origin for a request that the cache could answer.
    pub(crate) fn add_cacheable_fetched(&self, bytes: u64) {
        self.add(Counter::BytesFromOrigins, bytes);
        self.add(Counter::CacheableBytesFromOrigins, bytes);
    }

    /// Returns the current value of a counter of this worker.
    pub fn get(&self, counter: Counter) -> u64 {
        self.cells[counter as usize].load(Ordering::Relaxed)
    }
}

/// Returns the sum of a counter over all workers.
pub fn total(workers: &[Arc<Counters>], counter: Counter) -> u64 {
    workers.iter().map(|cells| cells.get(counter)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_are_summed_and_names_are_unique() {
        let workers = [Arc::new(Counters::default()), Arc::new(Counters::default())];
        workers[0].add(Counter::Requests, 2);
        workers[1].add(Counter::Requests, 3);
        assert_eq!(total(&workers, Counter::Requests), 5);
        for (index, counter) in Counter::ALL.iter().enumerate() {
            assert_eq!(*counter as usize, index);
            assert!(
                Counter::ALL[..index].iter().all(|other| other.name() != counter.name()),
                "{}",
                counter.name()
            );
        }
    }
}
