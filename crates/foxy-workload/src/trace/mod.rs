//! Traces: the URL-gets that clients sent, in the order of their times, held small enough to walk
//! millions in memory. Read from logs, or made by the calibrated generator. No file access here:
//! readers take what the binary opened.

pub mod builder;
pub mod catalogue;
mod columns;
mod common_log;
mod csv;
pub mod models;
pub mod names;
mod parquet;
pub mod read;
pub mod read_error;
pub mod report;
pub mod skip;
mod squid;
pub mod statistics;
pub mod synthetic;
pub mod targets;
mod timestamp;
pub mod write;

pub use builder::Builder;
pub use names::Names;
pub use read::{read, read_into};
pub use read_error::{Format, ReadError};
pub use report::ReadReport;
pub use skip::{Entry, Skip, Verb};
pub use statistics::Statistics;

use std::borrow::Cow;

/// One URL-get of a trace; names are interned, so a trace is small and quick to walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Get {
    /// Microseconds since the first get.
    pub time: u64,
    /// Who asked, counted from 0.
    pub client: u32,
    /// What was asked for, counted from 0.
    pub url: u32,
    /// Bytes of the answer.
    pub size: u64,
}

const _: () = assert!(size_of::<Get>() == 24);

/// A request of a trace by another method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Other {
    /// The method.
    pub verb: Verb,
    /// When, who, and what it is about: the URL as it was last got.
    pub get: Get,
}

/// A stream of gets with the names that its numbers stand for.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    /// The gets, their times never falling.
    pub gets: Vec<Get>,
    /// Requests by other methods, where they are wanted, their times never falling either.
    pub others: Vec<Other>,
    /// When the first request was, in microseconds since the Unix epoch; 0 for a synthetic trace.
    pub start: i64,
    /// By URL: the number of its origin server.
    pub sites: Vec<u32>,
    /// By URL: its text.
    pub names: Names,
    /// How many clients there are.
    pub clients: u32,
    /// How many origin servers there are.
    pub site_count: u32,
}

impl Trace {
    /// How many different URLs are asked for.
    pub fn urls(&self) -> usize {
        self.sites.len()
    }

    /// The origin server of a URL.
    ///
    /// # Panics
    /// When the trace has no such URL.
    pub fn site(&self, url: u32) -> u32 {
        self.sites[url as usize]
    }

    /// A URL's text.
    ///
    /// # Panics
    /// When the trace has no such URL.
    pub fn url_text(&self, url: u32) -> Cow<'_, str> {
        match &self.names {
            Names::Numbered => Cow::Owned(format!("http://site{}.invalid/{url}", self.site(url))),
            Names::Texts(texts) => Cow::Borrowed(texts.get(url)),
        }
    }
}
