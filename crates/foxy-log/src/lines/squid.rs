//! Reads Squid's native log format: `time elapsed client code/status bytes method URL user
//! hierarchy type`.

use super::meaning::{outcome, with_texts};
use super::time;
use crate::transaction::{Text, Transaction};

pub(super) fn parse(line: &str) -> Option<Transaction<'_>> {
    let mut words = line.split_ascii_whitespace();
    let (time, elapsed, client) = (words.next()?, words.next()?, words.next()?);
    let (code, status) = words.next()?.split_once('/')?;
    let (bytes, method, url) = (words.next()?, words.next()?, words.next()?);
    let (user, hierarchy, kind) = (words.next(), words.next(), words.next());
    let status = status.parse().ok()?;
    let (outcome, cut) = outcome(code, status, method);
    let (way, next) = hierarchy.and_then(|text| text.split_once('/')).unwrap_or_default();
    // A request with `only-if-cached` that foxy did not forward.
    let is_refused = (code, status) == ("TCP_MISS", 504) && way.ends_with("NONE");
    let outcome = if is_refused { "refused" } else { outcome };
    let is_parent = way.contains("PARENT") || way.contains("SIBLING") || way == "CARP";
    let transaction = Transaction {
        end: time::parse(time)?,
        elapsed: elapsed.parse::<u64>().ok()?.checked_mul(1000),
        status,
        bytes: bytes.parse().ok()?,
        ..Transaction::default()
    };
    let texts = [
        (Text::Client, client),
        (Text::Result, code),
        (Text::Outcome, outcome),
        (Text::Cut, cut),
        (Text::Method, method),
        (Text::Url, url),
        (Text::User, user.unwrap_or_default()),
        (if is_parent { Text::Parent } else { Text::Server }, next),
        (Text::Type, kind.unwrap_or_default()),
    ];
    Some(with_texts(transaction, texts.map(|(name, text)| (name, text.into()))))
}
