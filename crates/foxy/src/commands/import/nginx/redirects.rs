//! Converts the lines with which nginx sends clients to another URL: `return 301 URL` and a
//! `rewrite` of every path with `redirect` or `permanent`.

use super::super::terms::redirect;
use super::parse::NginxDirective;
use super::scope::LocationScope;
use toml::Table;

/// Expressions of `rewrite` that match every path, with the text that stands for the whole path.
const WHOLE_PATH: [(&str, &str); 4] =
    [("(.*)", "$1"), ("^(.*)", "$1"), ("^(.*)$", "$1"), ("^/(.*)$", "/$1")];

/// Expression of foxy for every path, also with bytes that are no UTF-8.
const EVERY_BYTE: &str = "(?s-u:.*)";

/// Expressions of `rewrite` that match every path and have no group.
const EVERY_PATH: [&str; 4] = ["^", ".*", "^.*", "^.*$"];

/// Returns whether a line answers every request itself, for example with a redirect.
pub fn answers_all(line: &NginxDirective) -> bool {
    let is_redirect = matches!(line.argument(2), "permanent" | "redirect");
    match line.name() {
        "return" => true,
        "rewrite" => {
            let from = line.argument(0);
            let is_whole = WHOLE_PATH.iter().any(|(whole, _)| *whole == from);
            is_redirect && (is_whole || EVERY_PATH.contains(&from))
        }
        _ => false,
    }
}

/// Returns the effect of a rule that redirects as this line does. Returns `None` if the line sends
/// no redirect, or a redirect that foxy cannot send.
pub fn effect(line: &NginxDirective, location: &LocationScope<'_>) -> Option<Table> {
    let (status, from, to) = match line.name() {
        "return" => {
            let first = line.argument(0);
            match first.parse::<u16>() {
                Ok(status) => (status, None, line.argument(1).to_owned()),
                Err(_) => (302, None, first.to_owned()),
            }
        }
        "rewrite" => {
            let status = if line.argument(2) == "permanent" { 301 } else { 302 };
            let (from, to) = rewritten(line.argument(0), line.argument(1))?;
            (status, from, to)
        }
        _ => return None,
    };
    redirect(status, from, &with_variables(&to, location)?)
}

/// Returns the `from` and the `to` of a redirect in place of a `rewrite` of every path. nginx adds
/// the query of the request, unless the new URL ends with `?`.
fn rewritten(expression: &str, to: &str) -> Option<(Option<&'static str>, String)> {
    let whole = WHOLE_PATH.iter().find(|(whole, _)| *whole == expression);
    if let Some(start) = whole.and_then(|(_, group)| to.strip_suffix(group)) {
        return Some((None, format!("{start}$request_uri")));
    }
    if whole.is_some() {
        return None;
    }
    Some(match to.strip_suffix('?') {
        Some(to) => (None, to.to_owned()),
        None => (Some(EVERY_BYTE), to.to_owned()),
    })
}

/// Replaces the variables of nginx whose value is known. `redirect` refuses all others.
fn with_variables(to: &str, location: &LocationScope<'_>) -> Option<String> {
    let mut to = to.to_owned();
    if to.contains("$scheme") {
        to = to.replace("$scheme", location.hosts.scheme?);
    }
    if to.contains("$server_name") {
        let names = location.levels.all(&["server_name"]);
        to = to.replace("$server_name", names.first()?.argument(0));
    }
    Some(to)
}
