//! The keys of a rule, for the documentation and the JSON Schema.

/// The part of a rule that contains a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RulePart {
    /// The key belongs in `when` and `unless`.
    Condition,
    /// The key belongs in `then`.
    Effect,
}

/// A key of a rule: the part in which it belongs, its name, an example of its value in TOML, and
/// its documentation.
pub struct RuleKey(pub RulePart, pub &'static str, pub &'static str, pub &'static str);

use RulePart::{Condition, Effect};

/// All keys of `when`, `unless` and `then`.
pub const KEYS: &[RuleKey] = &[
    RuleKey(Condition, "client", "[\"10.0.0.0/8\", \"::1\"]", "Networks or addresses of clients."),
    RuleKey(Condition, "user", "[\"alice\", \"ci-*\"]", "Patterns for users of `users-file`."),
    RuleKey(Condition, "method", "[\"GET\", \"HEAD\"]", "Methods of the request."),
    RuleKey(Condition, "scheme", "[\"https\"]", "`http` or `https`. A CONNECT counts as `https`."),
    RuleKey(
        Condition,
        "host",
        "[\"example.org\", \"*.example.net\"]",
        "Hosts of the URL. `example.org` includes names below it, `*.example.org` means \
         only these, `=example.org` this name alone, `192.0.2.0/24` literal addresses, `*` every \
         host.",
    ),
    RuleKey(Condition, "port", "[443, \"8000-8999\"]", "Ports of the URL."),
    RuleKey(
        Condition,
        "path",
        "[\"/static/*\", \"*.css\"]",
        "Patterns for the whole path without the query. Other spellings of a path, such as \
         `/a/../b` or `%62`, match too.",
    ),
    RuleKey(
        Condition,
        "url",
        "['(?i)/cgi-bin/|[?]']",
        "Regular expressions for a part of the URL. The URL of a CONNECT is `host:port`.",
    ),
    RuleKey(
        Condition,
        "query",
        "[\"token\"]",
        "Query parameters of the URL, as `NAME` or `NAME=PATTERN`.",
    ),
    RuleKey(
        Condition,
        "header",
        "[\"User-Agent: curl/*\"]",
        "Fields of the request, as `NAME` or `NAME: PATTERN`.",
    ),
    RuleKey(Condition, "days", "[\"mon-fri\"]", "Days of the week in UTC."),
    RuleKey(Condition, "hours", "\"08:00-18:00\"", "Time of day in UTC."),
    RuleKey(
        Condition,
        "content-type",
        "[\"image/*\"]",
        "Patterns for the media type of the response.",
    ),
    RuleKey(Condition, "status", "[200, 404]", "Status codes of the response."),
    RuleKey(Condition, "size-at-least", "\"1M\"", "Smallest length that the response announces."),
    RuleKey(Condition, "size-at-most", "\"1G\"", "Largest length that the response announces."),
    RuleKey(
        Effect,
        "access",
        "\"deny\"",
        "`allow` or `deny`. If any rule has `allow`, foxy refuses each request that no rule \
         allows.",
    ),
    RuleKey(
        Effect,
        "message",
        "\"Ask the help desk.\"",
        "Text that foxy sends to the client if a rule with `deny` refuses the request.",
    ),
    RuleKey(Effect, "bypass", "true", "Whether the request goes to the origin without the cache."),
    RuleKey(
        Effect,
        "rewrite",
        "{ from = \"/old/(.*)\", to = \"/new/$1\" }",
        "Replaces the path of the URL. `from` is a regular expression for the whole path. foxy \
         judges `access` before and after, and chooses the origin after.",
    ),
    RuleKey(
        Effect,
        "redirect",
        "{ status = 301, to = \"https://$host$request_uri\" }",
        "Answers with a redirect to `to`, unless `access` refuses. `$host` is the host without the \
         port, `$request_uri` path and query. With a `from` as in `rewrite`, `$1` is a group, and \
         the query stays. The default status is 302.",
    ),
    RuleKey(
        Effect,
        "upstream",
        "[\"parents\", \"direct\"]",
        "Where the request goes: `direct` to the server of the URL, to `parents` or the URL of one \
         of them, or to the `[[origin]]` of `origin:NAME`. In a list, `direct` applies while no \
         listed parent works. `no-proxy` and `parent-fallback` do not apply.",
    ),
    RuleKey(
        Effect,
        "login",
        "false",
        "With `false`, requests need no credentials of `users-file`. foxy still checks credentials \
         that a client sends.",
    ),
    RuleKey(
        Effect,
        "rate-limit",
        "\"10/s\"",
        "Requests of each client per second (`s`), minute (`m`) or hour (`h`). foxy answers \
         further requests with 429. A user is one client at all addresses.",
    ),
    RuleKey(
        Effect,
        "bandwidth-limit",
        "\"1M/s\"",
        "Bytes per second that each client receives, on all its connections together.",
    ),
    RuleKey(
        Effect,
        "server-timing",
        "true",
        "Whether the answer has a `Server-Timing` field, whatever the setting says.",
    ),
    RuleKey(
        Effect,
        "query-ignore",
        "[\"utm_*\", \"signature\"]",
        "Query parameters that the cache key leaves out. The origin still receives them, so its \
         response must not depend on them.",
    ),
    RuleKey(
        Effect,
        "query-keep",
        "[\"id\"]",
        "The only query parameters that the cache key contains.",
    ),
    RuleKey(Effect, "query-sort", "true", "Whether the cache key sorts the query parameters."),
    RuleKey(
        Effect,
        "request-header-set",
        "{ X-Cache = \"foxy\" }",
        "Fields that foxy sets in the request to the origin.",
    ),
    RuleKey(
        Effect,
        "request-header-remove",
        "[\"Cookie\"]",
        "Fields that foxy removes from the request, even from upgrades (WebSocket). Without \
         `Cache-Control` and `Pragma`, clients cannot force a fetch.",
    ),
    RuleKey(
        Effect,
        "response-header-set",
        "{ Cache-Control = \"max-age=60\" }",
        "Fields that foxy sets in the origin's response before it decides about caching.",
    ),
    RuleKey(
        Effect,
        "response-header-remove",
        "[\"Set-Cookie\"]",
        "Fields that foxy removes from the origin's response, before it adds `Age`, `Cache-Status` \
         and `Via`. Purges by tag still find tags that a rule removed.",
    ),
    RuleKey(Effect, "store", "false", "Whether foxy may store the response."),
    RuleKey(
        Effect,
        "store-set-cookie",
        "false",
        "Whether foxy may store a response with `Set-Cookie`. If no matching rule has this key, \
         foxy stores the response only if it has `public` or an explicit lifetime.",
    ),
    RuleKey(
        Effect,
        "fresh-at-least",
        "\"1h\"",
        "Shortest freshness lifetime of the response. `no-store`, `private` and `no-cache` \
         still apply.",
    ),
    RuleKey(Effect, "fresh-at-most", "\"1d\"", "Longest freshness lifetime of the response."),
    RuleKey(
        Effect,
        "heuristic",
        "{ at-least = \"0s\", percent = 20, at-most = \"3d\" }",
        "Lifetime of a response that gives none: a share of the time since its last modification, \
         or `at-least` if that time is unknown or `percent` is absent.",
    ),
    RuleKey(
        Effect,
        "negative-fresh",
        "\"10s\"",
        "Lifetime of a negative response, such as 404, that gives no lifetime.",
    ),
    RuleKey(
        Effect,
        "stale-while-revalidate",
        "\"30s\"",
        "Time for which a stale response may answer while foxy validates it.",
    ),
    RuleKey(
        Effect,
        "stale-if-error",
        "\"1d\"",
        "Time for which a stale response may answer if the origin fails.",
    ),
];
