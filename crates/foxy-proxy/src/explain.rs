//! Explains a request rule by rule: what the cache has stored for it, and how the proxy would
//! answer it now. The explanation contacts no origin and changes nothing. It uses the rules of
//! `request::exchange`, `cache::purge` and foxy-rules.

mod step;

pub use step::{Outcome, Step};

use crate::cache::memory::Cached;
use crate::cache::purge::{Stamp, Verdict};
use crate::cache::stored::{CacheKey, Entry, Stored};
use crate::core::View;
use crate::core::outcome::HitSource;
use crate::fill::outgoing;
use crate::request::asker::Asker;
use crate::request::coded::{ChosenCoding, chosen, coded_key};
use crate::request::exchange::{Next, Plan, Redirection, decide, decide_without, plan};
use crate::request::final_dots;
use crate::request::reason::ErrorReason;
use crate::server::admission;
use crate::server::handle::ProxyHandle;
use crate::server::steering::{needs_login, steer, tried};
use crate::upstream::foresight::{Reach, forbidden};
use crate::upstream::{
    ChosenBy, ConnectError, DestinationRefusal, ExpectedWay, Origin, Scheme, expected_way,
};
use bytes::{Bytes, BytesMut};
use foxy_base::{WallTime, clock};
use foxy_http::{BodyLength, RequestDecoder, RequestEvent, RequestHead};
use foxy_rules::RequestControl;
use foxy_rules::coding::NotCoded;
use foxy_rules::explain::{Response, explain_reuse};
use foxy_rules::invalidates;
use std::fmt;
use std::sync::Arc;

/// A stored response, in the form that an explanation shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    /// Source of the response: memory or disk.
    pub source: HitSource,
    /// The status line and header fields.
    pub head: Bytes,
    /// Time when the response was received.
    pub received: WallTime,
    /// Age of the response in seconds.
    pub age: u64,
    /// Time for which the response is fresh, in seconds. A soft purge shortens it.
    pub lifetime: u64,
    /// Length of the body in bytes.
    pub length: u64,
    /// The number of the last purge before the fetch of this response began.
    pub begun: Stamp,
}

/// Explains a request: the stored response, if any, and the result of each rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// The stored response for the request, even if a purge removed it.
    pub stored: Option<Shown>,
    /// The results of the rules, in order. The last step is the outcome.
    pub steps: Vec<Step>,
}

impl Explanation {
    /// Adds a step before the last step, which is the outcome.
    fn insert(&mut self, step: Step) {
        self.steps.insert(self.steps.len().saturating_sub(1), step);
    }

    /// Replaces the outcome by the refusal of the destination policy.
    fn refused(mut self, refusal: DestinationRefusal) -> Self {
        let reason = ErrorReason::Upstream(ConnectError::Forbidden(refusal).into());
        self.steps.pop();
        self.steps.extend([Step::Refused(reason), Step::Therefore(Outcome::Refuse(reason))]);
        self
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.steps
            .iter()
            .try_for_each(|step| writeln!(f, "{:<20} {:<24} {step}", step.section(), step.name()))
    }
}

impl ProxyHandle {
    /// Explains a request of `asker` for `url` with the additional header lines `fields`. Also
    /// explains why the proxy refuses a request that it cannot parse.
    pub async fn explain(
        &self,
        (method, url): (&str, &str),
        fields: &[(String, String)],
        asker: Asker,
    ) -> Explanation {
        match read(method, url, fields) {
            Ok(head) => {
                let scheme =
                    url.split_once("://").and_then(|(scheme, _)| Scheme::named(scheme.as_bytes()));
                let (body, over) = (BodyLength::None, scheme.unwrap_or_default());
                let refusal = admission::refusal_of_address(&self.shared.settings, asker.client);
                self.explain_request((&head, body), over, &asker, refusal).await
            }
            Err(reason) => settled(Vec::new(), Step::Refused(reason), Outcome::Refuse(reason)),
        }
    }

    /// Explains a request. If the proxy refuses all requests of this client, `refusal` is the
    /// reason.
    pub(crate) async fn explain_request(
        &self,
        (head, body): (&RequestHead, BodyLength),
        over: Scheme,
        asker: &Asker,
        refusal: Option<ErrorReason>,
    ) -> Explanation {
        if let Some(reason) = refusal {
            return settled(Vec::new(), Step::Refused(reason), Outcome::Refuse(reason));
        }
        let settings = &self.shared.settings;
        let mut head = head.clone();
        final_dots::remove(&mut head);
        let tried = tried(&settings.rules, &head, over, asker);
        let mut steps: Vec<Step> = tried.into_iter().map(Step::OperatorRule).collect();
        let needs_user = self.shared.authenticator.is_needed()
            && asker.user.is_none()
            && needs_login(&settings.rules, &head, over, asker.client);
        let steering = steer(&settings.rules.get(), &mut head, over, asker);
        steps.extend(steering.refuses_new_path.map(Step::NewPathRefused));
        let upstream = steering.upstream.as_ref();
        let plan = || plan(&head, body, over, &settings.mode, &settings.via_name, upstream);
        let refusal = needs_user.then_some(ErrorReason::CredentialsNeeded).or(steering.refusal);
        let planned = refusal.map_or_else(plan, Plan::Refuse);
        let planned = if steering.bypasses { planned.past_the_cache(&head) } else { planned };
        let planned = planned.redirected(steering.redirection);
        match planned {
            Plan::LookUp(origin, key) => {
                let key = CacheKey::new(settings.rules.key(key));
                let explanation = self.look_up(&head, &key, steps).await;
                self.with_way(explanation, &head, &origin).await
            }
            Plan::Refuse(reason) => settled(steps, Step::Refused(reason), Outcome::Refuse(reason)),
            Plan::Forward(origin, _, reason) => {
                let mut explanation =
                    settled(steps, Step::NotAsked(reason), Outcome::Fetch(reason));
                if invalidates(head.method.as_str(), 200) {
                    explanation.insert(Step::Invalidates);
                }
                self.with_way(explanation, &head, &origin).await
            }
            Plan::Tunnel(origin) => {
                let explanation = settled(steps, Step::Tunnelled, Outcome::Tunnel);
                match settings.destinations.check_connect_port(origin.port) {
                    Err(refusal) => explanation.refused(refusal),
                    Ok(()) => self.by_way(explanation, &origin, None).await,
                }
            }
            Plan::Purge(_) => settled(steps, Step::PurgeAsked, Outcome::Purge),
            Plan::Redirect(Redirection { status, location }) => {
                settled(steps, Step::Redirected(location.into()), Outcome::Redirect(status))
            }
            Plan::AnswerHere => settled(steps, Step::AnsweredHere, Outcome::AnswerHere),
        }
    }

    /// Adds steps before the outcome. They show the servers of the operator's origin and, for a
    /// fetch, the parent proxy that the fetch would use. If the destination policy forbids the
    /// fetch, the outcome becomes a refusal.
    async fn with_way(
        &self,
        mut explanation: Explanation,
        head: &RequestHead,
        origin: &Origin,
    ) -> Explanation {
        let is_fetch =
            |step: &Step| matches!(step, Step::Therefore(Outcome::Fetch(_) | Outcome::Validate(_)));
        if let Some(member) = &origin.member {
            let servers = Step::Servers(member.group.status(clock::monotonic()));
            explanation.insert(servers);
        }
        if !explanation.steps.last().is_some_and(is_fetch) {
            return explanation;
        }
        self.by_way(explanation, origin, Some(&outgoing::target(head))).await
    }

    /// Adds a step that shows the parent proxy for a request with this target. Without a target,
    /// shows the parent proxy for a tunnel. If the destination policy forbids the origin, the
    /// outcome becomes a refusal.
    async fn by_way(
        &self,
        mut explanation: Explanation,
        origin: &Origin,
        target: Option<&Bytes>,
    ) -> Explanation {
        let parents = self.shared.settings.upstream.parents.as_ref();
        let way = parents.map(|parents| expected_way(parents, origin, target));
        let by_parent = matches!(way, Some(ExpectedWay::Parent(_) | ExpectedWay::Nothing));
        way.map(Step::Way).into_iter().for_each(|step| explanation.insert(step));
        self.judged(explanation, origin, by_parent).await
    }

    /// Replaces the outcome by a refusal, if the destination policy forbids the origin.
    async fn judged(
        &self,
        explanation: Explanation,
        origin: &Origin,
        by_parent: bool,
    ) -> Explanation {
        let settings = &self.shared.settings;
        let reach = if by_parent { Reach::ThroughParent } else { Reach::Direct };
        let resolver = (self.shared.resolver)().ok().filter(|_| origin.chosen == ChosenBy::Client);
        let Some(resolver) = resolver else { return explanation };
        let policy = &settings.destinations;
        match forbidden(&settings.upstream, policy, resolver, (origin, reach)).await {
            Some(refusal) => explanation.refused(refusal),
            None => explanation,
        }
    }

    async fn look_up(
        &self,
        head: &RequestHead,
        key: &CacheKey,
        mut steps: Vec<Step>,
    ) -> Explanation {
        let control = RequestControl::of(&View(&head.headers));
        steps.push(Step::Key(key.text.clone()));
        steps.extend(self.shared.settings.upstream.fleet.as_ref().map(|link| {
            let order = link.fleet.order(&key.text);
            Step::Fleet(order.iter().flatten().map(|node| Arc::clone(&node.name)).collect())
        }));
        let mut varies = false;
        let mut found = self.look(key).await;
        if let Some((FoundUnderKey::Varies(list), _)) = &found {
            varies = true;
            steps.push(Step::Varies(list.vary.names().to_vec()));
            found = self.look(&key.variant(list, &list.vary.key(&View(&head.headers)))).await;
        }
        let Some((FoundUnderKey::Response(stored), source)) = found else {
            let outcome = outcome(decide_without(&control, varies));
            let last = self.shared.refusals.last(key).map(Step::LastNotKept);
            steps.extend([Some(Step::NotStored), last].into_iter().flatten());
            steps.push(Step::Therefore(outcome));
            return Explanation { stored: None, steps };
        };
        let now = clock::steady();
        let verdict = self.shared.purges.book.judge(&stored);
        steps.extend([Step::Found(source), Step::Purged(verdict)]);
        let stored = match verdict {
            Verdict::Stale { since } => Arc::new(stored.stale_since(since, now)),
            Verdict::InDoubt(doubt) => Arc::new(stored.in_doubt(doubt)),
            Verdict::Untouched | Verdict::Gone => stored,
        };
        let outcome = if verdict == Verdict::Gone {
            outcome(decide_without(&control, varies))
        } else {
            let fields = View(&stored.head.headers);
            let length = Some(stored.length);
            let role = self.shared.settings.mode.role();
            let policy =
                self.shared.settings.policies().of(role, &stored.key, &stored.head, length);
            let (status, target) = (stored.head.status, &stored.key);
            let response = Response { status, fields: &fields, target, policy };
            steps.extend(
                explain_reuse(&control, response, stored.facts(), now).into_iter().map(Step::Rule),
            );
            steps.extend(self.coding(head, &stored).await);
            outcome(decide(&control, &stored, now))
        };
        steps.push(Step::Therefore(outcome));
        Explanation { stored: Some(shown(&stored, source, now)), steps }
    }

    /// If the proxy compresses responses, returns a step. It tells whether the proxy would answer
    /// with the coded form (such as gzip) of the stored response.
    async fn coding(&self, head: &RequestHead, stored: &Stored) -> Option<Step> {
        let compression = &self.shared.settings.compression;
        if compression.is_off() {
            return None;
        }
        let choice = chosen(compression, &head.headers, stored, head.headers.contains("range"));
        Some(Step::Coding(match choice {
            Err(why) => Err(why),
            Ok(ChosenCoding { coding, .. }) => match self.look(&coded_key(stored, coding)).await {
                Some((FoundUnderKey::Response(form), _)) if form.length > 0 => Ok(coding),
                Some(_) => Err(NotCoded::NotSmaller),
                None => Err(NotCoded::NotReady),
            },
        }))
    }

    async fn look(&self, key: &CacheKey) -> Option<(FoundUnderKey, HitSource)> {
        let cache = &self.shared.cache;
        if let Some(cached) = cache.memory.get(key.hash).filter(|cached| cached.key() == key.text) {
            let found = match cached {
                Cached::Response(stored) => FoundUnderKey::Response(stored),
                Cached::Varies(list) => FoundUnderKey::Varies(list.1.clone()),
            };
            return Some((found, HitSource::Memory));
        }
        let found = match cache.storage()?.entry(key, &self.counters).await.ok()?? {
            Entry::Response(stored) => FoundUnderKey::Response(Arc::new(*stored)),
            Entry::Varies(_, list) => FoundUnderKey::Varies(list),
        };
        Some((found, HitSource::Disk))
    }
}

enum FoundUnderKey {
    Response(Arc<Stored>),
    Varies(crate::cache::stored::VaryList),
}

fn shown(stored: &Stored, source: HitSource, now: WallTime) -> Shown {
    Shown {
        source,
        head: stored.wire.clone(),
        received: clock::civil(stored.times.received),
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

/// Builds the text of a request, and parses it with the same decoder as requests of clients.
fn read(method: &str, url: &str, fields: &[(String, String)]) -> Result<RequestHead, ErrorReason> {
    let authority = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = authority.split(['/', '?', '#']).next().unwrap_or(authority);
    let mut text = format!("{method} {url} HTTP/1.1\r\nHost: {authority}\r\n");
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
