//! Translates Squid's result codes and `Cache-Status` values into foxy's outcomes and reasons, for
//! every format of access logs.

use crate::transaction::{Text, Transaction};
use std::borrow::Cow;

/// Returns the reason in a `Cache-Status` value: its parameter `detail`, or else `fwd`, which says
/// why foxy asked the origin.
pub fn reason(cache_status: &str) -> &str {
    parameter(cache_status, "detail").or_else(|| parameter(cache_status, "fwd")).unwrap_or_default()
}

/// Returns the parameter `name` of a `Cache-Status` value.
pub(super) fn parameter<'a>(cache_status: &'a str, name: &str) -> Option<&'a str> {
    let mut parts = cache_status.split(';');
    parts.find_map(|part| part.trim_start().strip_prefix(name)?.strip_prefix('='))
}

/// Translates a result code of Squid. Returns the outcome of the request, and the reason why the
/// answer is incomplete, or an empty text.
pub(super) fn outcome(code: &str, status: u16, method: &str) -> (&'static str, &'static str) {
    for (suffix, cut) in
        [("_ABORTED", "client-left"), ("_BROKEN", "broke-off"), ("_STOPPED", "stopped")]
    {
        if code.ends_with(suffix) {
            return ("cut", cut);
        }
    }
    let is_read = matches!(method, "GET" | "HEAD");
    let outcome = match code {
        "TCP_MEM_HIT" | "TCP_IMS_HIT" | "TCP_INM_HIT" => "memory-hit",
        "TCP_REFRESH_UNMODIFIED" | "TCP_REFRESH_HIT" => "revalidated",
        "TCP_REFRESH_FAIL_OLD" | "TCP_REFRESH_FAIL_HIT" | "TCP_REFRESH_FAIL" => "stale-if-error",
        "TCP_CF_MISS" | "TCP_CF_HIT" => "collapsed",
        "TCP_TUNNEL" => "tunnel",
        "TCP_REDIRECT" => "local",
        _ if code.contains("DENIED") => "refused",
        _ if method == "CONNECT" && code.ends_with("MISS") => "tunnel",
        _ if method == "CONNECT" && code.starts_with("NONE") && status == 200 => "tunnel",
        _ if code.ends_with("_HIT") => "disk-hit",
        _ if code.starts_with("NONE") && matches!(status, 502..=504) => "origin-failed",
        _ if code.starts_with("NONE") && status >= 400 => "refused",
        _ if code.starts_with("NONE") => "local",
        _ if code.starts_with("TCP_") && is_read => "miss",
        _ if code.starts_with("TCP_") => "bypass",
        _ => "",
    };
    (outcome, "")
}

/// Adds these texts to a transaction. The text `-` stands for a missing text.
pub(super) fn with_texts<'a>(
    transaction: Transaction<'a>,
    texts: impl IntoIterator<Item = (Text, Cow<'a, str>)>,
) -> Transaction<'a> {
    let mut transaction = Transaction { weight: 1, seen: 1, ..transaction };
    for (name, text) in texts {
        if text != "-" {
            transaction.texts[name as usize] = text;
        }
    }
    transaction
}
