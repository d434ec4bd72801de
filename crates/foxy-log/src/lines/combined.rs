//! Reads the Common and Combined Log Formats: `host ident user [date] "method URL version" status
//! bytes "referer" "agent"`. These formats do not contain durations and cache hits.

use super::meaning::with_texts;
use super::time;
use crate::transaction::{Text, Transaction};
use std::borrow::Cow;

pub(super) fn parse(line: &str) -> Option<Transaction<'_>> {
    let (client, rest) = line.split_once(' ')?;
    let (names, rest) = rest.split_once(" [")?;
    let user = names.split_once(' ')?.1;
    let (date, rest) = rest.split_once("] \"")?;
    let (request, rest) = until_quote(rest)?;
    let mut words = rest.split_ascii_whitespace();
    let (status, bytes) = (words.next()?, words.next()?);
    let mut words = request.split(' ');
    let method = words.next().unwrap_or_default();
    let (url, version) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let mut quotes = rest.split_once('"').map(|(_, rest)| rest);
    let mut next = || {
        let (text, rest) = until_quote(quotes?)?;
        quotes = rest.split_once('"').map(|(_, rest)| rest);
        Some(text)
    };
    let (referer, agent) = (next(), next());
    let body = if bytes == "-" { 0 } else { bytes.parse().ok()? };
    let status: u16 = status.parse().ok()?;
    let transaction = Transaction {
        end: time::common_log(date)?,
        status,
        bytes: body,
        body: Some(body),
        ..Transaction::default()
    };
    let cut = match status {
        499 => "client-left",
        444 => "stopped",
        _ => "",
    };
    let texts = [
        (Text::Client, client),
        (Text::User, user),
        (Text::Method, method),
        (Text::Url, url),
        (Text::Version, version),
        (Text::Cut, cut),
        (Text::Referer, referer.unwrap_or_default()),
        (Text::Agent, agent.unwrap_or_default()),
    ];
    Some(with_texts(transaction, texts.map(|(name, text)| (name, unescaped(text)))))
}

/// Splits `text` at the next quotation mark that no backslash escapes.
fn until_quote(text: &str) -> Option<(&str, &str)> {
    let mut from = 0;
    loop {
        let at = from + memchr::memchr2(b'"', b'\\', &text.as_bytes()[from..])?;
        if text.as_bytes()[at] == b'"' {
            return Some((&text[..at], &text[at + 1..]));
        }
        from = at + 2;
        if from > text.len() {
            return None;
        }
    }
}

/// Replaces `\"` and `\\` by the characters that they stand for.
fn unescaped(text: &str) -> Cow<'_, str> {
    if !text.contains('\\') {
        return text.into();
    }
    text.replace("\\\"", "\"").replace("\\\\", "\\").into()
}
