//! The table of all fields of a transaction (a logged HTTP request) that a query can name.

use crate::transaction::{Kept, Text, Transaction};

/// The type of a field's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldKind {
    /// The field's value is a whole number.
    Number,
    /// The field's value is a number of bytes.
    Bytes,
    /// The field's value is a duration in microseconds.
    Duration,
    /// The field's value is a time in milliseconds since the Unix epoch.
    Time,
    /// The field's value is a text, such as a URL.
    Text,
    /// The field's value is the name of a host, in which upper and lower case mean the same.
    Host,
    /// The field's value is the address of a client. The comparison `=` also accepts a block of
    /// addresses.
    Address,
}

impl FieldKind {
    /// Returns the name of the type and an example of a value. Both texts appear in messages to
    /// users.
    pub const fn description(self) -> (&'static str, &'static str) {
        match self {
            Self::Number => ("number", "404"),
            Self::Bytes => ("size", "10M"),
            Self::Duration => ("duration", "250ms"),
            Self::Time => ("time", "2026-11-26T23:00 or -15m"),
            Self::Text => ("text", "\"a b\""),
            Self::Host => ("host", "example.com"),
            Self::Address => ("address", "10.0.0.0/8"),
        }
    }
}

/// A function that reads the value of a field.
#[derive(Clone, Copy, Debug)]
pub enum Get {
    /// Returns a number, or `None` if the log does not contain this number.
    Number(fn(&Transaction<'_>) -> Option<u64>),
    /// Returns a text, which is empty if the log does not contain this text.
    Text(for<'a> fn(&'a Transaction<'_>) -> &'a str),
}

/// A field of a transaction (a logged HTTP request).
pub struct Field {
    /// Name of the field in queries and in JSON.
    pub name: &'static str,
    /// Type of the field's values.
    pub kind: FieldKind,
    /// The function that reads the field's value.
    pub get: Get,
    /// Description of the field, which `--fields` prints.
    pub help: &'static str,
}

macro_rules! texts {
    ($($name:literal $kind:ident $text:ident $help:literal,)+) => {
        [$(Field {
            name: $name,
            kind: FieldKind::$kind,
            get: Get::Text(|transaction| transaction.text(Text::$text)),
            help: $help,
        },)+]
    };
}

macro_rules! numbers {
    ($($name:literal $kind:ident $get:expr, $help:literal,)+) => {
        [$(Field {
            name: $name, kind: FieldKind::$kind, get: Get::Number($get), help: $help,
        },)+]
    };
}

static NUMBERS: [Field; 11] = numbers! {
    "time" Time |t| Some(t.end), "time of the end",
    "elapsed" Duration |t| t.elapsed, "time from the request to the end of the answer",
    "status" Number |t| Some(t.status.into()), "status that the client received; 0 if none",
    "bytes" Bytes |t| Some(t.bytes), "bytes to the client, with the head",
    "body" Bytes |t| t.body, "bytes of the body to the client",
    "origin.status" Number |t| t.origin_status, "status from the origin",
    "origin.ttfb" Duration |t| t.origin_ttfb, "time until the head of the origin's response",
    "origin.start" Duration |t| t.origin_start, "time from the request to the start of the fetch",
    "origin.connect" Duration |t| t.origin_connect, "part of it that waited for a connection",
    "weight" Number |t| Some(t.weight.into()), "transactions that a sampled entry stands for",
    "lost" Number |t| Some(t.lost.into()), "entries lost before this entry",
};

static TEXTS: [Field; 19] = texts! {
    "id" Text Id "id of the request",
    "client" Address Client "address of the client",
    "user" Text User "user who sent the request",
    "method" Text Method "method of the request",
    "url" Text Url "URL of the request",
    "version" Text Version "HTTP version of the request",
    "outcome" Text Outcome "outcome, such as memory-hit, miss, refused, cut",
    "result" Text Result "Squid's result code",
    "cache_status" Text CacheStatus "field Cache-Status of the answer",
    "reason" Text Reason "why foxy asked the origin, did not store, or refused",
    "cut" Text Cut "why the answer is incomplete",
    "rules" Text Rules "rules that applied to the request",
    "type" Text Type "media type of the answer",
    "referer" Text Referer "field Referer of the request",
    "agent" Text Agent "field User-Agent of the request",
    "traceparent" Text Traceparent "field traceparent of the request",
    "origin.name" Text Origin "operator's origin that answered",
    "origin.server" Text Server "server that answered",
    "origin.parent" Text Parent "parent proxy that answered",
};

static DERIVED: [Field; 5] = [
    Field {
        name: "host",
        kind: FieldKind::Host,
        get: Get::Text(|transaction| transaction.host()),
        help: "host of the URL, without its port",
    },
    Field {
        name: "path",
        kind: FieldKind::Text,
        get: Get::Text(|transaction| transaction.path()),
        help: "path and query of the URL",
    },
    Field {
        name: "hit",
        kind: FieldKind::Text,
        get: Get::Text(|transaction| yes_or_no(transaction.is_hit())),
        help: "yes if the cache answered, else no",
    },
    Field {
        name: "error",
        kind: FieldKind::Text,
        get: Get::Text(|transaction| yes_or_no(transaction.is_error())),
        help: "yes if the request failed or was refused, else no",
    },
    Field {
        name: "kept",
        kind: FieldKind::Text,
        get: Get::Text(|transaction| Kept::name(transaction.kept)),
        help: "why the ring has the entry: error, slow or sample",
    },
];

const fn yes_or_no(is: bool) -> &'static str {
    if is { "yes" } else { "no" }
}

/// Returns every field that a query can name.
pub fn all() -> impl Iterator<Item = &'static Field> {
    NUMBERS.iter().chain(&TEXTS).chain(&DERIVED)
}

/// Returns the field with this name.
pub fn named(name: &str) -> Option<&'static Field> {
    all().find(|field| field.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_unique_and_texts_are_in_the_table() {
        let names: BTreeSet<&str> = all().map(|field| field.name).collect();
        assert_eq!(names.len(), all().count());
        assert_eq!(TEXTS.len(), crate::transaction::TEXTS);
    }
}
