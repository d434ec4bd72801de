//! A transaction: what a log says about a client's request, its answer, and the fetch from the
//! origin.

use std::borrow::Cow;

/// The texts of a transaction. A text is empty if the log does not contain it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Text {
    /// Id of the request.
    Id,
    /// Address of the client.
    Client,
    /// Name of the user who sent the request.
    User,
    /// Method of the request.
    Method,
    /// URL of the request, or host and port of a CONNECT.
    Url,
    /// HTTP version of the request.
    Version,
    /// Outcome of the request, such as `memory-hit`. The metrics use the same names.
    Outcome,
    /// Squid's result code, such as `TCP_MISS`.
    Result,
    /// Value of the answer's header field `Cache-Status`.
    CacheStatus,
    /// Reason of the outcome: why foxy asked the origin, did not store the response, or refused the
    /// request.
    Reason,
    /// Reason why the answer is incomplete.
    Cut,
    /// Names of the operator's rules that applied to the request, separated by commas.
    Rules,
    /// Media type of the answer.
    Type,
    /// The request's header field `Referer`.
    Referer,
    /// The request's header field `User-Agent`.
    Agent,
    /// Host and port of the parent proxy that answered.
    Parent,
    /// Name, in foxy's settings, of the origin that answered.
    Origin,
    /// Host and port of the server that answered.
    Server,
    /// The request's header field `traceparent`, with the trace and the client's span.
    Traceparent,
}

/// Number of texts that each transaction has.
pub const TEXTS: usize = Text::Traceparent as usize + 1;

/// The reason why a log contains a transaction. An access log contains all transactions. A ring
/// (log file of fixed size) contains a selection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kept {
    /// The log contains every transaction.
    #[default]
    All,
    /// The transaction failed.
    Error,
    /// The transaction was among the slowest 1 % of the transactions with its outcome.
    Slow,
    /// The transaction was sampled at random.
    Sample,
}

impl Kept {
    /// All reasons. The position of a reason is its code in a file.
    pub const ALL: [Self; 4] = [Self::All, Self::Error, Self::Slow, Self::Sample];

    /// Returns the reason's name, which queries find in the field `kept`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Error => "error",
            Self::Slow => "slow",
            Self::Sample => "sample",
        }
    }
}

/// A transaction: a client's request, its answer, and the fetch from the origin. Texts are borrowed
/// from the log where possible.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Transaction<'a> {
    /// Time when the transaction ended, in milliseconds since the Unix epoch.
    pub end: u64,
    /// Microseconds from the request to the end of the answer.
    pub elapsed: Option<u64>,
    /// HTTP status that the client received; 0 if the client received none.
    pub status: u16,
    /// Number of bytes that the client received.
    pub bytes: u64,
    /// Number of bytes of the body that the client received.
    pub body: Option<u64>,
    /// HTTP status that the origin returned.
    pub origin_status: Option<u64>,
    /// Microseconds from the start of the fetch to the head of the origin's response.
    pub origin_ttfb: Option<u64>,
    /// Microseconds from the client's request to the start of the fetch from the origin. 0 if
    /// another request had already started the fetch.
    pub origin_start: Option<u64>,
    /// Microseconds for which the fetch waited for a connection to the origin. 0 if a connection
    /// was already open.
    pub origin_connect: Option<u64>,
    /// The reason why the log contains this transaction.
    pub kept: Kept,
    /// Number of similar transactions that this transaction stands for, itself included.
    pub weight: u32,
    /// Number of transactions of the worker thread since its previous entry in the log, including
    /// this transaction.
    pub seen: u32,
    /// Number of entries that the worker thread lost since its previous entry, because its buffer
    /// was full.
    pub lost: u32,
    /// The texts of the transaction, in the order of [`Text`].
    pub texts: [Cow<'a, str>; TEXTS],
}

impl Transaction<'_> {
    /// Returns a copy that owns all its texts.
    pub fn into_owned(self) -> Transaction<'static> {
        let texts = self.texts.map(|text| Cow::Owned(text.into_owned()));
        Transaction { texts, ..self }
    }

    /// Returns a text of the transaction, which is empty if the log does not contain it.
    pub fn text(&self, text: Text) -> &str {
        &self.texts[text as usize]
    }

    /// Returns the host and the port in the URL, without the user name.
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

    /// Returns the port in the URL, or `None` if the URL contains no port.
    pub fn port(&self) -> Option<u16> {
        self.authority().rsplit_once(':')?.1.parse().ok()
    }

    /// Returns the path and the query of the URL.
    pub fn path(&self) -> &str {
        let url = self.text(Text::Url);
        let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
        rest.find('/').map_or("", |at| &rest[at..])
    }

    /// Returns whether the answer came from the cache.
    pub fn is_hit(&self) -> bool {
        HITS.contains(&self.text(Text::Outcome))
    }

    /// Returns whether the transaction counts in the hit ratio.
    pub fn is_cacheable(&self) -> bool {
        self.is_hit() || CACHEABLE_MISSES.contains(&self.text(Text::Outcome))
    }

    /// Returns whether the transaction failed. It failed if its status is 500 or above, its outcome
    /// is a failure, or the answer broke off.
    pub fn is_error(&self) -> bool {
        self.status >= 500
            || self.text(Text::Cut) == "broke-off"
            || FAILURES.contains(&self.text(Text::Outcome))
    }
}

/// Outcomes of answers from the cache.
pub const HITS: [&str; 5] = ["memory-hit", "disk-hit", "cold-hit", "revalidated", "stale-if-error"];
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
