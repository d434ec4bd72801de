//! Reads access logs with a line for each request: Squid's native format, the Common and Combined
//! Log Formats, and foxy's JSON. The reader recognises the format by the first bytes of a line.

mod combined;
mod json;
mod meaning;
mod squid;
pub mod time;

use crate::transaction::Transaction;
pub use meaning::reason;
use std::borrow::Cow;
use std::io::{self, Read};

/// Number of bytes that one read of the log requests.
const READ_BYTES: usize = 1 << 20;
/// Longest accepted line in bytes. The rest of a longer line is ignored.
const MAX_LINE: usize = 1 << 20;

/// Reads the transaction on a line of an access log. Returns `None` if the line has no known
/// format.
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

/// Passes each line of a log to `take`. The passed line has no line break.
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

#[cfg(test)]
mod tests;
