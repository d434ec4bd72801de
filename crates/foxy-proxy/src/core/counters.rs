//! Counters of the proxy in one table. Each worker adds to its own cells; readers add the cells of
//! all workers together.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

macro_rules! counters {
    ($($(#[doc = $help:literal])+ $variant:ident = $name:literal,)+) => {
        /// A counted event or amount.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Counter {
            $($(#[doc = $help])+ $variant,)+
        }

        impl Counter {
            /// Every counter, in the order of the table.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// Name for Prometheus, without prefix and suffix.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)+ }
            }

            /// Help text.
            pub const fn help(self) -> &'static str {
                match self { $(Self::$variant => concat!($($help,)+),)+ }
            }
        }
    };
}

counters! {
    /// Client connections accepted.
    Connections = "client_connections",
    /// Client connections refused because too many were open, or too many of the same client.
    ConnectionsRefused = "client_connections_refused",
    /// Client connections that gave their place up to another while no request was at work on them.
    ConnectionsYielded = "client_connections_yielded",
    /// TLS handshakes with clients that failed or took too long.
    TlsFailures = "client_tls_failures",
    /// Connections from balancers that did not begin with a PROXY protocol header.
    BadProxyHeaders = "client_bad_proxy_headers",
    /// Client connections that speak HTTP/2.
    Http2Connections = "client_http2_connections",
    /// Requests that came over HTTP/2.
    Http2Streams = "client_http2_requests",
    /// Requests over HTTP/2 that the client gave up before they were answered.
    Http2Resets = "client_http2_resets",
    /// HTTP/2 connections ended because the client gave up too many requests, or sent more frames
    /// than requests need.
    Http2Floods = "client_http2_floods",
    /// Requests whose head was read.
    Requests = "requests",
    /// Answers from the memory tier.
    MemoryHits = "memory_hits",
    /// Answers from the store.
    DiskHits = "disk_hits",
    /// Stored responses an origin confirmed.
    Revalidated = "revalidated",
    /// Stale responses served because an origin failed.
    StaleAnswers = "stale_answers",
    /// Stored responses that were validated while a stale one was served.
    BackgroundRefreshes = "background_refreshes",
    /// Requests sent to an origin.
    Forwarded = "forwarded",
    /// Requests answered by another request's flight.
    Collapsed = "collapsed",
    /// CONNECT and upgrade tunnels.
    Tunnels = "tunnels",
    /// CONNECTs of which the TLS was ended here.
    Intercepted = "intercepted",
    /// Clients that were to be intercepted and do not trust the certificate authority.
    InterceptDistrusted = "intercept_distrusted",
    /// Clients that were to be intercepted and whose TLS asks for another host than their CONNECT.
    InterceptWrongName = "intercept_wrong_name",
    /// Clients that were to be intercepted and do not speak TLS.
    InterceptNotTls = "intercept_not_tls",
    /// Clients that were to be intercepted and whose TLS handshake failed in another way or took
    /// too long.
    InterceptFailures = "intercept_failures",
    /// Requests answered with an error of the proxy's own.
    LocalErrors = "local_errors",
    /// Responses cut off because the origin did not send them whole.
    CutResponses = "cut_responses",
    /// Requests whose client left before the answer was complete.
    ClientsLeft = "clients_left",
    /// Bytes sent to clients, heads included; those of HTTP/2 as they are before their compression.
    BytesToClients = "client_sent_bytes",
    /// Body bytes received from origins.
    BytesFromOrigins = "origin_received_bytes",
    /// Responses that came over HTTP/2 from origins.
    OriginHttp2Responses = "origin_http2_responses",
    /// Responses handed to the store.
    StorePuts = "store_puts",
    /// Responses the store refused or failed to keep.
    StoreRefusals = "store_refusals",
    /// Gets the store did not answer in time; misses to the client.
    StoreTimeouts = "store_timeouts",
    /// Parts of large stored bodies read from the store, each for all who were sent it at the time.
    StoreParts = "store_parts",
    /// Parts of large stored bodies found in memory, each for all who were sent it at the time.
    MemoryParts = "memory_parts",
    /// Stored bodies that were dropped while their client took nothing, to be read again.
    BodiesLetGo = "bodies_let_go",
    /// Stored objects of which a part was gone when it was needed.
    LostParts = "lost_parts",
    /// Responses of which the rest was fetched from the origin, because it broke off or a stored
    /// part was gone.
    Resumed = "resumed",
    /// Stored responses removed because of an unsafe request.
    Invalidations = "invalidations",
    /// Purges of URLs, tags, prefixes, sites or everything.
    Purges = "purges",
}

/// The counters of one worker.
#[derive(Debug)]
pub struct Counters {
    cells: Vec<AtomicU64>,
}

impl Default for Counters {
    fn default() -> Self {
        Self { cells: Counter::ALL.iter().map(|_| AtomicU64::new(0)).collect() }
    }
}

impl Counters {
    /// Adds `amount` to a counter.
    pub fn add(&self, counter: Counter, amount: u64) {
        self.cells[counter as usize].fetch_add(amount, Ordering::Relaxed);
    }

    /// Returns the current value of a counter.
    pub fn get(&self, counter: Counter) -> u64 {
        self.cells[counter as usize].load(Ordering::Relaxed)
    }
}

/// Sums a counter over all workers.
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
