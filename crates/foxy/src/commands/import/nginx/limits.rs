//! Converts the limits of nginx: `limit_except`, `limit_req` and `limit_rate`.

use super::super::draft::{ImportDraft, Original};
use super::super::report::ImportReason;
use super::super::terms::effect;
use super::clients;
use super::parse::NginxDirective;
use super::scope::{LocationScope, LocationTables};
use std::collections::HashMap;
use toml::Value;

pub type RequestZones = HashMap<String, RequestZone>;

/// A zone of `limit_req_zone`, which limits the rate of requests.
#[derive(Debug)]
pub struct RequestZone {
    /// The rate for each client in foxy's form. `None` if the zone does not count clients.
    rate: Option<String>,
    /// Number of foxy's rules that limit clients to this rate. nginx counts the requests of all
    /// these rules together.
    rules: usize,
    original: Original,
}

/// Reads `limit_req_zone KEY zone=NAME:SIZE rate=RATE`.
pub fn read_zone(line: &NginxDirective, zones: &mut RequestZones) {
    let option = |name: &str| {
        let options = line.arguments().iter().filter_map(|word| word.split_once('='));
        options.into_iter().find(|(key, _)| *key == name).map(|(_, value)| value)
    };
    let name = option("zone").and_then(|zone| zone.split(':').next()).unwrap_or_default();
    let is_client = matches!(line.argument(0), "$binary_remote_addr" | "$remote_addr");
    let rate = option("rate").filter(|_| is_client);
    let rate = rate.and_then(|rate| {
        rate.strip_suffix("r/s")
            .map(|n| format!("{n}/s"))
            .or_else(|| rate.strip_suffix("r/m").map(|n| format!("{n}/m")))
    });
    let zone = RequestZone { rate, rules: 0, original: line.original.clone() };
    zones.insert(name.to_owned(), zone);
}

/// Reports each zone that became several rules, because foxy counts the requests of each rule
/// separately.
pub fn finish(draft: &mut ImportDraft, zones: &RequestZones) {
    for RequestZone { rules, original, .. } in zones.values().filter(|zone| zone.rules > 1) {
        let text = format!(
            "foxy counts the requests of {rules} rules separately, so a client may send {rules} \
             times as many; lower each `rate-limit`"
        );
        draft.leave(original, ImportReason::Opens(text));
    }
}

/// Adds the rules for the permitted methods and the limits of a location.
pub fn add_rules(
    draft: &mut ImportDraft,
    zones: &mut RequestZones,
    location: &LocationScope<'_>,
    tables: &mut LocationTables,
) {
    for block in location.levels.blocks[0].iter().filter(|line| line.name() == "limit_except") {
        let mut methods = block.arguments().to_vec();
        if methods.iter().any(|method| method == "GET") {
            methods.push("HEAD".into());
        }
        let lines: Vec<_> = block.children().iter().collect();
        if lines.iter().any(|line| !matches!(line.name(), "allow" | "deny")) {
            let text = "foxy asks for no password, so this block is not converted; write a rule";
            draft.leave(&block.original, ImportReason::Opens(text.into()));
        } else {
            clients::add_rule(draft, location, &lines, &methods, tables);
        }
    }
    for (number, line) in location.levels.all(&["limit_req"]).into_iter().enumerate() {
        let zone = line.arguments().iter().find_map(|word| word.strip_prefix("zone="));
        match zone.and_then(|zone| zones.get_mut(zone)) {
            Some(RequestZone { rate: Some(rate), rules, .. }) if number == 0 => {
                *rules += 1;
                let then = effect("rate-limit", rate.as_str());
                let rule = location.rule(" limit_req", then);
                tables.rules.push((rule, line.original.clone(), true));
                let text = "foxy has no `burst`, and answers 429; choose a `rate-limit` that permits \
                            your bursts";
                draft.leave(&line.original, ImportReason::Differs(text.into()));
            }
            _ => {
                let text = "foxy limits the requests of each client, with one limit; write a rule \
                            with `rate-limit`";
                draft.leave(&line.original, ImportReason::Opens(text.into()));
            }
        }
    }
    if let Some(line) = location.levels.last("limit_rate").filter(|line| line.argument(0) != "0") {
        let rate = line.argument(0).to_ascii_uppercase();
        if rate.contains('$') {
            let text = "foxy has no variables; write a rule with `bandwidth-limit`";
            return draft.leave(&line.original, ImportReason::Opens(text.into()));
        }
        let limit = Value::from(format!("{rate}/s"));
        let then = effect("bandwidth-limit", limit);
        let rule = location.rule(" limit_rate", then);
        tables.rules.push((rule, line.original.clone(), true));
        let text = "foxy limits a client on all its connections together";
        draft.leave(&line.original, ImportReason::Differs(text.into()));
    }
}
