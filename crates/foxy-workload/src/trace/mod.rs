//! Traces: recorded or generated GET requests of clients, in order of time. Each takes 24 bytes, so
//! that millions fit in memory. `read` reads traces from logs; `synthetic` and `catalogue` generate
//! them. The caller opens the files.

mod access_log;
pub mod builder;
pub mod catalogue;
mod csv;
mod json_log;
pub mod models;
mod oracle_general;
#[cfg(feature = "parquet")]
mod parquet;
pub mod read;
pub mod report;
pub mod skip;
pub mod statistics;
pub mod synthetic;
pub mod write;

pub use builder::{Builder, Names};
pub use read::{read, read_into};
pub use report::{Format, ReadError, ReadReport};
pub use skip::{Entry, Skip, Verb};
pub use statistics::Statistics;

use std::borrow::Cow;

/// A GET request of a trace. Numbers replace the names of client and URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Get {
    /// Time of the request in microseconds since the first request of the trace.
    pub time: u64,
    /// Number of the client, from 0.
    pub client: u32,
    /// Number of the URL, from 0.
    pub url: u32,
    /// Size of the response in bytes.
    pub size: u64,
}

const _: () = assert!(size_of::<Get>() == 24);

/// A request with another method than GET.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Other {
    /// Method of the request.
    pub verb: Verb,
    /// Time, client and URL of the request, with the size of the last GET of that URL.
    pub get: Get,
}

/// The requests of a trace. Numbers in the requests replace the names of clients, URLs and origin
/// servers.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    /// GET requests in order of time.
    pub gets: Vec<Get>,
    /// Requests with other methods in order of time. Empty unless the builder collects them.
    pub others: Vec<Other>,
    /// Time of the first request in microseconds since the Unix epoch; 0 for a synthetic trace.
    pub start: i64,
    /// Number of the origin server, for each URL.
    pub sites: Vec<u32>,
    /// Text of each URL.
    pub names: Names,
    /// Number of clients.
    pub clients: u32,
    /// Number of origin servers.
    pub site_count: u32,
}

impl Trace {
    /// Number of URLs.
    pub fn urls(&self) -> usize {
        self.sites.len()
    }

    /// Returns the number of a URL's origin server. Panics if the URL is unknown.
    pub fn site(&self, url: u32) -> u32 {
        self.sites[url as usize]
    }

    /// Returns the text of a URL. Panics if the URL is unknown.
    pub fn url_text(&self, url: u32) -> Cow<'_, str> {
        match &self.names {
            Names::Numbered => Cow::Owned(format!("http://site{}.invalid/{url}", self.site(url))),
            Names::Texts(texts) => Cow::Borrowed(texts.get(url)),
        }
    }
}
