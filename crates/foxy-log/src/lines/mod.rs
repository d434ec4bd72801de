//! Access logs with a line for each request: Squid's native format, the Common and Combined Log
//! Formats, and foxy's JSON. Each line shows its format.

mod combined;
mod json;
mod squid;
pub mod time;

use crate::transaction::{Text, Transaction};
use std::borrow::Cow;
use std::io::{self, Read};

/// Bytes that are read at a time.
const READ_BYTES: usize = 1 << 20;
/// Longest line. The rest of a longer line is left out.
const MAX_LINE: usize = 1 << 20;

/// Reads a line. Returns `None` if it has none of the formats.
pub fn parse(line: &[u8]) -> Option<Transaction<'_>> {
    let text = match String::from_utf8_lossy(line) {
        Cow::Borrowed(text) => text,
        Cow::Owned(text) => return parse_text(&text).map(Transaction::into_owned),
    };
    parse_text(text)
}

fn parse_text(text: &str) -> Option<Transaction<'_>> {
    let text = text.trim_ascii();
    if text.starts_with('{') {
        return json::parse(text);
    }
    let first = text.split(' ').next()?;
    let is_squid = first.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
        && first.bytes().filter(|byte| *byte == b'.').count() == 1;
    if is_squid { squid::parse(text) } else { combined::parse(text) }
}

/// Passes each line of a log to `take`, without its line break.
pub fn each(mut log: impl Read, mut take: impl FnMut(&[u8])) -> io::Result<()> {
    let (mut buffer, mut filled) = (vec![0; READ_BYTES], 0);
    loop {
        let read = match log.read(&mut buffer[filled..]) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            read => read?,
        };
        let searched = filled;
        filled += read;
        if read == 0 {
            if filled > 0 {
                take(&buffer[..filled]);
            }
            return Ok(());
        }
        let mut begin = 0;
        for end in memchr::memchr_iter(b'\n', &buffer[searched..filled]) {
            take(&buffer[begin..searched + end]);
            begin = searched + end + 1;
        }
        buffer.copy_within(begin..filled, 0);
        filled -= begin;
        if filled == buffer.len() {
            let is_short = buffer.len() < MAX_LINE + READ_BYTES;
            if is_short {
                buffer.resize(MAX_LINE + READ_BYTES, 0);
            } else {
                filled = MAX_LINE;
            }
        }
    }
}

/// Returns the reason in a `Cache-Status` value: its detail, or why foxy asked the origin.
pub fn reason(cache_status: &str) -> &str {
    parameter(cache_status, "detail").or_else(|| parameter(cache_status, "fwd")).unwrap_or_default()
}

/// Returns a parameter of a `Cache-Status` value.
fn parameter<'a>(cache_status: &'a str, name: &str) -> Option<&'a str> {
    let mut parts = cache_status.split("; ");
    parts.find_map(|part| part.strip_prefix(name)?.strip_prefix('='))
}

/// Returns the outcome that a result code of Squid means, and the reason why the answer is
/// incomplete.
fn outcome(code: &str, status: u16, method: &str) -> (&'static str, &'static str) {
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
        _ if code.contains("DENIED") => "refused",
        _ if method == "CONNECT" && code.ends_with("MISS") => "tunnel",
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

/// Returns a transaction with these texts. The texts `-` and empty texts are left out.
fn with_texts<'a>(
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

#[cfg(test)]
mod tests;
