//! Counts of the cold tier: requests to the store, bytes, money, and records that it refused.

use std::sync::atomic::{AtomicU64, Ordering};

/// Defines an enum whose values are labels of a metric.
macro_rules! labels {
    (
        $(#[doc = $doc:literal])+
        $name:ident { $($(#[doc = $help:literal])+ $variant:ident = $text:literal,)+ }
    ) => {
        $(#[doc = $doc])+
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name {
            $($(#[doc = $help])+ $variant,)+
        }

        impl $name {
            /// Every value, in the order of declaration.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// Returns the value as a label.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $text,)+ }
            }
        }
    };
}

labels! {
    /// The kind of a request to the store.
    RequestKind {
        /// Writes a segment.
        PutSegment = "put-segment",
        /// Writes a manifest.
        PutManifest = "put-manifest",
        /// Reads records.
        GetRecords = "get-records",
        /// Reads the footer of a segment.
        GetFooter = "get-footer",
        /// Reads a manifest.
        GetManifest = "get-manifest",
        /// Lists the manifests.
        List = "list",
    }
}

labels! {
    /// The result of a request to the store.
    RequestResult {
        /// The store answered.
        Ok = "ok",
        /// Another process has written the manifest, or the object exists.
        Conflict = "conflict",
        /// The store has no such object.
        Missing = "missing",
        /// The store did not answer in time.
        Timeout = "timeout",
        /// The store answered with an error, or the connection failed.
        Failed = "failed",
    }
}

labels! {
    /// The reason why the cold tier does not take a record.
    RefusedReason {
        /// The cold tier already has the record, or the record waits for its upload.
        Known = "known",
        /// Too many records are known or wait.
        Full = "full",
        /// The store does not take segments fast enough.
        Busy = "busy",
    }
}

const KINDS: usize = RequestKind::ALL.len();
const RESULTS: usize = RequestResult::ALL.len();

/// Prices of the store, for a thousand requests.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Prices {
    /// Price of a thousand PUT or LIST requests.
    pub put: f64,
    /// Price of a thousand GET requests.
    pub get: f64,
}

/// The counts of the cold tier. All threads share them.
#[derive(Debug, Default)]
pub struct ColdFigures {
    requests: [[AtomicU64; RESULTS]; KINDS],
    bytes: [AtomicU64; 2],
    refused: [AtomicU64; RefusedReason::ALL.len()],
    prices: Prices,
}

impl ColdFigures {
    pub(crate) fn new(prices: Prices) -> Self {
        Self { prices, ..Self::default() }
    }

    pub(crate) fn count(&self, kind: RequestKind, result: RequestResult) {
        self.requests[kind as usize][result as usize].fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn sent(&self, bytes: usize) {
        self.bytes[0].fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(crate) fn received(&self, bytes: usize) {
        self.bytes[1].fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(crate) fn refuse(&self, reason: RefusedReason) {
        self.refused[reason as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the number of requests of this kind with this result.
    pub fn requests(&self, kind: RequestKind, result: RequestResult) -> u64 {
        self.requests[kind as usize][result as usize].load(Ordering::Relaxed)
    }

    /// Returns the bytes sent to the store, and received from it.
    pub fn bytes(&self) -> [u64; 2] {
        [0, 1].map(|at: usize| self.bytes[at].load(Ordering::Relaxed))
    }

    /// Returns the number of records that the cold tier refused for this reason.
    pub fn refused(&self, reason: RefusedReason) -> u64 {
        self.refused[reason as usize].load(Ordering::Relaxed)
    }

    /// Returns the price of all requests so far. Failed requests count too.
    pub fn cost(&self) -> f64 {
        let price = |kind| match kind {
            RequestKind::PutSegment | RequestKind::PutManifest | RequestKind::List => {
                self.prices.put
            }
            _ => self.prices.get,
        };
        let of_kind = |kind: &RequestKind| {
            let results = RequestResult::ALL.iter();
            let requests: u64 = results.map(|result| self.requests(*kind, *result)).sum();
            price(*kind) * requests as f64 / 1000.0
        };
        RequestKind::ALL.iter().map(of_kind).sum()
    }
}
