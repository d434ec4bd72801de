//! The steps of an explanation. Each step has the result of one rule, the rule's name, and the
//! section of the document that defines the rule.

use crate::cache::purge::Verdict;
use crate::cache::refusals::{NotKept, Refused};
use crate::core::outcome::{ForwardReason, HitSource, PurgeDoubt};
use crate::request::reason::ErrorReason;
use crate::upstream::{DestinationRefusal, ExpectedWay, ServerStatus};
use crate::worker::http_date;
use bytes::Bytes;
use foxy_base::clock;
use foxy_rules::Permit;
use foxy_rules::coding::{Coding, NotCoded};
use foxy_rules::explain::Step as RuleStep;
use foxy_rules::operator::Tried;
use std::fmt;
use std::sync::Arc;

/// A step of an explanation: the result of a rule, or a fact about the request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// A rule of the operator, and whether it matches.
    OperatorRule(Tried),
    /// The rule of the operator with this name refuses the rewritten path.
    NewPathRefused(String),
    /// The proxy would refuse the request with its own error.
    Refused(ErrorReason),
    /// The proxy would forward the request without a look-up in the cache.
    NotAsked(ForwardReason),
    /// The proxy would answer without using the cache or the origin.
    AnsweredHere,
    /// A rule of the operator redirects the request to this URL.
    Redirected(Bytes),
    /// CONNECT opens a tunnel.
    Tunnelled,
    /// The request asks for a purge.
    PurgeAsked,
    /// The cache key under which the proxy searches the cache.
    Key(Bytes),
    /// The request headers that choose among the stored responses of the URL (Vary).
    Varies(Vec<String>),
    /// No stored response matches the request.
    NotStored,
    /// The last response to this URL was not stored, for this reason.
    LastNotKept(Refused),
    /// A stored response matches the request.
    Found(HitSource),
    /// The effect of the purges on the stored response.
    Purged(Verdict),
    /// The result of a caching rule about the reuse of the stored response.
    Rule(RuleStep),
    /// The coding (such as gzip) that the proxy has applied to the stored response, or the reason
    /// why the proxy sends the response without coding.
    Coding(Result<Coding, NotCoded>),
    /// If the origin answers the request with success, the proxy removes the stored responses of
    /// the URL.
    Invalidates,
    /// The servers of the operator's origin that serves the URL, with their states.
    Servers(Vec<ServerStatus>),
    /// The parent proxy that a fetch would use, if the operator has set parent proxies.
    Way(ExpectedWay),
    /// The nodes of the fleet that may receive requests for the key: first its owner, then the
    /// second node.
    Fleet(Vec<Arc<str>>),
    /// How the proxy would answer the request.
    Therefore(Outcome),
}

/// How the proxy would answer a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The answer would come from the cache.
    Hit {
        /// Number of seconds until the response becomes stale. The number is negative if the
        /// response is already stale.
        ttl: i64,
        /// The caching rule that permits a stale answer, if the answer would be stale.
        permit: Option<Permit>,
    },
    /// The proxy would ask the origin to validate the stored response.
    Validate(ForwardReason),
    /// The proxy would fetch the response from the origin.
    Fetch(ForwardReason),
    /// The proxy would refuse the request.
    Refuse(ErrorReason),
    /// The proxy would answer the request itself.
    AnswerHere,
    /// The proxy would answer with a redirect of this status.
    Redirect(u16),
    /// The proxy would open a tunnel to the origin.
    Tunnel,
    /// The proxy would purge the stored response, if the client may purge.
    Purge,
}

impl Outcome {
    /// Returns a stable name for the outcome.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Hit { .. } => "hit",
            Self::Validate(_) => "validate",
            Self::Fetch(_) => "fetch",
            Self::Refuse(_) => "refuse",
            Self::AnswerHere => "answer-here",
            Self::Redirect(_) => "redirect",
            Self::Tunnel => "tunnel",
            Self::Purge => "purge",
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Hit { ttl, permit: None } => {
                write!(f, "foxy answers from the cache; the response stays fresh for {ttl} s")
            }
            Self::Hit { ttl, permit: Some(permit) } => {
                write!(
                    f,
                    "foxy answers from the cache; the response has been stale for {} s ({})",
                    ttl.unsigned_abs(),
                    permit.name()
                )
            }
            Self::Validate(reason) => {
                write!(
                    f,
                    "foxy asks the origin whether the stored response is still valid (fwd={})",
                    reason.token()
                )
            }
            Self::Fetch(reason) => {
                write!(f, "foxy fetches the response from the origin (fwd={})", reason.token())
            }
            Self::Refuse(reason) => {
                write!(f, "foxy answers {}: {}", reason.status(), reason.description())
            }
            Self::AnswerHere => f.write_str("foxy answers the request itself"),
            Self::Redirect(status) => write!(f, "foxy answers {status} with the new URL"),
            Self::Tunnel => f.write_str("foxy opens a tunnel to the origin"),
            Self::Purge => f.write_str("foxy purges the stored response, if the client may purge"),
        }
    }
}

impl Step {
    /// Returns the document and section that define the rule.
    pub fn section(&self) -> &'static str {
        match self {
            Self::OperatorRule(_) | Self::NewPathRefused(_) | Self::Redirected(_) => {
                "docs/configuration.md"
            }
            Self::Refused(ErrorReason::Loop) => "RFC 9110 §7.6.3",
            Self::Refused(_) => "docs/errors.md",
            Self::NotAsked(ForwardReason::Method) => "RFC 9110 §9.2.3",
            Self::NotAsked(ForwardReason::Rule) => "docs/configuration.md",
            Self::NotAsked(_) => "RFC 9110 §13.1",
            Self::AnsweredHere => "RFC 9110 §7.6.2",
            Self::Tunnelled => "RFC 9110 §9.3.6",
            Self::PurgeAsked => "docs/operation.md",
            Self::Key(_) => "RFC 9111 §2",
            Self::Varies(_) => "RFC 9111 §4.1",
            Self::LastNotKept(refused) => refused.why.section(),
            Self::NotStored | Self::Found(_) => "RFC 9111 §4",
            Self::Purged(_) | Self::Way(_) | Self::Servers(_) => "docs/operation.md",
            Self::Fleet(_) => "docs/fleet.md",
            Self::Rule(step) => step.section(),
            Self::Invalidates => "RFC 9111 §4.4",
            Self::Coding(Ok(_)) => "docs/decisions/compression.md",
            Self::Coding(Err(why)) => why.section(),
            Self::Therefore(_) => "RFC 9211 §2",
        }
    }

    /// Returns a stable name for the step.
    pub fn name(&self) -> &str {
        match self {
            Self::OperatorRule(tried) => &tried.name,
            Self::NewPathRefused(rule) => rule,
            Self::Refused(reason) => reason.name(),
            Self::NotAsked(reason) => reason.token(),
            Self::AnsweredHere => "answered-here",
            Self::Redirected(_) => "redirected",
            Self::Tunnelled => "connect",
            Self::PurgeAsked => "purge-request",
            Self::Key(_) => "key",
            Self::Varies(_) => "vary",
            Self::NotStored => "not-stored",
            Self::LastNotKept(refused) => refused.why.name(),
            Self::Found(_) => "stored",
            Self::Purged(Verdict::Untouched) => "not-purged",
            Self::Purged(Verdict::Stale { .. }) => "purged-softly",
            Self::Purged(Verdict::InDoubt(doubt)) => doubt.name(),
            Self::Purged(Verdict::Gone) => "purged",
            Self::Rule(step) => step.name(),
            Self::Coding(Ok(coding)) => coding.name(),
            Self::Coding(Err(why)) => why.name(),
            Self::Invalidates => "invalidates",
            Self::Fleet(_) => "fleet",
            Self::Servers(_) => "origin",
            Self::Way(ExpectedWay::Direct | ExpectedWay::Fallback) => "direct",
            Self::Way(ExpectedWay::Parent(_)) => "parent",
            Self::Way(ExpectedWay::Nothing) => "parent-unreachable",
            Self::Therefore(outcome) => outcome.name(),
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OperatorRule(tried) => show_rule(tried, f),
            Self::NewPathRefused(_) => f.write_str("the rule matches the new path and refuses it"),
            Self::Refused(reason) => {
                f.write_str(reason.description())?;
                let remedy = reason.refused_destination().and_then(DestinationRefusal::remedy);
                remedy.map_or(Ok(()), |remedy| write!(f, "; {remedy}"))
            }
            Self::NotAsked(ForwardReason::Method) => {
                f.write_str("no cache answers requests with this method")
            }
            Self::NotAsked(ForwardReason::Rule) => {
                f.write_str("a rule of the operator sends the request past the cache")
            }
            Self::NotAsked(_) => {
                f.write_str("because of its fields or body, only the origin can answer the request")
            }
            Self::AnsweredHere => {
                f.write_str("Max-Forwards: 0 forbids foxy to forward the request")
            }
            Self::Redirected(url) => {
                write!(f, "a rule of the operator names the new URL {}", url.escape_ascii())
            }
            Self::Tunnelled => f.write_str(
                "CONNECT opens a tunnel; foxy sees the requests in it only if foxy decrypts TLS",
            ),
            Self::PurgeAsked => f.write_str("PURGE removes the stored response or makes it stale"),
            Self::Key(key) => {
                write!(f, "the cache key is {}", key.escape_ascii())
            }
            Self::Varies(names) => {
                write!(
                    f,
                    "stored responses to this URL differ by the request fields {}",
                    names.join(", ")
                )
            }
            Self::NotStored => f.write_str("foxy stores no response that fits the request"),
            Self::LastNotKept(refused) => show_refused(*refused, f),
            Self::Found(HitSource::Memory) => f.write_str("a fitting response is in memory"),
            Self::Found(_) => f.write_str("a fitting response is in the store"),
            Self::Purged(Verdict::Untouched) => {
                f.write_str("no purge concerns the stored response")
            }
            Self::Purged(Verdict::Stale { .. }) => {
                f.write_str("a soft purge made the stored response stale")
            }
            Self::Purged(Verdict::InDoubt(doubt)) => f.write_str(describe_doubt(*doubt)),
            Self::Purged(Verdict::Gone) => f.write_str("a hard purge removed the stored response"),
            Self::Rule(step) => step.fmt(f),
            Self::Coding(choice) => show_coding(*choice, f),
            Self::Invalidates => f.write_str(
                "foxy removes the stored responses of the URL if the origin answers with success",
            ),
            Self::Fleet(nodes) => show_fleet(nodes, f),
            Self::Servers(servers) => show_servers(servers, f),
            Self::Way(ExpectedWay::Direct) => {
                f.write_str("no parent proxy receives requests to this host")
            }
            Self::Way(ExpectedWay::Fallback) => {
                f.write_str("no parent proxy works, so foxy connects to the origin itself")
            }
            Self::Way(ExpectedWay::Parent(parent)) => {
                write!(f, "a fetch goes through the parent proxy {parent}")
            }
            Self::Way(ExpectedWay::Nothing) => f.write_str("no parent proxy works"),
            Self::Therefore(outcome) => outcome.fmt(f),
        }
    }
}

const fn describe_doubt(doubt: PurgeDoubt) -> &'static str {
    match doubt {
        PurgeDoubt::NoLease => "this node has no lease, so it validates every stored response",
        PurgeDoubt::ColdTier => "another process stored the response in the cold tier",
        PurgeDoubt::BrokenChain => "the fleet may have lost a purge since the response was stored",
    }
}

fn show_rule(Tried { result, .. }: &Tried, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match result {
        Err(missed) => write!(f, "the rule does not match: {}", missed.name()),
        Ok(effects) if effects.is_empty() => {
            f.write_str("the rule matches, but earlier rules have decided")
        }
        Ok(effects) => {
            let names: Vec<String> = effects.iter().map(ToString::to_string).collect();
            write!(f, "the rule matches and decides: {}", names.join(", "))
        }
    }
}

fn show_refused(Refused { status, at, why }: Refused, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let date = http_date(clock::civil(at));
    match why {
        NotKept::Invalidated => write!(f, "the last answer ({status}, {date}): {why}"),
        _ => write!(f, "the last answer ({status}, {date}) was not stored: {why}"),
    }
}

fn show_coding(choice: Result<Coding, NotCoded>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match choice {
        Ok(coding) => write!(f, "foxy answers with the body in the coding {coding}"),
        Err(why) => write!(f, "foxy applies no coding: {why}"),
    }
}

fn show_fleet(nodes: &[Arc<str>], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match nodes {
        [owner, second, ..] => {
            write!(f, "node {owner} owns the key, and node {second} is the second")
        }
        [owner] => write!(f, "node {owner} owns the key"),
        [] => f.write_str("no node owns the key"),
    }
}

fn show_servers(servers: &[ServerStatus], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let name = servers.first().map_or("", |server| &server.origin);
    let shown =
        servers.iter().map(
            |ServerStatus { server, rests, .. }| {
                if *rests { format!("{server} (rests)") } else { server.clone() }
            },
        );
    let shown: Vec<_> = shown.collect();
    write!(f, "the origin {name} has the servers {}", shown.join(", "))
}
