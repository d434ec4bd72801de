//! Converts the cache directives of nginx: cache zones (`proxy_cache_path`), lifetimes by status
//! (`proxy_cache_valid`) and exceptions (`proxy_cache_bypass`, `proxy_no_cache`).

use super::super::draft::ImportDraft;
use super::super::report::ImportReason;
use super::super::terms::AccessTerm;
use super::parse::NginxDirective;
use super::scope::{Levels, LocationTables, PrefixLocation};
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
        let mut store = line.argument(0).replacen("/var/cache/nginx", "/var/cache/foxy", 1);
        if let Some(size) = option("max_size") {
            store.push_str(&format!(",size={}", size.to_ascii_uppercase()));
        }
        self.draft.push("store", store, &line.original);
        let text = "foxy's store has its own format, and keeps responses until it needs the space";
        self.draft.leave(&line.original, ImportReason::Differs(text.into()));
    }
}

/// Adds the rules on caching for a location. A location without a cache zone is not cached in
/// nginx, so its rule bypasses foxy's cache.
pub fn add_rules(
    draft: &mut ImportDraft,
    zones: &HashMap<String, String>,
    location: &PrefixLocation<'_>,
    tables: &mut LocationTables,
) {
    let zone = location.levels.last("proxy_cache").map(|line| line.argument(0));
    let key = location.levels.last("proxy_cache_key");
    let is_shared = key.is_none_or(|key| is_key_of_url(key.argument(0)));
    let Some(inactive) = zone.and_then(|zone| zones.get(zone)).filter(|_| is_shared) else {
        if let (Some(key), false) = (key, is_shared) {
            let text = "foxy's cache key is the URL, so foxy caches nothing of this location";
            draft.leave(&key.original, ImportReason::Missing(text.into()));
        }
        let then = Table::from_iter([("bypass".to_owned(), Value::from(true))]);
        let rule = location.rule(" without a cache", then);
        return tables.rules.push((rule, location.original.clone(), false));
    };
    exceptions(draft, location, tables);
    lifetimes(draft, location, tables);
    let mut then = Table::from_iter([
        ("heuristic".to_owned(), heuristic("0s")),
        ("store-set-cookie".to_owned(), Value::from(ignores(&location.levels, "set-cookie"))),
    ]);
    stale(draft, location, inactive, &mut then);
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

/// Converts `proxy_cache_bypass` and `proxy_no_cache` to rules that bypass foxy's cache. Such a
/// rule both ignores stored responses and stores none.
fn exceptions(draft: &mut ImportDraft, location: &PrefixLocation<'_>, tables: &mut LocationTables) {
    let lines = location.levels.all(&["proxy_cache_bypass"]);
    let lines = lines.into_iter().chain(location.levels.all(&["proxy_no_cache"]));
    let mut seen: Vec<&str> = Vec::new();
    for line in lines {
        for variable in line.arguments() {
            if seen.contains(&variable.as_str()) {
                continue;
            }
            seen.push(variable);
            let condition = if let Some(name) = variable.strip_prefix("$cookie_") {
                ("header", format!("Cookie: *{name}=*"))
            } else if let Some(name) = variable.strip_prefix("$arg_") {
                ("query", name.to_owned())
            } else if let Some(name) = variable.strip_prefix("$http_") {
                ("header", name.replace('_', "-"))
            } else {
                let text = "foxy has no variables; foxy may cache more than the original";
                draft.leave(&line.original, ImportReason::Opens(text.into()));
                continue;
            };
            let then = Table::from_iter([("bypass".to_owned(), Value::from(true))]);
            let (key, value) = condition;
            let change = |term: &mut AccessTerm| {
                term.when.insert(key, vec![value]);
            };
            let suffix = format!(" {} {variable}", line.name());
            let rule = location.rule_with(&suffix, change, then);
            tables.rules.push((rule, line.original.clone(), false));
        }
    }
}

/// Converts `proxy_cache_valid [CODE…] TIME` to rules on the lifetimes of responses with these
/// codes.
fn lifetimes(draft: &mut ImportDraft, location: &PrefixLocation<'_>, tables: &mut LocationTables) {
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
            let then = Table::from_iter([(key.to_owned(), value)]);
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

/// Converts `proxy_cache_use_stale`. foxy may serve a stale response for the time `inactive`, for
/// which nginx keeps an unused response.
fn stale(draft: &mut ImportDraft, location: &PrefixLocation<'_>, inactive: &str, then: &mut Table) {
    let Some(line) = location.levels.last("proxy_cache_use_stale") else { return };
    let has = |name: &str| line.arguments().iter().any(|word| word == name);
    if has("off") {
        return;
    }
    if has("error") || has("timeout") {
        then.insert("stale-if-error".into(), inactive.into());
    }
    let updates = location.levels.last("proxy_cache_background_update");
    if has("updating") && updates.is_some_and(|line| line.argument(0) == "on") {
        then.insert("stale-while-revalidate".into(), inactive.into());
    }
    let text = format!("foxy serves stale responses for {inactive} after they became stale");
    draft.leave(&line.original, ImportReason::Differs(text));
}
