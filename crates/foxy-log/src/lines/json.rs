//! Reads foxy's JSON access log (`access-log-format = "json"`), in which each line is a JSON
//! object.

use super::meaning::{outcome, parameter, reason, with_texts};
use super::time;
use crate::transaction::{Text, Transaction};
use serde::Deserialize;
use std::borrow::Cow;

type Member<'a> = Option<Cow<'a, str>>;

/// The members of the JSON object on a line of the access log. Logs of older versions of foxy lack
/// some members.
#[derive(Deserialize)]
struct Line<'a> {
    #[serde(borrow)]
    time: Cow<'a, str>,
    elapsed_us: Option<u64>,
    #[serde(borrow)]
    client: Cow<'a, str>,
    status: u16,
    bytes: u64,
    body_bytes: Option<u64>,
    #[serde(borrow)]
    method: Cow<'a, str>,
    #[serde(borrow)]
    url: Cow<'a, str>,
    #[serde(borrow, default)]
    id: Member<'a>,
    #[serde(borrow, default)]
    user: Member<'a>,
    #[serde(borrow, default)]
    result: Member<'a>,
    #[serde(borrow, default)]
    outcome: Member<'a>,
    #[serde(borrow, default)]
    cut: Member<'a>,
    #[serde(borrow, default)]
    version: Member<'a>,
    #[serde(borrow, default)]
    content_type: Member<'a>,
    #[serde(borrow, default)]
    referer: Member<'a>,
    #[serde(borrow, default)]
    user_agent: Member<'a>,
    #[serde(borrow, default)]
    cache_status: Member<'a>,
    #[serde(borrow, default)]
    parent: Member<'a>,
    #[serde(borrow, default)]
    origin: Member<'a>,
    #[serde(borrow, default)]
    server: Member<'a>,
    #[serde(borrow, default)]
    rules: Member<'a>,
    origin_ttfb_us: Option<u64>,
    origin_connect_us: Option<u64>,
}

pub(super) fn parse(text: &str) -> Option<Transaction<'_>> {
    let line: Line<'_> = serde_json::from_str(text).ok()?;
    let (result, cache_status) =
        (line.result.unwrap_or_default(), line.cache_status.unwrap_or_default());
    let (derived, _) = outcome(&result, line.status, &line.method);
    let reason = match &cache_status {
        Cow::Borrowed(text) => Cow::Borrowed(reason(text)),
        Cow::Owned(text) => Cow::Owned(reason(text).to_owned()),
    };
    let transaction = Transaction {
        end: time::parse(&line.time)?,
        elapsed: line.elapsed_us,
        status: line.status,
        bytes: line.bytes,
        body: line.body_bytes,
        origin_status: parameter(&cache_status, "fwd-status")
            .and_then(|status| status.parse().ok()),
        origin_ttfb: line.origin_ttfb_us,
        origin_connect: line.origin_connect_us,
        ..Transaction::default()
    };
    let texts = [
        (Text::Client, Some(line.client)),
        (Text::Method, Some(line.method)),
        (Text::Url, Some(line.url)),
        (Text::Id, line.id),
        (Text::User, line.user),
        (Text::Result, Some(result)),
        (Text::Outcome, line.outcome.or(Some(derived.into()))),
        (Text::Cut, line.cut),
        (Text::Version, line.version),
        (Text::Type, line.content_type),
        (Text::Referer, line.referer),
        (Text::Agent, line.user_agent),
        (Text::CacheStatus, Some(cache_status)),
        (Text::Reason, Some(reason)),
        (Text::Parent, line.parent),
        (Text::Origin, line.origin),
        (Text::Server, line.server),
        (Text::Rules, line.rules),
    ];
    Some(with_texts(transaction, texts.map(|(name, text)| (name, text.unwrap_or_default()))))
}
