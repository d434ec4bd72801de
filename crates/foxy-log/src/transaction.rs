//! A transaction: the values that a log has about a request, its answer and its fetch.

use std::borrow::Cow;

/// The texts of a transaction. A text is empty if the log does not have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Text {
    /// Id of the request.
    Id,
    /// Address of the client.
    Client,
    /// Name of the user.
    User,
    /// Method of the request.
    Method,
    /// URL of the request, or host and port of a CONNECT.
    Url,
    /// HTTP version of the request.
    Version,
    /// Outcome, as in the metrics, such as `memory-hit`.
    Outcome,
    /// Squid's result code, such as `TCP_MISS`.
    Result,
    /// Value of the field `Cache-Status`.
    CacheStatus,
    /// Reason of the outcome: why foxy asked the origin, did not store, or refused.
    Reason,
    /// Reason why the answer is incomplete.
    Cut,
    /// Names of the operator's rules that decided, separated by commas.
    Rules,
    /// Media type of the answer.
    Type,
    /// `Referer` of the request.
    Referer,
    /// `User-Agent` of the request.
    Agent,
    /// Host of the parent proxy that answered.
    Parent,
    /// Name of the operator's origin that answered.
    Origin,
    /// Host and port of the server that answered.
    Server,
    /// `traceparent` of the request: its trace, and the client's span.
    Traceparent,
}

/// Number of texts of a transaction.
pub const TEXTS: usize = Text::Traceparent as usize + 1;

/// The reason why a log has a transaction. An access log has all transactions, and a ring (log file
/// of fixed size) has a selection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kept {
    /// The log has every transaction.
    #[default]
    All,
    /// The transaction failed.
    Error,
    /// The transaction was among the slowest 1 % with its outcome.
    Slow,
    /// The transaction was drawn at random.
    Sample,
}

impl Kept {
    /// Each reason, in the order of its code in a file.
    pub const ALL: [Self; 4] = [Self::All, Self::Error, Self::Slow, Self::Sample];

    /// Returns the value of the field `kept`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Error => "error",
            Self::Slow => "slow",
            Self::Sample => "sample",
        }
    }
}

/// A transaction. Texts are borrowed from the log where possible.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Transaction<'a> {
    /// Time of the end in milliseconds since the Unix epoch.
    pub end: u64,
    /// Microseconds from the request to the end of the answer.
    pub elapsed: Option<u64>,
    /// Status that the client received, or 0.
    pub status: u16,
    /// Bytes that the client received.
    pub bytes: u64,
    /// Bytes of the body that the client received.
    pub body: Option<u64>,
    /// Status from the origin.
    pub origin_status: Option<u64>,
    /// Microseconds from the start of the fetch to the head of the origin's response.
    pub origin_ttfb: Option<u64>,
    /// Microseconds from the request to the start of the fetch. 0 if another request started it.
    pub origin_start: Option<u64>,
    /// Microseconds of the fetch in which foxy waited for a connection. 0 if a connection was open
    /// already.
    pub origin_connect: Option<u64>,
    /// The reason why the log has this transaction.
    pub kept: Kept,
    /// Number of similar transactions that this transaction stands for, itself included.
    pub weight: u32,
    /// Number of all transactions of the worker since its previous entry in the log.
    pub seen: u32,
    /// Number of entries that the worker lost since its previous entry, because its buffer was
    /// full.
    pub lost: u32,
    /// The texts, in the order of [`Text`].
    pub texts: [Cow<'a, str>; TEXTS],
}

impl Transaction<'_> {
    /// Returns a copy that borrows nothing.
    pub fn into_owned(self) -> Transaction<'static> {
        let texts = self.texts.map(|text| Cow::Owned(text.into_owned()));
        Transaction { texts, ..self }
    }

    /// Returns a text of the transaction.
    pub fn text(&self, text: Text) -> &str {
        &self.texts[text as usize]
    }

    /// Returns host and port of the URL, without a user.
    fn authority(&self) -> &str {
        let url = self.text(Text::Url);
        let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let authority = &rest[..end];
        authority.rsplit_once('@').map_or(authority, |(_, host)| host)
    }

    /// Returns the host of the URL without its port.
    pub fn host(&self) -> &str {
        let authority = self.authority();
        match authority.rsplit_once(':') {
            Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
            _ => authority,
        }
    }

    /// Returns the port in the URL.
    pub fn port(&self) -> Option<u16> {
        self.authority().rsplit_once(':')?.1.parse().ok()
    }

    /// Returns path and query of the URL.
    pub fn path(&self) -> &str {
        let url = self.text(Text::Url);
        let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
        rest.find('/').map_or("", |at| &rest[at..])
    }

    /// Returns whether the cache answered.
    pub fn is_hit(&self) -> bool {
        HITS.contains(&self.text(Text::Outcome))
    }

    /// Returns whether the hit ratio counts the transaction.
    pub fn is_cacheable(&self) -> bool {
        self.is_hit() || CACHEABLE_MISSES.contains(&self.text(Text::Outcome))
    }

    /// Returns whether the transaction failed: its status is 500 or above, its outcome is a
    /// failure, or the answer broke off.
    pub fn is_error(&self) -> bool {
        self.status >= 500
            || self.text(Text::Cut) == "broke-off"
            || FAILURES.contains(&self.text(Text::Outcome))
    }
}

/// Outcomes of answers from the cache.
pub const HITS: [&str; 4] = ["memory-hit", "disk-hit", "revalidated", "stale-if-error"];
/// Outcomes of requests that the cache could have answered, but did not.
pub const CACHEABLE_MISSES: [&str; 3] = ["collapsed", "miss", "origin-failed"];
/// Outcomes of requests that failed.
const FAILURES: [&str; 2] = ["origin-failed", "refused"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_has_a_host_and_a_path() {
        let parts = |url: &'static str| {
            let mut transaction = Transaction::default();
            transaction.texts[Text::Url as usize] = url.into();
            let port = transaction.port();
            (transaction.host().to_owned(), port, transaction.path().to_owned())
        };
        for (url, host, port, path) in [
            ("http://a.test/x?y=/", "a.test", None, "/x?y=/"),
            ("http://a.test:8080/x", "a.test", Some(8080), "/x"),
            ("http://***@a.test/x@y", "a.test", None, "/x@y"),
            ("http://[::1]:80/", "[::1]", Some(80), "/"),
            ("http://[::1]/", "[::1]", None, "/"),
            ("http://a.test", "a.test", None, ""),
            ("http://a.test?q", "a.test", None, ""),
            ("a.test:443", "a.test", Some(443), ""),
            ("/path", "", None, "/path"),
            ("", "", None, ""),
        ] {
            assert_eq!(parts(url), (host.to_owned(), port, path.to_owned()), "{url}");
        }
    }
}
