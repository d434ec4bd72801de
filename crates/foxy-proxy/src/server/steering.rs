//! Applies the operator's rules to a request, before the proxy decides how to answer it.

use crate::core::View;
use crate::core::rules::{CountedRules, RulesInForce, apply};
use crate::request::asker::Asker;
use crate::request::exchange::Redirection;
use crate::request::reason::ErrorReason;
use crate::upstream::Scheme;
use bytes::Bytes;
use foxy_base::clock;
use foxy_http::{Authority, Headers, Method, RequestHead, Target, TargetForm};
use foxy_rules::operator::{
    Access, Effect, FieldChange, OperatorRules, Redirect, RequestFacts, Rewrite, Tried, Upstream,
};
use std::net::IpAddr;

/// The effects of the operator's rules on a request, apart from changes to its head.
#[derive(Debug, Default)]
pub(crate) struct Steering {
    pub(crate) refusal: Option<ErrorReason>,
    /// The operator's text for the refusal.
    pub(crate) message: Option<String>,
    /// The answer of a rule that redirects the request.
    pub(crate) redirection: Option<Redirection>,
    /// Whether the request is answered without the cache.
    pub(crate) bypasses: bool,
    /// The upstream that receives the request. `None` if no rule decided.
    pub(crate) upstream: Option<Upstream>,
    /// Positions, in the list of rules, of the rules that decided about the request.
    pub(crate) decided: Vec<usize>,
    /// Name of the rule that refuses the request because of its rewritten path.
    pub(crate) refuses_new_path: Option<String>,
    /// Position of the rule that limits how many requests the client may send per second.
    pub(crate) rate: Option<usize>,
    /// Position of the rule that limits how many bytes per second the client receives.
    pub(crate) bandwidth: Option<usize>,
    /// Whether the answer has a `Server-Timing` field. `None` if no rule decided.
    pub(crate) server_timing: Option<bool>,
}

/// Applies the operator's rules to a request. Rules may change the request's head. `over` is the
/// scheme of the request's URL. The returned positions belong to `rules`.
pub(crate) fn steer(
    rules: &CountedRules,
    head: &mut RequestHead,
    over: Scheme,
    asker: &Asker,
) -> Steering {
    if !rules.has_request_rules() {
        return Steering::default();
    }
    let decision = {
        let path = head.origin_form().unwrap_or_default();
        // The proxy refuses a request with an unreadable target later, and then gives the precise
        // reason.
        let Some(facts) = facts(head, over, &path) else { return Steering::default() };
        rules.decide(&asker.seen_in(facts))
    };
    let (refusal, message) = match decision.access() {
        Some(Access::Allow) => (None, None),
        Some(Access::Deny { message }) => (Some(ErrorReason::DeniedByRule), message.clone()),
        None if rules.is_allow_list() => (Some(ErrorReason::NotAllowedByRule), None),
        None => (None, None),
    };
    let redirection = decision.redirect().map_or(Ok(None), |to| redirection(to, head));
    let refusal = refusal.or(redirection.as_ref().err().copied());
    let (mut refusal, mut message, mut refuses_new_path) = (refusal, message, None);
    let mut decided = decision.positions();
    if let Some(target) = decision.rewrite().and_then(|rewrite| rewritten(head, rewrite)) {
        head.target = target;
        if refusal.is_none()
            && let Some((position, text)) = denial_of_new_path(rules, head, over, asker)
        {
            (refusal, message) = (Some(ErrorReason::DeniedByRule), text);
            refuses_new_path = Some(rules.rules()[position].name.clone());
            decided.push(position);
        }
    }
    if !decision.request_changes().is_empty() {
        keep_own_connection_options(&mut head.headers);
        remove_aliases(decision.request_changes(), &mut head.headers);
        apply(decision.request_changes(), &mut head.headers);
    }
    Steering {
        refusal,
        message,
        redirection: redirection.unwrap_or_default(),
        bypasses: decision.bypasses(),
        upstream: decision.upstream().cloned(),
        decided,
        refuses_new_path,
        rate: decision.position(Effect::RateLimit),
        bandwidth: decision.position(Effect::BandwidthLimit),
        server_timing: decision.server_timing(),
    }
}

/// Returns the redirect of a request, or `None` if its path does not match. If the new URL needs
/// the host, a request without a host is refused.
fn redirection(
    redirect: &Redirect,
    head: &RequestHead,
) -> Result<Option<Redirection>, ErrorReason> {
    // The target of `OPTIONS *` is no path.
    let path = head.origin_form().filter(|path| path.starts_with(b"/"));
    let host = head.authority().and_then(Authority::parse).map(|authority| authority.host);
    let location = path.and_then(|path| redirect.location(host.unwrap_or_default(), &path));
    match location {
        Some(_) if host.is_none() && redirect.needs_host() => Err(ErrorReason::BadAuthority),
        location => {
            let status = redirect.status();
            Ok(location.map(|location| Redirection { status, location }))
        }
    }
}

/// Decides about access again after a rule has rewritten the path. So a rewrite cannot lead to a
/// path that a rule denies. Returns the position and the text of this rule.
fn denial_of_new_path(
    rules: &OperatorRules,
    head: &RequestHead,
    over: Scheme,
    asker: &Asker,
) -> Option<(usize, Option<String>)> {
    let path = head.origin_form()?;
    let decision = rules.decide(&asker.seen_in(facts(head, over, &path)?));
    match decision.access()? {
        Access::Deny { message } => Some((decision.position(Effect::Access)?, message.clone())),
        Access::Allow => None,
    }
}

/// Keeps only the options of `Connection` that concern the connection itself. An option can also
/// name a header field, which a proxy must remove. So a client could otherwise remove a field that
/// a rule sets.
fn keep_own_connection_options(headers: &mut Headers) {
    const OWN: [&[u8]; 4] = [b"close", b"keep-alive", b"te", b"upgrade"];
    if !headers.contains("connection") {
        return;
    }
    let own = headers
        .tokens("connection")
        .filter(|token| OWN.iter().any(|own| token.eq_ignore_ascii_case(own)));
    let own: Vec<&[u8]> = own.collect();
    let value = own.join(&b", "[..]);
    headers.remove("connection");
    if !value.is_empty() {
        headers.append("Connection", value);
    }
}

/// Removes the fields whose names differ from the name of a changed field by `_` for `-`. CGI, WSGI
/// and PHP give a program both names as one.
fn remove_aliases(changes: &[FieldChange<'_>], headers: &mut Headers) {
    let hyphened = |name: &str| name.replace('_', "-");
    let is_alias = |name: &str| {
        let changed = |change: &FieldChange<'_>| change.name.eq_ignore_ascii_case(&hyphened(name));
        name.contains('_') && changes.iter().any(changed)
    };
    if headers.raw().any(|(name, _)| name.contains(&b'_')) {
        headers.retain(|name, _| !is_alias(name));
    }
}

/// Returns whether the client must log in for this request, if the proxy has users.
pub(crate) fn needs_login(
    rules_in_force: &RulesInForce,
    head: &RequestHead,
    over: Scheme,
    client: IpAddr,
) -> bool {
    let path = head.origin_form().unwrap_or_default();
    facts(head, over, &path)
        .is_none_or(|facts| rules_in_force.get().needs_login(&facts.from_client(client)))
}

/// Evaluates each rule for a request without applying it, for an explanation.
pub(crate) fn tried(
    rules_in_force: &RulesInForce,
    head: &RequestHead,
    over: Scheme,
    asker: &Asker,
) -> Vec<Tried> {
    let path = head.origin_form().unwrap_or_default();
    let Some(facts) = facts(head, over, &path) else { return Vec::new() };
    rules_in_force.get().explain(&asker.seen_in(facts), None)
}

/// Collects the facts about a request on which rules depend. A CONNECT counts as an https request
/// without a path. Returns `None` if the target of the request is unreadable.
fn facts<'a>(
    head: &'a RequestHead,
    over: Scheme,
    path: &'a [u8],
) -> Option<RequestFacts<'a, View<'a>>> {
    let scheme = match head.target.form() {
        TargetForm::Absolute { scheme, .. } if Scheme::named(scheme).is_none() => return None,
        TargetForm::Authority(_) => Scheme::Https,
        _ => over,
    };
    let (host, port) = match head.authority() {
        Some(text) => {
            let Authority { host, port } = Authority::parse(text)?;
            (host, port)
        }
        None => ("", None),
    };
    let port = port.unwrap_or(scheme.default_port());
    let (method, fields) = (head.method.as_str(), View(&head.headers));
    let url = (scheme.as_str(), host, port);
    Some(RequestFacts::new(url, path, method, fields, clock::wall()))
}

/// Returns the target of a request with its path rewritten by `rewrite`. Returns `None` if the rule
/// does not match the path, or if the request has no path.
fn rewritten(head: &RequestHead, rewrite: &Rewrite) -> Option<Target> {
    if head.method == Method::Connect {
        return None;
    }
    let path = rewrite.apply(&head.origin_form()?)?;
    let text = match head.target.form() {
        TargetForm::Absolute { scheme, authority, .. } => {
            [scheme, b"://", authority, &path].concat()
        }
        _ => path,
    };
    Target::parse(&head.method, Bytes::from(text)).ok()
}
