//! Converts the cache directives of nginx: cache zones (`proxy_cache_path`), lifetimes by status
//! (`proxy_cache_valid`) and exceptions (`proxy_cache_bypass`, `proxy_no_cache`).

use super::super::draft::ImportDraft;
use super::super::original_files;
use super::super::report::ImportReason;
use super::super::terms::{AccessTerm, effect};
use super::parse::NginxDirective;
use super::scope::{Levels, LocationScope, LocationTables};
use super::{NginxImport, nginx_time};
use std::collections::HashMap;
use toml::{Table, Value};

/// Statuses that are heuristically cacheable (RFC 9110 §15.1): foxy may store such a response
/// although the origin names no lifetime.
const KEPT: [u16; 6] = [200, 203, 204, 300, 301, 308];
/// Statuses to which the effect `negative-fresh` of a rule applies.
const NEGATIVE: [u16; 5] = [404, 405, 410, 414, 501];

impl NginxImport {
    /// Converts `proxy_cache_path PATH keys_zone=NAME:SIZE [max_size=SIZE] [inactive=TIME]`.
    pub(super) fn cache_path(&mut self, line: &NginxDirective) {
        let option = |name: &str| {
            let options = line.arguments().iter().filter_map(|word| word.split_once('='));
            options.into_iter().find(|(key, _)| *key == name).map(|(_, value)| value)
        };
        let zone = option("keys_zone").and_then(|zone| zone.split(':').next());
        let inactive = option("inactive").and_then(nginx_time).unwrap_or_else(|| "10m".into());
        self.zones.insert(zone.unwrap_or_default().to_owned(), inactive);
        let mut store = original_files::own_folder(line.argument(0), "/var/cache/nginx");
        if let Some(size) = option("max_size") {
            store.push_str(&format!(",size={}", size.to_ascii_uppercase()));
        }
        self.draft.push("store", store, &line.original);
        let text = "foxy's store has its own format, and keeps responses until it needs the space";
        self.draft.leave(&line.original, ImportReason::Differs(text.into()));
    }
}

/// Returns the time for which nginx keeps an unused response of a location. Returns `None` if foxy
/// caches nothing of the location.
pub fn inactive<'z>(
    zones: &'z HashMap<String, String>,
    location: &LocationScope<'_>,
) -> Option<&'z String> {
    let zone = location.levels.last("proxy_cache").map(|line| line.argument(0));
    let key = location.levels.last("proxy_cache_key");
    let is_shared = key.is_none_or(|key| is_key_of_url(key.argument(0)));
    let is_known = exceptions(location).iter().all(|(_, _, exception)| exception.is_some());
    zone.and_then(|zone| zones.get(zone)).filter(|_| is_shared && is_known)
}

/// Adds the rules on caching for a location. A location without a cache zone is not cached in
/// nginx, so its rule bypasses foxy's cache.
pub fn add_rules(
    draft: &mut ImportDraft,
    zones: &HashMap<String, String>,
    location: &LocationScope<'_>,
    tables: &mut LocationTables,
) {
    let Some(inactive) = inactive(zones, location) else {
        let zone = location.levels.last("proxy_cache").map(|line| line.argument(0));
        if zone.is_some_and(|zone| zones.contains_key(zone)) {
            not_cached(draft, location);
        }
        let then = effect("bypass", true);
        let rule = location.rule(" without a cache", then);
        return tables.rules.push((rule, location.original.clone(), false));
    };
    bypasses(draft, location, tables);
    lifetimes(draft, location, tables);
    let then = Table::from_iter([
        ("heuristic".to_owned(), heuristic("0s")),
        ("store-set-cookie".to_owned(), Value::from(ignores(&location.levels, "set-cookie"))),
    ]);
    stale(draft, location, inactive);
    let rule = location.rule(" cache", then);
    tables.rules.push((rule, location.original.clone(), false));
    for line in location.levels.all(&["proxy_ignore_headers"]) {
        if line.arguments().iter().any(|name| !name.eq_ignore_ascii_case("set-cookie")) {
            let text = "foxy obeys the origin's fields; see `fresh-at-least` of a rule";
            draft.leave(&line.original, ImportReason::Differs(text.into()));
        }
    }
}

/// Returns whether the cache key is the whole URL, with or without scheme and method. foxy's own
/// key is equivalent.
fn is_key_of_url(key: &str) -> bool {
    let hosts = ["$host", "$http_host", "$proxy_host"];
    let rests = ["$request_uri", "$uri$is_args$args", "$uri?$args"];
    let rest = key.strip_prefix("$scheme").unwrap_or(key).trim_start_matches("://");
    let rest = rest.strip_prefix("$request_method").unwrap_or(rest);
    hosts.iter().any(|host| rest.strip_prefix(host).is_some_and(|rest| rests.contains(&rest)))
}

fn ignores(levels: &Levels<'_>, name: &str) -> bool {
    let lines = levels.all(&["proxy_ignore_headers"]);
    lines.iter().flat_map(|line| line.arguments()).any(|word| word.eq_ignore_ascii_case(name))
}

fn heuristic(time: &str) -> Value {
    let entries = [("at-least".to_owned(), time.into()), ("at-most".to_owned(), time.into())];
    Value::Table(Table::from_iter(entries))
}

/// Reports why foxy caches nothing of a location that nginx caches.
fn not_cached(draft: &mut ImportDraft, location: &LocationScope<'_>) {
    if let Some(key) = location.levels.last("proxy_cache_key")
        && !is_key_of_url(key.argument(0))
    {
        let text = "foxy's cache key is the URL, so foxy caches nothing of this location";
        draft.leave(&key.original, ImportReason::Missing(text.into()));
    }
    for (line, variable, exception) in exceptions(location) {
        if exception.is_none() {
            let text =
                format!("foxy does not know {variable}, so foxy caches nothing of this location");
            draft.leave(&line.original, ImportReason::Missing(text));
        }
    }
}

type Exception<'d> = (&'d NginxDirective, &'d str, Option<(&'static str, String)>);

/// Returns the values of `proxy_cache_bypass` and `proxy_no_cache`, each with a condition of a rule
/// that holds whenever nginx ignores its cache. The condition is `None` if rules cannot express it.
fn exceptions<'d>(location: &LocationScope<'d>) -> Vec<Exception<'d>> {
    let lines = location.levels.all(&["proxy_cache_bypass"]).into_iter();
    let lines = lines.chain(location.levels.all(&["proxy_no_cache"]));
    let mut found: Vec<Exception<'d>> = Vec::new();
    for line in lines {
        for variable in line.arguments() {
            let is_seen = found.iter().any(|(_, other, _)| other == variable);
            if is_seen || variable.is_empty() || variable == "0" {
                continue;
            }
            let of = |prefix: &str| {
                let name = variable.strip_prefix(prefix)?;
                let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
                name.chars().all(is_name).then_some(name)
            };
            let condition = if let Some(name) = of("$cookie_") {
                // nginx compares names of cookies without regard to case.
                Some(("header", format!("Cookie: (?i)*{name}=*")))
            } else if let Some(name) = of("$arg_") {
                Some(("query", name.to_owned()))
            } else {
                of("$http_").map(|name| ("header", name.replace('_', "-")))
            };
            found.push((line, variable, condition));
        }
    }
    found
}

/// Adds the rules that bypass foxy's cache. With such a rule, foxy neither answers from the cache
/// nor stores the response.
fn bypasses(draft: &mut ImportDraft, location: &LocationScope<'_>, tables: &mut LocationTables) {
    for (line, variable, condition) in exceptions(location) {
        let Some((key, value)) = condition else { continue };
        let then = effect("bypass", true);
        let change = |term: &mut AccessTerm| {
            term.when.insert(key, vec![value]);
        };
        let rule = location.rule_with(&format!(" {} {variable}", line.name()), change, then);
        tables.rules.push((rule, line.original.clone(), false));
        if !variable.starts_with("$cookie_") {
            let text = "foxy also bypasses its cache for the values 0 and empty";
            draft.leave(&line.original, ImportReason::Differs(text.into()));
        }
    }
}

/// Converts `proxy_cache_valid [CODE…] TIME` to rules on the lifetimes of responses with these
/// codes.
fn lifetimes(draft: &mut ImportDraft, location: &LocationScope<'_>, tables: &mut LocationTables) {
    for (number, line) in (1..).zip(location.levels.all(&["proxy_cache_valid"])) {
        let Some((time, codes)) = line.arguments().split_last() else { continue };
        let Some(time) = nginx_time(time) else {
            draft.leave(&line.original, ImportReason::Missing("the time is not readable".into()));
            continue;
        };
        let is_any = codes.iter().any(|code| code == "any");
        let usual = [200, 301, 302];
        let codes: Vec<u16> = match codes {
            [] => usual.to_vec(),
            codes => codes.iter().filter_map(|code| code.parse().ok()).collect(),
        };
        let lists: [(&[u16], &str, Value); 2] = [
            (&KEPT, "heuristic", heuristic(&time)),
            (&NEGATIVE, "negative-fresh", Value::from(time.as_str())),
        ];
        for (known, key, value) in lists {
            let chosen: Vec<String> = known
                .iter()
                .filter(|code| is_any || codes.contains(code))
                .map(ToString::to_string)
                .collect();
            if chosen.is_empty() {
                continue;
            }
            let then = effect(key, value);
            let change = |term: &mut AccessTerm| {
                term.when.insert("status", chosen);
            };
            let rule = location.rule_with(&format!(" {key} {number}"), change, then);
            tables.rules.push((rule, line.original.clone(), false));
        }
        let others: Vec<String> = codes
            .iter()
            .filter(|code| !KEPT.contains(code) && !NEGATIVE.contains(code))
            .map(ToString::to_string)
            .collect();
        if is_any || !others.is_empty() {
            let names = if is_any { "other statuses".to_owned() } else { others.join(", ") };
            let text = format!("foxy stores {names} only with a lifetime from the origin");
            draft.leave(&line.original, ImportReason::Differs(text));
        }
    }
}

/// Reports `proxy_cache_use_stale`. A rule would also let foxy serve stale responses that nginx
/// never stores, such as responses with `max-age=0`.
fn stale(draft: &mut ImportDraft, location: &LocationScope<'_>, inactive: &str) {
    let Some(line) = location.levels.last("proxy_cache_use_stale") else { return };
    if line.argument(0) == "off" {
        return;
    }
    let text = format!(
        "foxy serves stale responses where the origin's Cache-Control permits this; to permit it \
         always, even for max-age=0, add `stale-if-error = \"{inactive}\"` or \
         `stale-while-revalidate` to the rule"
    );
    draft.leave(&line.original, ImportReason::Missing(text));
}
