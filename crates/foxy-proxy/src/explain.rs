//! What the cache holds for a request and what would become of the request now, rule by rule. It asks no origin and
//! changes nothing; the rules it tells of are those that `exchange`, `purge` and foxy-rules carry out.

use crate::cache_status::HitSource;
use crate::exchange::{Next, Plan, decide, decide_without, plan};
use crate::fields::View;
use crate::memory::Cached;
use crate::purge::{Stamp, Verdict};
use crate::purger::Purger;
use crate::reason::{ErrorReason, ForwardReason};
use crate::stored::{CacheKey, Entry, Stored};
use bytes::{Bytes, BytesMut};
use foxy_base::{WallTime, clock};
use foxy_http::{BodyLength, RequestDecoder, RequestEvent, RequestHead};
use foxy_rules::explain::{Response, Step as RuleStep, explain_reuse};
use foxy_rules::{Permit, RequestControl};
use std::fmt;
use std::sync::Arc;

/// What one rule says of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// The proxy would answer with an error of its own.
    Refused(ErrorReason),
    /// The cache is not asked.
    NotAsked(ForwardReason),
    /// The request is one that foxy answers without cache and origin.
    AnsweredHere,
    /// The cache is asked under this key.
    Key(Bytes),
    /// Several responses are stored for the URL, chosen by these request fields.
    Varies(Vec<String>),
    /// Nothing that fits is stored.
    NotStored,
    /// A response that fits is stored there.
    Found(HitSource),
    /// What purges make of it.
    Purged(Verdict),
    /// What a rule of reuse says of it.
    Rule(RuleStep),
    /// What follows.
    Therefore(Outcome),
}

/// What a request would come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// An answer from the cache, with the seconds of freshness left, negative when stale.
    Hit {
        /// Freshness left.
        ttl: i64,
        /// What allows it to answer stale.
        permit: Option<Permit>,
    },
    /// The origin would be asked whether the stored response is still good.
    Validate(ForwardReason),
    /// The origin would be asked for it.
    Fetch(ForwardReason),
    /// The request would be refused.
    Refuse(ErrorReason),
    /// foxy would answer by itself.
    AnswerHere,
}

impl Outcome {
    /// A stable name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Hit { .. } => "hit",
            Self::Validate(_) => "validate",
            Self::Fetch(_) => "fetch",
            Self::Refuse(_) => "refuse",
            Self::AnswerHere => "answer-here",
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Hit { ttl, permit: None } => write!(f, "answered from the cache, fresh for {ttl} s more"),
            Self::Hit { ttl, permit: Some(permit) } => {
                write!(f, "answered from the cache, stale by {} s ({})", ttl.unsigned_abs(), permit.name())
            }
            Self::Validate(reason) => {
                write!(f, "the origin is asked whether it is still good (fwd={})", reason.token())
            }
            Self::Fetch(reason) => write!(f, "fetched from the origin (fwd={})", reason.token()),
            Self::Refuse(reason) => write!(f, "answered {}: {}", reason.status(), reason.description()),
            Self::AnswerHere => f.write_str("answered by foxy itself"),
        }
    }
}

impl Step {
    /// Where the rule is written.
    #[must_use]
    pub fn section(&self) -> &'static str {
        match self {
            Self::Refused(ErrorReason::Loop) => "RFC 9110 §7.6.3",
            Self::Refused(_) => "docs/errors.md",
            Self::NotAsked(ForwardReason::Method) => "RFC 9110 §9.2.3",
            Self::NotAsked(_) => "RFC 9110 §13.1",
            Self::AnsweredHere => "RFC 9110 §7.6.2",
            Self::Key(_) => "RFC 9111 §2",
            Self::Varies(_) => "RFC 9111 §4.1",
            Self::NotStored | Self::Found(_) => "RFC 9111 §4",
            Self::Purged(_) => "docs/operation.md",
            Self::Rule(step) => step.section(),
            Self::Therefore(_) => "RFC 9211 §2",
        }
    }

    /// A stable name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Refused(reason) => reason.name(),
            Self::NotAsked(reason) => reason.token(),
            Self::AnsweredHere => "answered-here",
            Self::Key(_) => "key",
            Self::Varies(_) => "vary",
            Self::NotStored => "not-stored",
            Self::Found(_) => "stored",
            Self::Purged(Verdict::Untouched) => "not-purged",
            Self::Purged(Verdict::Stale { .. }) => "purged-softly",
            Self::Purged(Verdict::Gone) => "purged",
            Self::Rule(step) => step.name(),
            Self::Therefore(outcome) => outcome.name(),
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(reason) => f.write_str(reason.description()),
            Self::NotAsked(ForwardReason::Method) => f.write_str("its method is not one a cache answers"),
            Self::NotAsked(_) => {
                f.write_str("its fields or body make it one that only the origin can answer")
            }
            Self::AnsweredHere => f.write_str("it goes no further"),
            Self::Key(key) => write!(f, "the cache is asked for {}", key.escape_ascii()),
            Self::Varies(names) => write!(f, "the responses to this URL are chosen by {}", names.join(", ")),
            Self::NotStored => f.write_str("nothing that fits is stored"),
            Self::Found(HitSource::Memory) => f.write_str("a response that fits is in memory"),
            Self::Found(_) => f.write_str("a response that fits is in the store"),
            Self::Purged(Verdict::Untouched) => f.write_str("no purge is about it"),
            Self::Purged(Verdict::Stale { .. }) => f.write_str("it was purged softly, so it is stale"),
            Self::Purged(Verdict::Gone) => f.write_str("it was purged for good, so it is not used"),
            Self::Rule(step) => step.fmt(f),
            Self::Therefore(outcome) => outcome.fmt(f),
        }
    }
}

/// A stored response, as it is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    /// Where it is.
    pub source: HitSource,
    /// Status line and fields.
    pub head: Bytes,
    /// When it was received.
    pub received: WallTime,
    /// Its age in seconds.
    pub age: u64,
    /// Its freshness lifetime in seconds, as purges leave it.
    pub lifetime: u64,
    /// Its body's length in bytes.
    pub length: u64,
    /// When its fetch began, among the purges.
    pub begun: Stamp,
}

/// The whole explanation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// What is stored for the request, if anything is, purged or not.
    pub stored: Option<Shown>,
    /// What each rule says, in order; the last is what follows.
    pub steps: Vec<Step>,
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.steps
            .iter()
            .try_for_each(|step| writeln!(f, "{:<20} {:<24} {step}", step.section(), step.name()))
    }
}

impl Purger {
    /// Explains a GET of `url` with further header lines. A request that cannot be read is explained as that.
    pub async fn explain(&self, url: &str, fields: &[(String, String)]) -> Explanation {
        match read(url, fields) {
            Ok(head) => self.explain_request(&head, BodyLength::None).await,
            Err(reason) => settled(Vec::new(), Step::Refused(reason), Outcome::Refuse(reason)),
        }
    }

    /// Explains a request.
    pub(crate) async fn explain_request(&self, head: &RequestHead, body: BodyLength) -> Explanation {
        let settings = &self.shared.settings;
        let key = match plan(head, body, &settings.mode, &settings.via_name) {
            Plan::LookUp(_, key) => CacheKey::new(key),
            Plan::Refuse(reason) => {
                return settled(Vec::new(), Step::Refused(reason), Outcome::Refuse(reason));
            }
            Plan::Forward(_, _, reason) => {
                return settled(Vec::new(), Step::NotAsked(reason), Outcome::Fetch(reason));
            }
            Plan::Tunnel(_) | Plan::AnswerHere | Plan::Purge(_) => {
                return settled(Vec::new(), Step::AnsweredHere, Outcome::AnswerHere);
            }
        };
        self.look_up(head, &key).await
    }

    async fn look_up(&self, head: &RequestHead, key: &CacheKey) -> Explanation {
        let control = RequestControl::of(&View(&head.headers));
        let mut steps = vec![Step::Key(key.text.clone())];
        let mut varies = false;
        let mut found = self.look(key).await;
        if let Some((Found::Varies(list), _)) = &found {
            varies = true;
            steps.push(Step::Varies(list.vary.names().to_vec()));
            found = self.look(&key.variant(list, &list.vary.key(&View(&head.headers)))).await;
        }
        let Some((Found::Response(stored), source)) = found else {
            let outcome = outcome(decide_without(&control, varies));
            return settled(steps, Step::NotStored, outcome);
        };
        let now = clock::wall();
        let verdict = self.shared.purges.book.judge(&stored);
        steps.extend([Step::Found(source), Step::Purged(verdict)]);
        let stored = match verdict {
            Verdict::Stale { since } => Arc::new(stored.stale_since(since, now)),
            Verdict::Untouched | Verdict::Gone => stored,
        };
        let outcome = if verdict == Verdict::Gone {
            outcome(decide_without(&control, varies))
        } else {
            let fields = View(&stored.head.headers);
            let response = Response { status: stored.head.status, fields: &fields, target: &stored.key };
            steps.extend(explain_reuse(&control, response, stored.facts(), now).into_iter().map(Step::Rule));
            outcome(decide(&control, &stored, now))
        };
        steps.push(Step::Therefore(outcome));
        Explanation { stored: Some(shown(&stored, source, now)), steps }
    }

    async fn look(&self, key: &CacheKey) -> Option<(Found, HitSource)> {
        let cache = &self.shared.cache;
        if let Some(cached) = cache.memory.get(key.hash).filter(|cached| cached.key() == key.text) {
            let found = match cached {
                Cached::Response(stored) => Found::Response(stored),
                Cached::Varies(list) => Found::Varies(list.1.clone()),
            };
            return Some((found, HitSource::Memory));
        }
        let found = match cache.storage()?.entry(key, &self.counters).await? {
            Entry::Response(stored) => Found::Response(Arc::new(*stored)),
            Entry::Varies(_, list) => Found::Varies(list),
        };
        Some((found, HitSource::Disk))
    }
}

/// What is under a key.
enum Found {
    Response(Arc<Stored>),
    Varies(crate::stored::VaryList),
}

fn shown(stored: &Stored, source: HitSource, now: WallTime) -> Shown {
    Shown {
        source,
        head: stored.wire.clone(),
        received: stored.times.received,
        age: stored.times.age(now),
        lifetime: stored.lifetime,
        length: stored.length,
        begun: stored.begun,
    }
}

fn settled(mut steps: Vec<Step>, last: Step, outcome: Outcome) -> Explanation {
    steps.extend([last, Step::Therefore(outcome)]);
    Explanation { stored: None, steps }
}

fn outcome(next: Next) -> Outcome {
    match next {
        Next::Serve { ttl, permit } => Outcome::Hit { ttl, permit },
        Next::GatewayTimeout => Outcome::Refuse(ErrorReason::OnlyIfCached),
        Next::Revalidate(reason) => Outcome::Validate(reason),
        Next::Fetch(reason) => Outcome::Fetch(reason),
    }
}

/// The request that would be sent to this proxy, as its own decoder reads it.
fn read(url: &str, fields: &[(String, String)]) -> Result<RequestHead, ErrorReason> {
    let authority = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = authority.split(['/', '?', '#']).next().unwrap_or(authority);
    let mut text = format!("GET {url} HTTP/1.1\r\nHost: {authority}\r\n");
    for (name, value) in fields {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    text.push_str("\r\n");
    match RequestDecoder::default().next(&mut BytesMut::from(text.as_bytes())) {
        Ok(Some(RequestEvent::Head(head, _))) => Ok(head),
        Ok(_) => Err(ErrorReason::BadAuthority),
        Err(error) => Err(ErrorReason::Malformed(error)),
    }
}
